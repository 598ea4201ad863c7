// The page: what is shown, kept in the address, and what follows from it.

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const linearOf = (d) => new Linear(d.ins, d.outs, d.columns);
const given = Object.fromEntries(data.given.map((g) => [JSON.stringify([g.text.trim(), g.shape]), { linear: linearOf(g.layout), pads: g.pads }]));
// The plan that Weft made, if the page was made with one.
const made = data.plan && {
  ...data.plan,
  src: linearOf(data.plan.src),
  dst: linearOf(data.plan.dst),
  source: linearOf(data.plan.source),
  result: linearOf(data.plan.result),
  steps: data.plan.steps.map((s) => ({ ...s, map: s.map && linearOf(s.map) })),
};

// Everything that a link reproduces.
const START = {
  shape: data.shape.join("x"), dims: (data.dims ?? []).join(", "), bits: String(data.bits), a: data.a, b: data.b ?? "", s: data.s ?? "", x: data.x ?? "A",
  va: data.view ?? "tile", vb: data.view ?? "tile", za: "1", zb: "1", element: "", place: "", from: "a",
  access: "a", vector: "0", warp: "0", instruction: "0", wavefront: "all", via: "auto", step: "0", pwarp: "0", pblock: "0",
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
  const odd = sizes.findIndex((s) => !isPower(s));
  if (!sizes.length || odd >= 0) throw new LayoutError(`a shape is powers of two, as 32x64${odd >= 0 ? `; size ${odd} is ${state.shape.split(/[x,\s]+/).filter(Boolean)[odd]}` : ""}`);
  return sizes;
}

// Names for dim0, dim1, ..., where they are given.
function readDims(rank) {
  const found = state.dims.split(/[,\s]+/).filter(Boolean);
  if (!found.length) return null;
  if (found.length !== rank || new Set(found).size !== rank) throw new LayoutError(`dims must name the ${rank} dimensions of the tile, each once, got ${found.join(", ")}`);
  return found;
}

// An error below its field: the expression with carets in one piece, the message in as many lines as it takes.
function showError(node, error, text) {
  node.replaceChildren();
  if (!error) return;
  if (error.start !== undefined && text !== undefined) {
    const carets = " ".repeat(error.start) + "^".repeat(Math.max(1, error.end - error.start));
    node.append(element("span", { class: "excerpt" }, `${text}\n${carets}\n`));
  }
  node.append(error.message + (error.hint ? `\nhint: ${error.hint}` : ""));
}
