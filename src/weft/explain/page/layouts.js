// Layouts: small pictures, each element in the colour of its place, and the layout page that a click opens.

function oklch(lightness, chroma, hue) {
  return `oklch(${lightness} ${chroma} ${hue})`;
}

// For each element of a tile the place that has it first, of a linear form {ins, outs, columns}.
function placesOf(linear) {
  const elements = 2 ** linear.outs.reduce((sum, d) => sum + d[1], 0);
  const places = new Int32Array(elements).fill(-1);
  const count = 2 ** linear.columns.length;
  const held = new Int32Array(count);
  for (let p = 1; p < count; p++) {
    const low = 31 - Math.clz32(p & -p);
    held[p] = held[p & (p - 1)] ^ linear.columns[low];
  }
  for (let p = count - 1; p >= 0; p--) places[held[p]] = p;
  return places;
}

const THUMB = 32;
// A canvas of up to 32x32 elements: hue the warp, shade the lane; of a memory, hue the bank.
function thumbnail(layout) {
  const { linear, shape, bits } = layout;
  const rows = Math.min(THUMB, shape.length > 1 ? shape.at(-2) : 1);
  const columns = Math.min(THUMB, shape.at(-1) ?? 1);
  const canvas = el("canvas", { width: columns, height: rows, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const at = {};
  let bit = 0;
  for (const [name, log] of linear.ins) { at[name] = [bit, log]; bit += log; }
  const part = (p, name) => (at[name] ? (p >> at[name][0]) & (2 ** at[name][1] - 1) : 0);
  const size = (name) => 2 ** (at[name]?.[1] ?? 0);
  const outAt = {};
  bit = 0;
  for (const [name, log] of linear.outs) { outAt[name] = bit; bit += log; }
  const [row, column] = [`dim${shape.length - 2}`, `dim${shape.length - 1}`];
  const places = placesOf(linear);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; c++) {
      const p = places[(shape.length > 1 ? r << outAt[row] : 0) | (c << outAt[column])];
      if (p < 0) continue;
      const bank = Math.floor((part(p, "offset") * bits) / 32) % 32;
      context.fillStyle = at.lane
        ? oklch(0.93 - (0.43 * part(p, "lane")) / Math.max(size("lane") - 1, 1), 0.115, (255 + (360 * part(p, "warp")) / size("warp")) % 360)
        : oklch(0.9 - 0.25 * (bank % 2), 0.09, (360 * bank) / 32);
      context.fillRect(c, r, 1, 1);
    }
  return canvas;
}

// A button with the picture of a layout, which opens the layout page; nothing for a layout that cannot be drawn.
function picture(layouts, number, title, other) {
  const layout = layouts[number];
  if (!layout?.linear) return null;
  const tip = `${layout.text} of ${layout.shape.join("x")}: open the layout page`;
  return el("button", { class: "thumb", type: "button", title: tip, "aria-label": tip, "data-layout": number, onclick: () => openLayout(layouts, number, title, other) }, thumbnail(layout));
}

// The layout page with what it is given in place of its mark; its text stands once in this page.
function layoutPage(layouts, number, other) {
  const chosen = [layouts[number], layouts[other]].filter((l) => l?.linear);
  const [a, b] = chosen;
  const given = chosen.map((l) => ({ text: l.name, shape: l.shape, layout: l.linear, pads: null }));
  const data = { shape: a.shape, bits: a.bits, a: a.name, b: b ? b.name : null, s: null, view: "tile", given, plan: null };
  const [before, after] = JSON.parse($("viewer-html").textContent);
  return before + JSON.stringify(data).replaceAll("<", "\\u003c") + after;
}

let shownLayout = null;
function openLayout(layouts, number, title, other) {
  if (!layouts[number]?.linear) return;
  shownLayout = layoutPage(layouts, number, other);
  $("viewer-title").textContent = `${title}: ${layouts[number].text}${other !== undefined && layouts[other] ? ` → ${layouts[other].text}` : ""}`;
  const frame = el("iframe", { title: "Layout page" });
  frame.srcdoc = shownLayout;
  frame.addEventListener("load", () => {
    const inside = frame.contentDocument;
    if (!inside?.documentElement) return;
    if (inside.documentElement.dataset.theme !== document.documentElement.dataset.theme) inside.getElementById("theme")?.click();
    inside.addEventListener("keydown", (event) => event.key === "Escape" && $("viewer").close());
  });
  $("viewer-frame").replaceChildren(frame);
  $("viewer").showModal();
}

function startViewer() {
  $("viewer-close").addEventListener("click", () => $("viewer").close());
  $("viewer").addEventListener("close", () => $("viewer-frame").replaceChildren());
  $("viewer").addEventListener("click", (event) => event.target === $("viewer") && $("viewer").close());
  $("viewer-tab").addEventListener("click", () => window.open(URL.createObjectURL(new Blob([shownLayout], { type: "text/html" }))));
}
