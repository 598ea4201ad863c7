// The source, with the share of the time that each line takes as its heat, and marks for what stands on it.

const MARKS = [
  ["finding-dot", "findings", "a finding"], ["access", "accesses", "an access of memory"], ["conversion", "conversions", "a conversion"],
  ["barrier", "barriers", "a barrier or fence"], ["tile", "tiles", "a layout was chosen"],
];

function sourceCard(view) {
  const { data } = view;
  const on = Object.fromEntries(MARKS.map(([, rows]) => [rows, new Set(data[rows].filter((r) => !r.free).map((r) => r.at))]));
  const most = Math.max(0.0001, ...data.lines.map((line) => line.share ?? 0));
  const rows = el("div", { class: "rows", tabindex: "0", role: "listbox", "aria-label": "Source" });
  let open = null;
  let file = data.files.length > 1 ? null : 0;
  for (const line of data.lines) {
    if (line.file !== file) {
      rows.append(el("div", { class: "file" }, data.files[line.file]));
      [file, open] = [line.file, null];
    }
    if (line.text === null) {
      rows.append(el("div", { class: "row gap" }, el("span", { class: "n" }, "⋯")));
      open = null;
      continue;
    }
    const [parts, behind] = coloured(line.text, open);
    open = behind;
    const share = line.share ?? 0;
    const marks = MARKS.filter(([, name]) => on[name].has(line.at)).map(([kind, , title]) => el("span", { class: `dot ${kind}`, title }));
    const heat = share >= 0.005 ? `background: linear-gradient(90deg, rgba(var(--heat), ${(0.08 + 0.42 * (share / most)).toFixed(3)}), rgba(var(--heat), ${(0.02 + 0.2 * (share / most)).toFixed(3)}) 75%)` : null;
    const row = el("div", { class: `row${line.counts ? " told" : ""}`, "data-at": line.at, style: heat, role: "option", "aria-selected": "false" },
      el("span", { class: "n" }, String(line.number)), el("span", { class: "share" }, share >= 0.0005 ? `${(share * 100).toFixed(1)}%` : ""),
      el("span", { class: "marks" }, marks), el("span", { class: "t" }, parts));
    rows.append(row);
  }
  const at = (event) => event.target.closest(".row.told")?.dataset.at;
  rows.addEventListener("mouseover", (event) => view.hover(at(event)));
  rows.addEventListener("mouseleave", () => view.hover(undefined));
  rows.addEventListener("click", (event) => at(event) && view.pin(at(event)));
  rows.addEventListener("keydown", (event) => pressed(view, event));
  const used = MARKS.filter(([, name]) => on[name].size).map(([kind, , title]) => el("span", {}, el("span", { class: `dot ${kind}` }), title));
  return el("section", { class: "card", style: "padding: 0", "aria-label": "Source" }, el("div", { class: "source" }, rows), el("div", { class: "legend" }, used));
}

// Arrows and j, k: the next line of which something is known; n, p: the next finding.
function pressed(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const told = view.data.lines.filter((line) => line.counts).map((line) => line.at);
  const found = told.filter((at) => view.data.findings.some((f) => f.at === at));
  const step = (all, by) => {
    const order = (a) => view.data.lines.findIndex((line) => line.at === a);
    const now = order(view.shown);
    const next = by > 0 ? all.find((a) => order(a) > now) : all.findLast((a) => order(a) < now);
    if (next) view.pin(next, true);
  };
  const keys = {
    ArrowDown: () => step(told, 1), j: () => step(told, 1), ArrowUp: () => step(told, -1), k: () => step(told, -1),
    n: () => step(found, 1), p: () => step(found, -1), Home: () => told.length && view.pin(told[0], true), End: () => told.length && view.pin(told.at(-1), true),
    Enter: () => view.node.querySelector(".detail .thumb")?.click(), Escape: () => view.letGo(),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}
