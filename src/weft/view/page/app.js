// The page: what is shown, kept in the address, and what follows from it.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const linearOf = (d) => new Linear(d.ins, d.outs, d.columns);
const given = Object.fromEntries(data.given.map((g) => [JSON.stringify([g.text.trim(), g.shape]), linearOf(g.layout)]));
const plan = data.plan && {
  ...data.plan,
  src: linearOf(data.plan.src),
  dst: linearOf(data.plan.dst),
  steps: data.plan.steps.map((s) => ({ ...s, map: s.map && linearOf(s.map) })),
};
const played = plan && play(plan);

// Everything that a link reproduces.
const START = {
  shape: data.shape.join("x"), bits: String(data.bits), a: data.a, b: data.b ?? "", s: data.s ?? "", x: data.x ?? "A",
  va: data.view ?? "tile", vb: data.view ?? "tile", za: "1", zb: "1", element: "", place: "", from: "a",
  access: "a", warp: "0", instruction: "0", wavefront: "all", step: "0", pwarp: "0", pblock: "0",
};
let state = { ...START };
let hovered = null; // {panel, element, place}
let evaluated = [null, {}]; // the shape, and the layouts by their names
const panels = {};

function readAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  state = { ...START };
  for (const [key, value] of found) if (key in state) state[key] = value;
}
function writeAddress() {
  const changed = Object.entries(state).filter(([key, value]) => value !== START[key]);
  const hash = new URLSearchParams(changed).toString();
  try {
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  } catch {
    // Some browsers refuse when the address changes very often, as while a slider is drawn; "Copy link" writes it again.
  }
}
function link() {
  return location.href.split("#")[0] + "#" + new URLSearchParams(state);
}
function set(changes) {
  Object.assign(state, Object.fromEntries(Object.entries(changes).map(([k, v]) => [k, String(v)])));
  writeAddress();
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children);
  return made;
}

function readShape() {
  const sizes = state.shape.split(/[x,\s]+/).filter(Boolean).map(Number);
  if (!sizes.length || sizes.some((s) => !Number.isInteger(s) || s < 1 || s & (s - 1))) throw new LayoutError("a shape is powers of two, as 32x64");
  return sizes;
}

function showError(node, error, text) {
  if (!error) return (node.textContent = "");
  const carets = error.start === undefined || text === undefined ? "" : `${text}\n${" ".repeat(error.start)}${"^".repeat(Math.max(1, error.end - error.start))}\n`;
  node.textContent = carets + error.message;
}

// -- the two panels

function makePanel(key) {
  const node = $("panel").content.cloneNode(true).firstElementChild;
  node.id = `panel-${key}`;
  const find = (selector) => node.querySelector(selector);
  const panel = { key, node, input: find(".expression"), error: find(".error"), legend: find(".legend"), tile: null };
  node.setAttribute("aria-label", `Layout ${key.toUpperCase()}`);
  find(".letter").textContent = key.toUpperCase();
  panel.input.id = `expression-${key}`;
  panel.input.setAttribute("aria-label", `Layout ${key.toUpperCase()}, an expression`);
  if (key === "b") panel.input.placeholder = "a second layout, to compare";
  panel.input.addEventListener("change", () => { set({ [key]: panel.input.value }); update(); });
  panel.radios = ["tile", "hardware", "matrix"].map((view) => {
    const radio = element("input", { type: "radio", name: `view-${key}`, value: view, onchange: () => { set({ ["v" + key]: view }); update(); } });
    find(".tabs").append(element("label", {}, radio, view[0].toUpperCase() + view.slice(1)));
    return radio;
  });
  const zoom = (factor) => { set({ ["z" + key]: Math.min(4, Math.max(0.25, state["z" + key] * factor)) }); drawPanel(panel); };
  find(".in").addEventListener("click", () => zoom(1.25));
  find(".out").addEventListener("click", () => zoom(0.8));
  panel.grid = new GridCanvas(find("canvas"), {
    hover: (cell) => point({ panel: key, element: cell.element, place: cell.place }),
    leave: () => point(null),
    pick: (cell) => pick(key, cell),
    clear,
  });
  panels[key] = panel;
  $("pair").append(node);
}

