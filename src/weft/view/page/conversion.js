// -- the conversion: Weft's plan while it is for A and B as they are, else one that the page makes

const step = (what) => ({
  hover: (cell) => { tellMove(cell, what); point({ panel: "plan", element: cell.element, place: null }); },
  leave: () => { $("moved").textContent = "\u00a0"; point(null); },
  pick: (cell) => pick("plan", cell),
  clear,
});
const before = new GridCanvas($("before"), step("before"));
const after = new GridCanvas($("after"), step("after"));
let plan = null;
let played = null;
let timer = null;

// Plan for what A, B and S are now; sets the messages of the section.
function makePlan() {
  const [a, b] = [panels.a.tile?.layout, panels.b.tile?.layout];
  const bits = Number(state.bits);
  plan = played = null;
  showError($("conversion-error"), null);
  $("conversion").hidden = !state.b.trim();
  $("plan-line").hidden = $("conversion-body").hidden = true;
  $("conversion-hint").textContent = a && b ? "" : "A and B have to be layouts.";
  if (!a || !b) return;
  const dims = state.dims.split(/[,\s]+/).filter(Boolean);
  const current = made && made.bits === bits && a.equals(withNames(made.source, dims)) && b.equals(withNames(made.result, dims));
  $("plan-line").hidden = false;
  fillVia(current);
  $("command").textContent = command();
  try {
    if (state.via === "auto" && current) plan = made;
    else if (state.via === "s" && shared?.pads) throw new LayoutError("through S: offsets of a PaddedSharedLayout are not linear, and the page plays linear steps", "the wavefronts of its accesses are shown under Shared memory");
    else plan = planHere(a, b, bits, state.via === "s" && shared ? shared.layout : null);
    played = play(plan);
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    plan = null;
    return showError($("conversion-error"), error);
  }
  $("conversion-body").hidden = false;
}

function fillVia(current) {
  const options = [["auto", current ? `Weft's plan for ${made.target}` : "planned in this page"]];
  if (current) options.push(["here", "planned in this page"]);
  if (shared) options.push(["s", "through shared memory as S"]);
  $("via").replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  if (!options.some(([value]) => value === state.via)) state.via = "auto";
  $("via").value = state.via;
  $("command-line").hidden = state.via === "auto" && Boolean(current);
}

// What asks Weft for its plan, for a shell; names of other layouts are put in.
function command() {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const target = made?.target ?? "cuda:90";
  return `weft layout convert ${quote(spelled("a"))} ${quote(spelled("b"))} --shape ${state.shape.trim().split(/[x,\s]+/).join("x")} --bits ${state.bits} --target ${target} --html page.html`;
}
function spelled(key) {
  const text = state[key].trim();
  return tokens(text).reduceRight((all, t, i, found) => {
    const free = t.kind === "name" && t.text === "A" && key !== "a" && found[i - 1]?.text !== "." && found[i + 1].text !== "=";
    return free ? `${all.slice(0, t.start)}(${spelled("a")})${all.slice(t.end)}` : all;
  }, text);
}

function placeName(s, place) {
  if (s.kind === "memory") return `offset ${place % s.own}${s.held.length > s.own ? ` of block ${Math.floor(place / s.own)}` : ""}`;
  const p = s.layout.splitIn(place);
  return `register ${p.register} of lane ${p.lane}, warp ${p.warp}`;
}
function tellMove(cell, what) {
  const at = Number(state.step);
  const s = played.states[what === "after" ? at : Math.max(0, at - 1)];
  const name = `(${played.source.coordinates(cell.element).join(", ")}) in ${placeName(s, cell.place)}`;
  const kind = at ? plan.steps[at - 1].kind : "barrier";
  const last = (wanted) => played.states.slice(0, at).findLast((x) => x.kind === wanted);
  const from = what === "after" && s.from && kind !== "barrier" ? `, from ${placeName(last(kind === "load" ? "memory" : "registers"), s.from[cell.place])}` : "";
  $("moved").textContent = name + from;
}

function explanation() {
  if (!plan.here) return plan.explain;
  const kinds = {
    nothing: "Every element is in its place already.",
    registers: "Lanes and warps stay: registers are renamed, which costs nothing.",
    shuffles: "Every element stays in its warp, so that shuffles can do it; shared memory may cost less.",
    shared: "Elements go from warp to warp, or lanes would have to read several registers of one lane: through shared memory.",
    cluster: "Elements go from block to block: through the shared memory of the cluster.",
  };
  const why = state.via === "s" ? "Through the layout of shared memory that was chosen." : kinds[plan.kind];
  return `${why}\nThe page finds a way by algebra and weighs no costs: no ldmatrix or stmatrix, no hybrids, no short memory.\nWhat Weft does on a machine, and what it costs, is said by the command above.`;
}

function drawConversion() {
  if (!plan) return before.hide(), after.hide();
  const kind = `${plan.kind}${plan.scope ? ` (${plan.scope})` : ""}, elements of ${plan.bits} bits`;
  $("conversion-hint").textContent = plan.here ? `${kind}, planned in this page` : `${kind}, for ${plan.target}`;
  $("explain").textContent = explanation();
  const last = plan.steps.length;
  const at = Math.min(last, Math.max(0, Number(state.step) || 0));
  state.step = String(at);
  $("back").disabled = at === 0;
  $("forward").disabled = at === last;
  $("play").disabled = last === 0;
  $("steps").replaceChildren(...["start", ...plan.steps.map((s) => s.kind)].map((name, i) =>
    element("li", {}, element("button", { type: "button", "aria-current": i === at ? "step" : null, "data-step": i, onclick: () => go(i) }, `${i}. ${name}`)),
  ));
  $("step-text").textContent = at ? plan.steps[at - 1].text : last ? "Every element is where A has it." : "Nothing has to be done: every element is in its place.";
  if (at === last && !played.right) $("step-text").textContent = "An element is in a wrong place!";
  else if (at && at === last) $("step-text").textContent += " Every element is where B wants it.";
  const clamp = (id, key, size) => {
    $(id).max = size - 1;
    state[key] = String(Math.min(size - 1, Math.max(0, Number(state[key]) || 0)));
    $(id).value = state[key];
    return Number(state[key]);
  };
  const blocks = 2 ** plan.src.inLog("block");
  const where = { warp: clamp("plan-warp", "pwarp", 2 ** plan.src.inLog("warp")), block: clamp("plan-block", "pblock", blocks) };
  $("plan-block-label").hidden = blocks === 1;
  drawStates(at, where);
}

function drawStates(at, where) {
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
  timer = running ? null : setInterval(() => (plan && Number(state.step) < plan.steps.length ? go(Number(state.step) + 1) : togglePlay()), 1400);
  $("play").textContent = running ? "Play" : "Pause";
  $("play").setAttribute("aria-pressed", String(!running));
  if (!running && Number(state.step) >= plan.steps.length) go(0);
}
