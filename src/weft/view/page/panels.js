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
    grid.hide();
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
  } else if ("offset" in tile.size) found.push(element("span", {}, "colour: bank of shared memory", view === "tile" ? `; the number: offset${tile.pads ? ", with padding" : ""}` : ""));
  else if (view === "tile") found.push(element("span", {}, `the numbers: ${tile.wide.join(", ") || "one place"}`));
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