function point(what) {
  if (what && what.element == null) what = null;
  const same = what?.element === hovered?.element && what?.place === hovered?.place && what?.panel === hovered?.panel;
  if (same) return;
  hovered = what;
  drawSelection();
}
function pick(key, cell) {
  if (cell.element == null || cell.element < 0) return;
  hovered = null;
  set({ element: cell.element, place: key === "a" || key === "b" ? cell.place : "", from: key });
  drawSelection();
}
function clear() {
  hovered = null;
  set({ element: "", place: "", from: "a" });
  drawSelection();
}
// What is selected: hovered if something is, else what was picked.
function selected() {
  if (hovered) return hovered;
  if (state.element === "") return null;
  return { panel: state.from, element: Number(state.element), place: state.place === "" ? null : Number(state.place) };
}
// The place of the selected element in a panel: the one pointed at, or the first.
function placeIn(panel, chosen) {
  const { tile } = panel;
  if (!tile || !chosen || !(chosen.element < tile.elements)) return null;
  if (chosen.panel === panel.key && chosen.place != null && tile.elementOf[chosen.place] === chosen.element) return chosen.place;
  return tile.firstPlace[chosen.element] < 0 ? null : tile.firstPlace[chosen.element];
}

function drawPanel(panel) {
  const { tile, grid, legend } = panel;
  grid.zoom = Number(state["z" + panel.key]);
  if (!tile) {
    grid.scene = null;
    grid.canvas.style.height = grid.canvas.style.width = "0";
    legend.replaceChildren();
    return;
  }
  const bits = Number(state.bits);
  grid.show({ tile: tileScene, hardware: hardwareScene, matrix: matrixScene }[state["v" + panel.key]](tile, bits));
  legend.replaceChildren(...legendOf(tile, state["v" + panel.key]));
}

function legendOf(tile, view) {
  const swatch = (colour, text) => {
    const dot = element("span", { class: "swatch", "aria-hidden": "true" });
    dot.style.background = css(colour);
    return element("span", {}, dot, text);
  };
  const found = [];
  if (view === "matrix") found.push(...tile.layout.ins.map(([n], i) => swatch(inputColour(i), n)));
  else if (tile.distributed) {
    const warps = (tile.size.warp ?? 1) * (tile.size.block ?? 1);
    for (let w = 0; w < Math.min(warps, 16); w++)
      found.push(swatch(placeColour(w, warps, 1, 3), (tile.size.block ?? 1) > 1 ? `warp ${w % (tile.size.warp ?? 1)} of block ${Math.floor(w / (tile.size.warp ?? 1))}` : `warp ${w}`));
    found.push(element("span", {}, "light to dark: lane", view === "tile" ? "; the number: register" : ""));
  } else if ("offset" in tile.size) found.push(element("span", {}, "colour: bank of shared memory", view === "tile" ? "; the number: offset" : ""));
  found.push(element("span", {}, facts(tile.layout)));
  const most = Math.max(...tile.copies);
  if (most > 1) found.push(element("span", {}, `+ held in ${most} places`));
  return found;
}

function facts(layout) {
  const sizes = layout.ins.map(([n, log]) => `${2 ** log} ${n}${log ? "s" : ""}`).join(" · ");
  const kind = layout.isInvertible ? "a bijection" : layout.isSurjective ? "surjective, with copies" : layout.isInjective ? "injective, not surjective" : "neither surjective nor injective";
  return `${sizes}: ${kind}, rank ${layout.rank}`;
}

function drawSelection() {
  const chosen = selected();
  for (const panel of Object.values(panels)) {
    const { tile } = panel;
    const place = placeIn(panel, chosen);
    const thread = place == null || !tile.distributed ? null : tile.thread(place);
    const outside = thread !== null && ((cell) => cell.place != null && tile.thread(cell.place) !== thread);
    panel.grid.mark({
      element: place == null ? null : chosen.element,
      place,
      same: outside && ((cell) => cell.place != null && !outside(cell)),
      dim: outside || undefined,
    });
  }
  const mark = { element: chosen?.element };
  [banks, before, after].forEach((g) => g.mark(mark));
  inspect(chosen);
}

