// What if: alternatives that were explained when the page was made; one that is chosen takes the place of the present one.

function whatIfCard(chosen, choose) {
  const { alternatives, explanations } = page;
  if (!alternatives.length) return null;
  const now = explanations[0];
  const names = [...new Set(alternatives.flatMap((a) => Object.keys(a.changes)))];
  const values = Object.fromEntries(names.map((name) => [name, [...new Set(alternatives.filter((a) => name in a.changes).map((a) => a.changes[name]))]]));
  const choice = (label, index, about, data, before) =>
    el("button", { class: "choice", type: "button", "aria-pressed": String(chosen === index), "data-alternative": index, onclick: () => choose(index) },
      el("span", { class: "label" }, label),
      el("span", { class: "us" }, ...(data?.time ? [`${us(data.time.us)} us `, before?.time ? ratio(data.time.us, before.time.us) : ""] : [])),
      about ? el("span", { class: "about" }, about) : null);
  const told = (a) => {
    if (a.error) return a.error;
    const [gone, come] = [findingsLost(now, explanations[a.index]), findingsLost(explanations[a.index], now)];
    const parts = [gone.length ? `without ${gone.join(", ")}` : "", come.length ? `adds ${come.join(", ")}` : "", a.note].filter(Boolean);
    return parts.join("; ") || (a.count ? plural(a.count, "difference") : "no difference");
  };
  const cards = alternatives.map((a) => (a.error ? el("div", { class: "choice" }, el("span", { class: "label" }, a.label), el("span", { class: "soft" }, "cannot be compiled"), el("span", { class: "about" }, a.error)) : choice(a.label, a.index, told(a), explanations[a.index], now)));
  const selects = names.map((name) => {
    const present = now.arguments[name] ?? String(now.options[name] ?? "as it is");
    const select = el("select", { "data-name": name, onchange: () => choose(select.value === "" ? 0 : Number(select.value)) },
      el("option", { value: "" }, present),
      values[name].map((value) => alternatives.find((a) => a.changes[name] === value && Object.keys(a.changes).length === 1)).filter((a) => a && !a.error).map((a) => el("option", { value: a.index, selected: a.index === chosen }, a.changes[name])));
    return el("label", {}, name, select);
  });
  return el("section", { class: "card", "aria-label": "What if" },
    el("h2", {}, "What if"), el("div", { class: "controls" }, selects), el("div", { class: "whatif" }, choice("as it is", 0, "", now, null), cards),
    chosen ? changesList(page.alternatives.find((a) => a.index === chosen).difference) : null);
}

const findingsLost = (from, to) => [...new Set(from.findings.filter((f) => !to.findings.some((g) => findingKey(f) === findingKey(g))).map((f) => f.code))];

function changesList(changes) {
  return el("div", { class: "changes" }, el("h3", {}, plural(changes.length, "difference")), el("table", {}, changes.map((c) => el("tr", {}, el("td", { class: "soft" }, c.where), el("td", {}, c.what), el("td", { class: "mono" }, c.before), el("td", {}, "→"), el("td", { class: "mono" }, c.after), el("td", { class: "r" }, c.times ?? "")))));
}
