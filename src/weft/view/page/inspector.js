// -- the inspector

function inspect(chosen) {
  const box = $("inspector");
  const tile = panels.a.tile ?? panels.b.tile;
  if (!tile || !chosen || !(chosen.element < tile.elements)) {
    box.replaceChildren(element("h2", {}, "Element"), element("p", { class: "hint" }, "Point at an element, touch it, or move with the arrow keys; click or Enter keeps it."));
  } else {
    const own = !tile.layout.isNumbered; // names that say something
    const at = tile.coordinates(chosen.element).map((x, i) => (own ? `${tile.names[i]} ${x}` : x));
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
  if (tile.inMemory) rows.push(...memoryRows(tile, point));
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

// Where an offset is, in bytes and banks.
function memoryRows(tile, point) {
  const bits = Number(state.bits);
  const at = padded(point.offset, tile.pads);
  const byte = (at * bits) / 8;
  const row = (name, text) => element("tr", { "data-dim": name }, element("th", { scope: "row" }, name), element("td", { class: "value" }, text), element("td", {}));
  const found = [row("byte", String(byte)), row("bank", String(Math.floor(byte / 4) % BANKS))];
  return tile.pads ? [row("padded", String(at)), ...found] : found;
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
