// Pictures: the roofline, one iteration of a loop on a time line, and shared memory by lines of the source.

const figure = (title, drawn, caption, legend) => el("section", { class: "card", "aria-label": title }, el("h2", {}, title), el("figure", {}, drawn, caption ? el("figcaption", {}, caption) : null), legend ?? null);
const canvasOf = (width, height, label) => svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": label });
const text = (x, y, words, more = {}) => svg("text", { x, y, ...more }, words);
const inLegend = (names) => el("div", { class: "legend", style: "padding: 6px 0 0" }, names.map(([kind, name]) => el("span", {}, el("span", { class: `swatch ${kind}` }), name)));

// -- the roofline

const OPS = 1e9; // operations of a second in one of a nanosecond

function rooflineFigure(view) {
  const r = view.data.roofline;
  if (!r || !r.memories.length) return null;
  const before = view.base?.roofline;
  const [w, h, left, right, top, bottom] = [480, 280, 84, 14, 16, 38];
  const points = r.memories.map(([name, bytes, rate]) => ({ name, rate, x: r.operations / bytes }));
  const old = (before?.memories ?? []).map(([name, bytes]) => ({ name, x: before.operations / bytes }));
  const ridges = points.map((p) => r.peak / p.rate);
  const xs = [...points, ...old].map((p) => p.x).concat(ridges);
  const [x0, x1] = [Math.log10(Math.min(...xs)) - 0.6, Math.log10(Math.max(...xs)) + 0.6];
  const ys = [r.rate, r.peak, before?.rate ?? r.rate, ...points.map((p) => p.rate * 10 ** x0)];
  const [y0, y1] = [Math.log10(Math.min(...ys)) - 0.15, Math.log10(Math.max(...ys)) + 0.25];
  const X = (x) => left + ((Math.log10(x) - x0) / (x1 - x0)) * (w - left - right);
  const Y = (y) => h - bottom - ((Math.log10(y) - y0) / (y1 - y0)) * (h - top - bottom);
  const drawn = canvasOf(w, h, `Roofline: ${short(r.rate * OPS)}FLOP/s of ${short(r.peak * OPS)}FLOP/s`);
  for (let e = Math.ceil(x0); e <= x1; e++) drawn.append(svg("line", { class: "axis", x1: X(10 ** e), x2: X(10 ** e), y1: top, y2: h - bottom }), text(X(10 ** e), h - bottom + 15, e < 0 ? String(10 ** e) : exact(10 ** e), { "text-anchor": "middle" }));
  for (let e = Math.ceil(y0); e <= y1; e++) drawn.append(svg("line", { class: "axis", x1: left, x2: w - right, y1: Y(10 ** e), y2: Y(10 ** e) }), text(left - 6, Y(10 ** e) + 4, `${short(10 ** e * OPS)}FLOP/s`, { "text-anchor": "end" }));
  drawn.append(text((left + w - right) / 2, h - 6, `floating-point operations of ${r.what} for each byte`, { "text-anchor": "middle" }));
  points.forEach((p, i) => {
    const start = Math.max(10 ** x0, 10 ** y0 / p.rate);
    drawn.append(svg("path", { class: "roof", "stroke-dasharray": i ? "5 4" : null, d: `M${X(start)} ${Y(p.rate * start)}L${X(ridges[i])} ${Y(r.peak)}${i === 0 || ridges[i] < ridges[0] ? `H${w - right}` : ""}` }));
    const middle = 10 ** ((Math.log10(start) + Math.log10(ridges[i])) / 2);
    const slope = (-Math.atan2(Y(p.rate * start) - Y(r.peak), X(ridges[i]) - X(start)) * 180) / Math.PI;
    drawn.append(text(0, -6, `${p.name} ${short(p.rate * OPS)}B/s`, { "text-anchor": "middle", transform: `translate(${X(middle)} ${Y(p.rate * middle)}) rotate(${slope})` }));
  });
  drawn.append(text(w - right, Y(r.peak) - 6, `${short(r.peak * OPS)}FLOP/s of ${r.what}`, { "text-anchor": "end" }));
  old.slice(0, 1).forEach((p) => drawn.append(svg("circle", { cx: X(p.x), cy: Y(before.rate), r: 5, fill: "none", stroke: "var(--faint)", "stroke-width": 2 }, svg("title", {}, "as it is"))));
  points.forEach((p, i) => {
    const roof = Math.min(r.peak, p.rate * p.x);
    if (!i) drawn.append(svg("line", { class: "drop", x1: X(p.x), x2: X(p.x), y1: Y(r.rate), y2: Y(roof) }));
    drawn.append(svg("circle", { class: "point", cx: X(p.x), cy: Y(r.rate), r: i ? 4 : 6, opacity: i ? 0.55 : 1 }, svg("title", {}, `${p.x.toPrecision(3)} operations for each byte of ${p.name}`)));
  });
  const roof = Math.min(r.peak, points[0].rate * points[0].x);
  return figure("Roofline", drawn, `${short(r.operations)}FLOP; ${short(r.rate * OPS)}FLOP/s, which is ${percent(r.rate / roof)} of what ${points[0].name} and ${r.what} allow. The smaller point counts bytes of ${points[1]?.name ?? points[0].name}.`);
}

