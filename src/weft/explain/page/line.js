// What is known of a line: its layouts, accesses, conversions, barriers, buffers, registers, counters, and other remarks.

function place(view, at, text) {
  if (at === null || at === undefined) return text ?? "";
  return el("button", { class: "place", type: "button", onclick: () => view.pin(at, true) }, text ?? `line ${lineOf(at)}`);
}
const site = (view, s) => (s ? [el("code", {}, s.what), s.at ? [" on ", place(view, s.at)] : ""].flat() : "");
const joined = (parts, by = ", ") => parts.flatMap((part, i) => (i ? [by, ...[part].flat()] : [part].flat()));

function section(title, items) {
  return items.length ? [el("h3", {}, title), ...items] : [];
}
const item = (picture, ...parts) => el("div", { class: "item" }, picture ?? el("span"), el("div", {}, ...parts));

function tileItem(view, tile) {
  const { layouts } = view.data;
  const names = tile.names.join(", ") || tile.tile;
  const others = tile.others.map((o) => el("li", {}, ...site(view, o), " wanted ", el("span", { class: "mono" }, layouts[o.layout].text), " ", compare(view, tile.layout, o.layout, names)));
  return item(
    picture(layouts, tile.layout, names),
    el("div", { class: "names" }, names, " ", el("span", { class: "soft small" }, tile.names.length ? tile.tile : "")),
    el("div", { class: "layout" }, layouts[tile.layout].text),
    el("div", { class: "small" }, ...(tile.by ? ["for ", ...site(view, tile.by)] : ["the default, as no operation asked for any"]), tile.why ? `; ${tile.why}` : ""),
    others.length ? el("ul", { class: "small" }, others) : null,
  );
}
// A button that opens the layout page with two layouts beside each other.
function compare(view, a, b, title) {
  if (!view.data.layouts[a]?.linear || !view.data.layouts[b]?.linear) return "";
  return el("button", { class: "place", type: "button", onclick: () => openLayout(view.data.layouts, a, title, b) }, "compare");
}

function meter(bytes, most) {
  const cells = Array.from({ length: most }, (_, i) => el("i", { class: i < bytes ? (bytes < most ? "low" : "full") : null }));
  return el("div", { class: "meter", title: `${bytes} of ${most} bytes` }, cells);
}

function accessItem(view, access) {
  const tile = view.data.tiles.find((t) => t.at === access.at && t.tile === access.tile) ?? view.data.tiles.find((t) => t.at === access.at);
  const [sectors, least] = access.sectors;
  const [passes, ideal] = access.wavefronts;
  const against = (name, n, best) => (n ? el("div", { class: "small" }, `${exact(n)} ${name}${best && best <= n ? `, least ${exact(best)}` : ""}`, best && n > best ? el("b", { class: "worse" }, ` ${(n / best).toFixed(2)} times`) : "") : null);
  return item(
    tile ? picture(view.data.layouts, tile.layout, `${access.what} of ${access.tile}`) : null,
    el("div", { class: "names" }, `${access.what} `, el("span", { class: "soft small" }, access.tile), access.loop ? el("span", { class: "badge" }, "in a loop") : ""),
    access.most ? el("div", { class: "small" }, `${access.bytes} bytes at a time, of ${access.most}`, meter(access.bytes, access.most)) : access.bytes ? el("div", { class: "small" }, `${access.bytes} bytes at a time`) : null,
    against("sectors", sectors, least),
    against("wavefronts", passes, ideal),
    access.why ? el("div", { class: "small" }, access.why) : null,
  );
}

function conversionItem(view, c) {
  const { layouts } = view.data;
  const title = `conversion of ${c.tile}`;
  const pictures = [picture(layouts, c.source, title, c.result), picture(layouts, c.result, title, c.source)];
  const both = pictures[0] && pictures[1] ? el("div", { class: "pairs" }, pictures[0], "→", pictures[1]) : null;
  return item(
    both,
    el("div", { class: "names" }, `${c.plan} `, el("span", { class: "soft small" }, c.tile), c.loop ? el("span", { class: "badge" }, "in a loop") : ""),
    el("div", { class: "small" }, c.free ? "free" : `${plural(Math.round(c.cycles), "cycle")} of a warp`, ...(c.by ? [": made by ", ...site(view, c.by), c.for?.length ? ", wanted otherwise by " : "", ...joined((c.for ?? []).map((s) => site(view, s)))] : [])),
    c.considered.length ? el("div", { class: "small soft" }, `not ${c.considered.join("; ")}`) : null,
  );
}

function barrierItem(view, b) {
  return item(null, el("div", {}, el("b", {}, b.what), " between ", ...site(view, b.earlier), " and ", ...site(view, b.later)), el("div", { class: "small soft" }, b.text));
}

function countersTable(counts, before) {
  const names = Object.keys({ ...counts, ...(before ?? {}) });
  const rows = names.map((name) => el("tr", {}, el("td", {}, name), el("td", { class: "r" }, exact(counts[name] ?? 0)), before ? el("td", { class: "r" }, (before[name] ?? 0) === (counts[name] ?? 0) ? "" : `was ${exact(before[name] ?? 0)}`) : ""));
  return el("table", {}, rows);
}

function lineDetail(view, at) {
  const { data } = view;
  const line = data.lines.find((l) => l.at === at);
  if (!line) return [el("p", { class: "soft" }, "Point at a line, or go through the source with the arrow keys.")];
  const on = (rows) => data[rows].filter((row) => row.at === at);
  const near = data.buffers.filter((b) => [b.first, b.last, b.at].includes(at));
  const held = on("registers");
  const before = view.base?.lines.find((l) => l.at === view.inBase(at))?.counts;
  return [
    el("h2", {}, `Line ${line.number}`, line.share >= 0.0005 ? el("span", { class: "soft" }, `  ${(line.share * 100).toFixed(1)}% of a warp's time`) : ""),
    ...on("findings").map((f) => findingItem(view, f)),
    ...section("Layouts", on("tiles").map((t) => tileItem(view, t))),
    ...section("Accesses of memory", on("accesses").map((a) => accessItem(view, a))),
    ...section("Conversions", on("conversions").map((c) => conversionItem(view, c))),
    ...section("Barriers and fences", on("barriers").map((b) => barrierItem(view, b))),
    ...section("Buffers", near.map((b) => item(null, el("b", {}, `${exact(b.bytes)} bytes`), ` for ${b.purpose}, at byte ${exact(b.offset)}`))),
    ...section("Registers that a thread holds here", held.map((h) => item(null, el("b", {}, plural(h.words, "word")), ": ", Object.entries(h.values).map(([n, w]) => `${n} ${w}`).join(", "), h.spills ? `; the assembler stores and loads ${plural(h.spills, "word")} of them` : ""))),
    ...section("Decisions", on("remarks").map((r) => item(null, el("b", {}, r.kind), `: ${r.text}`))),
    ...(line.counts && Object.keys(line.counts).length ? [el("h3", {}, "Counters, over the whole grid"), countersTable(line.counts, before)] : []),
  ];
}