// -- the inspector

function inspect(chosen) {
  const box = $("inspector");
  const tile = panels.a.tile ?? panels.b.tile;
  if (!tile || !chosen || !(chosen.element < tile.elements)) {
    box.replaceChildren(element("h2", {}, "Element"), element("p", { class: "hint" }, "Point at an element, touch it, or move with the arrow keys; click or Enter keeps it."));
  } else {
    const at = tile.coordinates(chosen.element);
    const parts = [element("h2", { id: "element" }, `Element (${at.join(", ")})`)];
    for (const panel of Object.values(panels)) if (panel.tile) parts.push(...inspectIn(panel, chosen));
    box.replaceChildren(...parts);
  }
  drawPlaceForm(chosen);
}

const binary = (x, bits) => (bits ? x.toString(2).padStart(bits, "0") : "");

function inspectIn(panel, chosen) {
  const { tile, key } = panel;
  const place = placeIn(panel, chosen);
  const title = element("h3", {}, `in ${key.toUpperCase()}`);
  if (place == null) return [title, element("p", { class: "hint" }, "No place has it.")];
  const point = tile.point(place);
  const rows = tile.layout.ins.map(([name, log]) =>
    element("tr", { "data-dim": name }, element("th", { scope: "row" }, name), element("td", { class: "value" }, String(point[name])), element("td", { class: "bits" }, log ? "0b" + binary(point[name], log) : "—")),
  );
  const found = [title, element("table", { id: `place-${key}`, "aria-label": `Place in ${key.toUpperCase()}` }, ...rows)];
  const steps = tile.derivation(place);
  const order = tile.layout.ins.map((d) => d[0]);
  const made = steps.map(({ dim, bit, basis }) => {
    const chip = element("span", { class: "chip" }, `${dim} ${2 ** bit}`);
    chip.style.background = css(inputColour(order.indexOf(dim)));
    return element("tr", {}, element("td", {}, chip), element("td", {}, `(${basis.join(", ")})`));
  });
  made.push(element("tr", { class: "total" }, element("td", {}, steps.length ? "xor" : "no bit is set"), element("td", {}, `(${tile.coordinates(chosen.element).join(", ")})`)));
  found.push(element("table", { id: `made-${key}`, "aria-label": "The bases that make it" }, ...made));
  const copies = tile.copies[chosen.element];
  if (copies > 1) {
    const all = tile.places(chosen.element);
    const text = all.slice(0, 6).map((p) => tile.describe(p)).join("; ") + (all.length > 6 ? "; …" : "");
    found.push(element("p", { class: "hint" }, `${copies} places have it: ${text}`));
  }
  return found;
}

// From a place to its element.
function drawPlaceForm(chosen) {
  const form = $("place");
  if (form.contains(document.activeElement)) return;
  form.replaceChildren();
  for (const panel of Object.values(panels)) {
    if (!panel.tile) continue;
    const { tile, key } = panel;
    const place = placeIn(panel, chosen);
    const point = place == null ? {} : tile.point(place);
    const dims = tile.layout.ins.filter((d) => d[1]);
    const inputs = dims.map(([name, log]) =>
      element("label", {}, name, element("input", { type: "number", min: 0, max: 2 ** log - 1, value: point[name] ?? 0, name, id: `choose-${key}-${name}` })),
    );
    const read = () => {
      const at = Object.fromEntries(dims.map(([name, log], i) => [name, Math.min(2 ** log - 1, Math.max(0, Math.trunc(Number(inputs[i].lastChild.value)) || 0))]));
      const wanted = tile.layout.joinIn(at);
      pick(key, { element: tile.elementOf[wanted], place: wanted });
    };
    form.append(element("fieldset", { onchange: read }, element("legend", {}, `Place in ${key.toUpperCase()} → element`), ...inputs));
  }
}

// -- shared memory

const banks = new GridCanvas($("banks"), {
  hover: (cell) => { tellWord(cell); point({ panel: "s", element: cell.element, place: null }); },
  leave: () => point(null),
  pick: (cell) => pick("s", cell),
  clear,
});
let sharedLayout = null;
let accessed = null;