// -- one iteration of a loop

function loopFigure(view, loop) {
  const same = view.data.iterations.filter((other) => other.at === loop.at);
  const which = same.length > 1 ? `, ${same.indexOf(loop) + 1} of ${same.length} in the code` : "";
  const [w, left, top, row] = [1000, 118, 22, 26];
  const h = top + loop.tracks.length * row + 26;
  const X = (cycle) => left + (cycle / loop.cycles) * (w - left - 12);
  const drawn = canvasOf(w, h, `One iteration of the loop on line ${lineOf(loop.at)}: ${plural(Math.round(loop.cycles), "cycle")}`);
  const step = 10 ** Math.floor(Math.log10(loop.cycles / 3)) * (loop.cycles / 10 ** Math.floor(Math.log10(loop.cycles / 3)) > 12 ? 5 : 2);
  for (let c = 0; c <= loop.cycles; c += step) drawn.append(svg("line", { class: "axis", x1: X(c), x2: X(c), y1: top, y2: h - 22 }), text(X(c), h - 8, exact(c), { "text-anchor": "middle" }));
  drawn.append(text(12, h - 8, "cycles"));
  loop.tracks.forEach(([name, events], i) => {
    const y = top + i * row;
    drawn.append(text(12, y + 16, name, { class: "strong" }));
    // what goes on after the end goes on at the beginning of the next iteration, which is the same
    const again = events.filter((e) => e.end > loop.cycles + 0.5).map((e) => ({ ...e, start: e.start - loop.cycles, end: e.end - loop.cycles }));
    for (const e of [...again, ...events]) {
      const width = Math.max(1, X(Math.min(e.end, loop.cycles)) - X(Math.max(0, e.start)) - 0.6);
      const words = `line ${lineOf(e.at)}`;
      drawn.append(
        svg("rect", { class: e.kind, "data-at": e.at, x: X(Math.max(0, e.start)), y: y + 3, width, height: row - 7, rx: 3, onclick: () => view.pin(e.at, true), onmouseenter: () => view.hover(e.at), onmouseleave: () => view.hover(undefined) },
          svg("title", {}, `${e.what}, line ${lineOf(e.at)}: ${exact(e.end - e.start)} cycles, from ${exact(e.start)} to ${exact(e.end)}`)),
        ...(width > 46 ? [text(X(Math.max(0, e.start)) + 5, y + 16, words, { class: e.kind === "wait" ? null : "inside", "pointer-events": "none" })] : []),
      );
    }
  });
  const kinds = new Set(loop.tracks.flatMap(([, events]) => events.map((e) => e.kind)));
  const names = [["work", "the warp issues"], ["wait", "the warp waits"], ["load", "a load is on its way"], ["copy", "a copy is on its way"], ["product", "the matrix unit works"]];
  return figure(`One iteration of the loop on line ${lineOf(loop.at)}${which}`, el("div", { class: "scroll" }, drawn), `What a warp alone on its multiprocessor does in one of ${exact(loop.count)} iterations, and what goes on beside it, by the model of time: ${plural(Math.round(loop.cycles), "cycle")}.`, inLegend(names.filter(([kind]) => kinds.has(kind))));
}

