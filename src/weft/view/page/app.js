// -- all of it

function evaluateAll() {
  let shape = null, dims = null;
  try {
    shape = readShape();
    dims = readDims(shape.length);
    showError($("shape-error"), null);
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    showError($("shape-error"), error);
  }
  const scope = {};
  for (const [key, panel] of Object.entries(panels)) {
    panel.input.value = state[key];
    panel.radios.forEach((radio) => (radio.checked = radio.value === state["v" + key]));
    panel.tile = null;
    showError(panel.error, null);
    if (!shape || !state[key].trim()) continue;
    try {
      const found = layoutOf(state[key], shape, scope, given);
      scope[key.toUpperCase()] = withNames(found.linear, dims);
      panel.tile = new Tile(scope[key.toUpperCase()], found.pads);
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      showError(panel.error, error, state[key]);
    }
  }
  shared = null;
  showError($("s-error"), null);
  if (shape && state.s.trim())
    try {
      const found = layoutOf(state.s, shape, scope, given);
      if (!found.linear.hasIn("offset")) throw new LayoutError(`a layout of shared memory has the input offset, this has ${dimNames(found.linear.ins)}`, "SwizzledSharedLayout(1, 1, 1, [1, 0]) is row after row");
      scope.S = withNames(found.linear, dims);
      shared = new Tile(scope.S, found.pads);
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      showError($("s-error"), error, state.s);
    }
  return [shape, scope];
}

function update() {
  $("shape").value = state.shape;
  $("dims").value = state.dims;
  $("bits").value = state.bits;
  $("s").value = state.s;
  $("x").value = state.x;
  $("access").value = state.access;
  evaluated = evaluateAll();
  panels.b.node.classList.toggle("empty", !panels.b.tile);
  Object.values(panels).forEach(drawPanel);
  drawMemory();
  makePlan();
  drawConversion();
  drawAlgebra(...evaluated);
  drawSelection();
}

function theme(wanted) {
  document.documentElement.dataset.theme = wanted;
  if (panels.a) update();
}

function start() {
  theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (e) => theme(e.matches ? "dark" : "light"));
  if (data.opens === "banks") document.querySelector("main").prepend($("memory"));
  makePanel("a");
  makePanel("b");
  const change = (id, key, draw = update) => $(id).addEventListener("change", () => { set({ [key]: $(id).value }); draw(); });
  ["shape", "dims", "bits", "s"].forEach((key) => change(key, key));
  change("x", "x", () => drawAlgebra(...evaluated));
  const memory = () => { drawMemory(); drawSelection(); };
  ["access", "vector", "warp", "wavefront"].forEach((key) => change(key, key, memory));
  change("via", "via", () => { makePlan(); drawConversion(); drawSelection(); });
  $("instruction").addEventListener("input", () => { set({ instruction: $("instruction").value }); memory(); });
  change("plan-warp", "pwarp", () => { drawConversion(); drawSelection(); });
  change("plan-block", "pblock", () => { drawConversion(); drawSelection(); });
  $("back").addEventListener("click", () => go(Math.max(0, Number(state.step) - 1)));
  $("forward").addEventListener("click", () => go(Math.min(plan.steps.length, Number(state.step) + 1)));
  $("play").addEventListener("click", togglePlay);
  $("clear").addEventListener("click", clear);
  $("place").addEventListener("submit", (e) => e.preventDefault());
  $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  $("link").addEventListener("click", () => copy($("link"), link(), "It is in the address bar"));
  $("copy-command").addEventListener("click", () => copy($("copy-command"), $("command").textContent, "Select it"));
  window.addEventListener("hashchange", () => { readAddress(); update(); });
  window.addEventListener("resize", () => { Object.values(panels).forEach(drawPanel); drawMemory(); drawConversion(); drawSelection(); });
  $("link").hidden = location.protocol === "about:"; // within another page it has no address
  readAddress();
  update();
}

// Puts a text into the clipboard, and says so on the button; browsers may refuse, as in frames.
async function copy(button, text, otherwise) {
  const name = button.textContent;
  if (button === $("link"))
    try {
      history.replaceState(null, "", text);
    } catch {
      // A frame without an address of its own.
    }
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = otherwise;
  }
  setTimeout(() => (button.textContent = name), 2000);
}

start();