function tellWord(cell) {
  const tile = new Tile(sharedLayout);
  const at = cell.element == null ? "" : `, element (${tile.coordinates(cell.element).join(", ")})`;
  const who = cell.lanes ? `: ${cell.lanes.length > 1 ? "lanes" : "lane"} ${cell.lanes.join(", ")} in wavefront ${cell.wavefront}` : ": not accessed by this instruction";
  $("word").textContent = `byte ${cell.word * 4}, bank ${cell.word % BANKS}${at}${who}`;
}

function drawMemory() {
  const body = $("memory-body");
  const own = ["a", "b"].filter((key) => panels[key].tile?.layout.hasIn("lane"));
  const by = own.includes(state.access) ? state.access : own[0];
  const registers = by ? panels[by].tile.layout : null;
  $("access").value = by ?? "a";
  for (const option of $("access").options) option.disabled = !own.includes(option.value);
  body.hidden = !sharedLayout || !registers;
  banks.scene = null;
  if (body.hidden) return;
  const bits = Number(state.bits);
  try {
    const found = sharedAccess(registers, sharedLayout, bits);
    const warps = 2 ** registers.inLog("warp");
    const warp = Math.min(warps - 1, Math.max(0, Number(state.warp) || 0));
    $("warp").max = warps - 1;
    $("warp").value = warp;
    const count = 2 ** (found.registers.length - Math.log2(found.vector));
    const index = Math.min(count - 1, Math.max(0, Number(state.instruction) || 0));
    $("instruction").max = count - 1;
    $("instruction").value = index;
    $("instruction-of").textContent = `${index + 1} of ${count}`;
    accessed = instruction(found, bits, warp, index);
    fillWavefronts();
    const total = accessed.wavefronts * count;
    const lost = accessed.wavefronts - accessed.phases;
    $("banks-text").textContent =
      `${found.vector * bits} bits a lane (${found.vector} element${found.vector > 1 ? "s" : ""}): ${accessed.wavefronts} wavefront${accessed.wavefronts > 1 ? "s" : ""}, ` +
      `least ${accessed.phases}; ${lost ? `${lost} lost to bank conflicts` : "no bank conflict"}. ${count} instruction${count > 1 ? "s" : ""} a warp, ${total} wavefronts.`;
    showBanks(bits);
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    $("banks-text").textContent = `${by.toUpperCase()} and S do not fit each other: ${error.message}`;
    $("banks").style.height = "0";
  }
}

function fillWavefronts() {
  const select = $("wavefront");
  const wanted = state.wavefront === "all" ? "all" : String(Math.min(accessed.wavefronts - 1, Number(state.wavefront) || 0));
  select.replaceChildren(element("option", { value: "all" }, "all"), ...Array.from({ length: accessed.wavefronts }, (_, i) => element("option", { value: i }, String(i))));
  select.value = wanted;
}

function showBanks(bits) {
  const tile = new Tile(sharedLayout);
  const offsets = 2 ** sharedLayout.inLog("offset");
  const only = $("wavefront").value;
  const words = only === "all" ? accessed.words : new Map([...accessed.words].filter(([, w]) => w.wavefront === Number(only)));
  const perWord = 32 / bits;
  const elementAt = (word) => {
    const offset = Math.floor(word * perWord);
    return offset < offsets ? tile.elementOf[sharedLayout.joinIn({ offset })] : null;
  };
  const scene = bankScene((offsets * bits) / 8, words, bits, elementAt);
  scene.has = (word, wanted) => {
    for (let o = Math.floor(word * perWord); o < Math.max((word + 1) * perWord, Math.floor(word * perWord) + 1) && o < offsets; o++)
      if (tile.elementOf[sharedLayout.joinIn({ offset: o })] === wanted) return true;
    return false;
  };
  banks.show(scene);
}

// -- the conversion

const step = (what) => ({
  hover: (cell) => { tellMove(cell, what); point({ panel: "plan", element: cell.element, place: null }); },
  leave: () => { $("moved").textContent = "\u00a0"; point(null); },
  pick: (cell) => pick("plan", cell),
  clear,
});
const before = new GridCanvas($("before"), step("before"));
const after = new GridCanvas($("after"), step("after"));
let timer = null;