// -- shared memory

function memoryFigure(view) {
  const buffers = view.data.buffers.filter((b) => b.kind === "shared buffer" && b.first && b.last);
  if (!buffers.length) return null;
  const order = view.data.lines.filter((l) => l.counts).map((l) => l.at);
  const at = (place) => Math.max(0, order.indexOf(place));
  const [from, to] = [Math.min(...buffers.map((b) => at(b.first))), Math.max(...buffers.map((b) => at(b.last)))];
  const shown = order.slice(from, to + 1);
  const bytes = Math.max(...buffers.map((b) => b.offset + b.bytes));
  const rows = new Set(buffers.map((b) => b.offset)).size;
  const [w, h, left, right, top, bottom] = [480, Math.min(280, 90 + 60 * rows), 58, 14, 10, 38];
  const X = (index) => left + (index / shown.length) * (w - left - right);
  const Y = (byte) => top + (byte / bytes) * (h - top - bottom);
  const drawn = canvasOf(w, h, `Shared memory: ${exact(bytes)} bytes`);
  const every = Math.ceil(shown.length / 16);
  shown.forEach((place, i) => i % every === 0 && drawn.append(svg("line", { class: "axis", x1: X(i), x2: X(i), y1: top, y2: h - bottom }), text((X(i) + X(i + 1)) / 2, h - bottom + 15, String(lineOf(place)), { "text-anchor": "middle" })));
  const part = [1024, 4096, 8192, 16384, 32768, 65536].find((size) => bytes / size <= 8) ?? 65536;
  for (let b = 0; b <= bytes; b += part) drawn.append(svg("line", { class: "axis", x1: left, x2: w - right, y1: Y(b), y2: Y(b) }), text(left - 6, Y(b) + 4, b ? `${exact(b / 1024)} KiB` : "0", { "text-anchor": "end" }));
  drawn.append(text((left + w - right) / 2, h - 6, "line of the source", { "text-anchor": "middle" }));
  buffers.forEach((b, i) => {
    const [x, x2, y, height] = [X(at(b.first) - from), X(at(b.last) - from + 1), Y(b.offset), Math.max(2, Y(b.offset + b.bytes) - Y(b.offset) - 1.5)];
    const place = b.at ?? b.first;
    const words = `${exact(b.bytes)} bytes for ${b.purpose}`;
    drawn.append(
      svg("rect", { class: ["copy", "load", "product", "work"][i % 4], "data-at": place, x: x + 0.75, y, width: x2 - x - 1.5, height, rx: 3, opacity: 0.82, onclick: () => view.pin(place, true), onmouseenter: () => view.hover(place), onmouseleave: () => view.hover(undefined) },
        svg("title", {}, `${words}, at byte ${exact(b.offset)}, in use on line ${lineOf(b.first)} to ${lineOf(b.last)}`)),
      ...(height > 14 && x2 - x > 7 * words.length * 0.82 ? [text(x + 7, y + Math.min(height / 2 + 4, 18), words, { class: "inside", "pointer-events": "none" })] : height > 14 && x2 - x > 44 ? [text(x + 6, y + Math.min(height / 2 + 4, 18), exact(b.bytes), { class: "inside", "pointer-events": "none" })] : []),
    );
  });
  return figure("Shared memory", drawn, `${exact(bytes)} bytes of a block; a buffer from the first to the last line that uses it, at its place.`);
}

function pictures(view) {
  const small = [rooflineFigure(view), memoryFigure(view)].filter(Boolean);
  return small.length ? el("div", { class: "pictures" }, small) : null;
}
