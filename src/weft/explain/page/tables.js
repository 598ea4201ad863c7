// Everything as tables, for whoever would rather read.

function tablesCard(view) {
  const { data } = view;
  const total = Object.keys(data.total).length ? [el("h3", {}, "Counters, over the whole grid"), countersTable(data.total, view.base?.total)] : [];
  const tiles = rowsTable(view, ["line", "variables", "tile", "layout"], data.tiles.map((t) => [t.at, t.names.join(", "), t.tile, el("code", {}, data.layouts[t.layout].text)]));
  const accesses = rowsTable(view, ["line", "access", "tile", "bytes", "sectors", "least", "why"], data.accesses.map((a) => [a.at, a.what, a.tile, a.bytes ? `${a.bytes}${a.most ? ` of ${a.most}` : ""}` : "", a.sectors[0] ? exact(a.sectors[0]) : "", a.sectors[0] ? exact(a.sectors[1]) : "", a.why]));
  const conversions = rowsTable(view, ["line", "tile", "plan", "cycles", "in a loop"], data.conversions.map((c) => [c.at, c.tile, c.plan, exact(c.cycles), c.loop ? "yes" : ""]));
  const registers = rowsTable(view, ["line", "words", "spilled", "of which"], data.registers.filter((h, i) => i < 12 || h.spills).map((h) => [h.at, String(h.words), h.spills ? String(h.spills) : "", Object.entries(h.values).map(([n, w]) => `${n} ${w}`).join(", ")]));
  const named = [["Layouts", tiles], ["Accesses of memory", accesses], ["Conversions", conversions], ["Registers that a thread holds", registers]];
  return el("section", { class: "card" }, el("details", {}, el("summary", {}, "Everything as tables"), el("div", { class: "scroll" }, total, ...named.filter(([, t]) => t).flatMap(([title, t]) => [el("h3", {}, title), t]))));
}

function rowsTable(view, head, rows) {
  if (!rows.length) return null;
  const cells = rows.map(([at, ...row]) => el("tr", {}, el("td", {}, at ? place(view, at, String(lineOf(at))) : "-"), row.map((cell) => el("td", {}, cell))));
  return el("table", {}, el("tr", {}, head.map((name) => el("th", {}, name))), cells);
}