function placeName(s, place) {
  if (s.kind === "memory") return `offset ${place % s.own}${s.held.length > s.own ? ` of block ${Math.floor(place / s.own)}` : ""}`;
  const p = s.layout.splitIn(place);
  return `register ${p.register} of lane ${p.lane}, warp ${p.warp}`;
}
function tellMove(cell, what) {
  const at = Number(state.step);
  const s = played.states[what === "after" ? at : Math.max(0, at - 1)];
  const name = `(${played.source.coordinates(cell.element).join(", ")}) in ${placeName(s, cell.place)}`;
  const from = what === "after" && s.from && at && plan.steps[at - 1].kind !== "barrier" ? `, from ${placeName(s.kind === "memory" || plan.steps[at - 1].kind !== "load" ? played.states.slice(0, at).findLast((x) => x.kind === "registers") : played.states.slice(0, at).findLast((x) => x.kind === "memory"), s.from[cell.place])}` : "";
  $("moved").textContent = name + from;
}

function drawConversion() {
  $("conversion").hidden = !plan && !state.b;
  $("conversion-body").hidden = !plan;
  if (!plan) {
    $("conversion-hint").textContent = `Plans are made by Weft: weft layout convert '${state.a}' '${state.b}' --shape ${state.shape} --bits ${state.bits} --html page.html`;
    return;
  }
  const current = panels.a.tile?.layout.equals(plan.source) && panels.b.tile?.layout.equals(plan.result);
  $("conversion-hint").textContent = current ? `${plan.kind}${plan.scope ? ` (${plan.scope})` : ""}, elements of ${plan.bits} bits, for ${plan.target}` : "This plan is for the layouts that the page was made with; A or B has changed since.";
  const last = plan.steps.length;
  const at = Math.min(last, Math.max(0, Number(state.step) || 0));
  state.step = String(at);
  $("back").disabled = at === 0;
  $("forward").disabled = at === last;
  $("steps").replaceChildren(...["start", ...plan.steps.map((s) => s.kind)].map((kind, i) =>
    element("li", {}, element("button", { type: "button", "aria-current": i === at ? "step" : null, "data-step": i, onclick: () => go(i) }, `${i}. ${kind}`)),
  ));
  $("step-text").textContent = at ? plan.steps[at - 1].text : last ? "Every element is where A has it." : "Nothing has to be done: every element is in its place.";
  if (at === last) $("step-text").textContent += played.right ? " Every element is where B wants it." : " An element is in a wrong place!";
  const warps = 2 ** plan.src.inLog("warp");
  const blocks = 2 ** plan.src.inLog("block");
  const clamp = (id, key, size) => {
    $(id).max = size - 1;
    state[key] = String(Math.min(size - 1, Math.max(0, Number(state[key]) || 0)));
    $(id).value = state[key];
    return Number(state[key]);
  };
  const where = { warp: clamp("plan-warp", "pwarp", warps), block: clamp("plan-block", "pblock", blocks) };
  $("plan-block-label").hidden = blocks === 1;
  const states = [played.states[Math.max(0, at - 1)], played.states[at]];
  if (at && plan.steps[at - 1].kind === "load") states[0] = played.states.slice(0, at).findLast((s) => s.kind === "memory");
  [["before", before, states[0]], ["after", after, states[1]]].forEach(([id, grid, s]) => {
    $(`${id}-name`).textContent = `${id}: ${s.kind === "memory" ? "shared memory" : `registers of warp ${where.warp}`}; colours show where elements were in A`;
    grid.show(stateScene(s, played.source, plan.bits, where));
  });
}
function go(to) {
  set({ step: to });
  drawConversion();
  drawSelection();
}
function togglePlay() {
  const running = timer !== null;
  clearInterval(timer);
  timer = running ? null : setInterval(() => (Number(state.step) < plan.steps.length ? go(Number(state.step) + 1) : togglePlay()), 1400);
  $("play").textContent = running ? "Play" : "Pause";
  $("play").setAttribute("aria-pressed", String(!running));
  if (!running && Number(state.step) >= plan.steps.length) go(0);
}

