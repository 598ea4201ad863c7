// The page: one explanation with its alternatives, or two beside each other.

class View {
  // `base` is what it is compared with, in which a place is called `inBase(at)`; `moved` is told of the line that is chosen.
  constructor(data, base, moved = () => {}, inBase = (at) => at) {
    Object.assign(this, { data, base, moved, inBase, shown: null, pinned: null });
    this.detail = el("section", { class: "card detail", "aria-label": "Line", "aria-live": "polite" });
    this.node = el("div", { class: "view" });
    this.node.append(
      el("div", { class: "top" }, summaryCard(this), findingsCard(this)),
      el("div", { class: "parts" }, el("div", { class: "view" }, sourceCard(this), pictures(this) ?? ""), this.detail),
      ...(data.iterations ?? []).map((loop) => loopFigure(this, loop)),
      tablesCard(this),
    );
    this.show(this.start());
  }
  // The line to begin with: that of the first finding, or the one that takes the most time.
  start() {
    const found = this.data.findings.find((f) => f.at)?.at;
    const told = this.data.lines.filter((line) => line.counts);
    const [slowest] = [...told].sort((a, b) => b.share - a.share);
    const first = this.data.accesses.find((a) => a.at)?.at;
    return found ?? (slowest?.share ? slowest.at : first ?? slowest?.at) ?? null;
  }
  hover(at) {
    for (const node of this.node.querySelectorAll(".near")) node.classList.remove("near");
    for (const node of at ? this.node.querySelectorAll(`[data-at="${at}"]`) : []) node.classList.add("near");
    if (!this.pinned && at) this.show(at);
  }
  pin(at, scroll = false) {
    this.pinned = at;
    this.show(at);
    if (scroll) this.row(at)?.scrollIntoView({ block: "nearest" });
    this.moved(this, at);
  }
  letGo() {
    this.pinned = null;
    this.show(this.shown);
  }
  row(at) {
    return this.node.querySelector(`.row[data-at="${at}"]`);
  }
  show(at) {
    if (at !== this.shown || !this.detail.firstChild) this.detail.replaceChildren(...lineDetail(this, at).filter((n) => n !== null && n !== ""));
    this.shown = at;
    for (const node of this.node.querySelectorAll(".row.on, .row.pinned")) {
      node.classList.remove("on", "pinned");
      node.setAttribute("aria-selected", "false");
    }
    const row = at && this.row(at);
    if (!row) return;
    row.classList.add("on");
    row.classList.toggle("pinned", this.pinned === at);
    row.setAttribute("aria-selected", "true");
  }
}

function heading(data) {
  $("title").textContent = data.kernel;
  const facts = [data.target, `grid ${data.grid.join("×")}`, plural(data.programs, "program"), data.options.num_warps ? plural(data.options.num_warps, "warp") : ""];
  $("chips").replaceChildren(...facts.filter(Boolean).map((fact) => el("span", { class: "chip" }, fact)));
}

let view = null;
function showOne(index) {
  const data = page.explanations[index];
  const pinned = view?.pinned;
  heading(data);
  view = new View(data, index ? page.explanations[0] : null);
  const box = whatIfCard(index, showOne);
  if (box) view.node.firstElementChild.after(box);
  $("main").replaceChildren(view.node);
  if (pinned && view.row(pinned)) view.pin(pinned);
}

// Two beside each other: a line that is chosen in one is chosen in the other.
function showPair() {
  const [before, after] = page.explanations;
  heading(after);
  const [there, back] = [new Map(page.pairs), new Map(page.pairs.map(([a, b]) => [b, a]))];
  let moving = false;
  const views = [];
  const moved = (from, at) => {
    const other = views.find((v) => v !== from);
    const to = (from === views[0] ? there : back).get(at);
    if (moving || !other || !to) return;
    moving = true;
    other.pin(to);
    moving = false;
  };
  views.push(new View(before, null, moved), new View(after, before, moved, (at) => back.get(at)));
  const named = views.map((v, i) => el("div", {}, el("h2", {}, `${i ? "After" : "Before"}: ${v.data.kernel} for ${v.data.target}`), v.node));
  $("main").replaceChildren(el("section", { class: "card", "aria-label": "What changed" }, el("h2", {}, "What changed"), changesList(page.difference)), el("div", { class: "both" }, named));
}

function theme(wanted) {
  document.documentElement.dataset.theme = wanted;
}
theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (e) => theme(e.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
startViewer();
if (page.pairs) showPair();
else showOne(0);