// -- algebra

const matrix = new GridCanvas($("matrix"), {});

function drawAlgebra(shape, scope) {
  $("bases").textContent = $("facts").textContent = "";
  matrix.scene = null;
  $("matrix").style.height = "0";
  if (!state.x.trim()) return showError($("x-error"), null);
  try {
    const layout = layoutOf(state.x, shape, scope, given);
    showError($("x-error"), null);
    $("facts").textContent = facts(layout);
    $("bases").textContent = layout.toString().slice(1);
    const tile = { layout, names: layout.outs.map((d) => d[0]), coordinates: () => [] };
    if (layout.inBits && layout.outBits) matrix.show({ ...matrixScene(tile), active: undefined });
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    showError($("x-error"), error, state.x);
  }
}

// -- all of it

function evaluateAll() {
  let shape = null;
  try {
    shape = readShape();
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
      const layout = layoutOf(state[key], shape, scope, given);
      scope[key.toUpperCase()] = layout;
      panel.tile = new Tile(layout);
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      showError(panel.error, error, state[key]);
    }
  }
  sharedLayout = null;
  showError($("s-error"), null);
  if (shape && state.s.trim())
    try {
      const layout = layoutOf(state.s, shape, scope, given);
      if (!layout.hasIn("offset")) throw new LayoutError("a shared layout has the input dimension offset");
      new Tile(layout);
      scope.S = sharedLayout = layout;
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      showError($("s-error"), error, state.s);
    }
  return [shape, scope];
}

function update() {
  $("shape").value = state.shape;
  $("bits").value = state.bits;
  $("s").value = state.s;
  $("x").value = state.x;
  $("access").value = state.access;
  evaluated = evaluateAll();
  panels.b.node.classList.toggle("empty", !panels.b.tile);
  Object.values(panels).forEach(drawPanel);
  drawMemory();
  drawConversion();
  drawAlgebra(...evaluated);
  drawSelection();
}

function theme(wanted) {
  document.documentElement.dataset.theme = wanted;
  if (panels.a) drawSelection();
}

function start() {
  theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (e) => theme(e.matches ? "dark" : "light"));
  if (plan) {
    plan.source = linearOf(data.plan.source);
    plan.result = linearOf(data.plan.result);
    $("explain").textContent = plan.explain;
  }
  makePanel("a");
  makePanel("b");
  const change = (id, key, draw = update) => $(id).addEventListener("change", () => { set({ [key]: $(id).value }); draw(); });
  ["shape", "bits", "s"].forEach((key) => change(key, key));
  change("x", "x", () => drawAlgebra(...evaluated));
  const memory = () => { drawMemory(); drawSelection(); };
  ["access", "warp", "wavefront"].forEach((key) => change(key, key, memory));
  $("instruction").addEventListener("input", () => { set({ instruction: $("instruction").value }); memory(); });
  change("plan-warp", "pwarp", () => { drawConversion(); drawSelection(); });
  change("plan-block", "pblock", () => { drawConversion(); drawSelection(); });
  $("back").addEventListener("click", () => go(Math.max(0, Number(state.step) - 1)));
  $("forward").addEventListener("click", () => go(Math.min(plan.steps.length, Number(state.step) + 1)));
  $("play").addEventListener("click", togglePlay);
  $("clear").addEventListener("click", clear);
  $("place").addEventListener("submit", (e) => e.preventDefault());
  $("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  $("link").addEventListener("click", copyLink);
  window.addEventListener("hashchange", () => { readAddress(); update(); });
  window.addEventListener("resize", () => { Object.values(panels).forEach(drawPanel); drawMemory(); drawConversion(); drawSelection(); });
  readAddress();
  update();
}

async function copyLink() {
  const text = link();
  history.replaceState(null, "", text);
  try {
    await navigator.clipboard.writeText(text);
    $("link").textContent = "Copied";
  } catch {
    $("link").textContent = "It is in the address bar";
  }
  setTimeout(() => ($("link").textContent = "Copy link"), 2000);
}

start();
