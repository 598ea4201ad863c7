// The launch in short: its time, what bounds it, its arguments; and the findings, by what they bring.

function summaryCard(view) {
  const { data, base } = view;
  const { time } = data;
  const most = time ? Math.max(time.us, ...Object.values(time.resources)) : 1;
  const bars = Object.entries(time?.resources ?? {}).flatMap(([name, took]) => [
    el("span", {}, name),
    el("div", { class: "track" }, el("div", { class: `fill${name === time.bound ? " bound" : ""}`, style: `width: ${((100 * took) / most).toFixed(2)}%` })),
    el("span", {}, `${us(took)} us`),
  ]);
  const was = (name, value) => (base && base.arguments[name] !== undefined && base.arguments[name] !== value ? el("span", { class: "worse" }, ` (was ${base.arguments[name]})`) : "");
  const given = [...Object.entries(data.arguments), ...Object.entries(data.options)].map(([name, value]) => el("span", {}, el("b", {}, name), ` = ${value}`, was(name, value)));
  return el("section", { class: "card summary", "aria-label": "Time" },
    time
      ? el("div", { class: "time" }, `${us(time.us)} us `, el("small", {}, `${us(time.low)} to ${us(time.high)}, bound by ${time.bound} at ${percent(time.part)} `, base?.time ? ratio(time.us, base.time.us) : ""))
      : el("div", { class: "time" }, el("small", {}, `No time is predicted: ${data.untimed || `not calibrated for ${data.target}`}.`)),
    data.next ? el("p", { class: "small" }, data.next) : null,
    el("div", { class: "resources", role: "img", "aria-label": "What each resource takes" }, bars),
    data.occupancy ? el("p", { class: "small soft" }, data.occupancy.join("; ")) : null,
    data.note ? el("p", { class: "small" }, `Note: ${data.note}`) : null,
    el("div", { class: "arguments" }, given),
  );
}

const findingKey = (f) => `${f.code}|${f.what}`;
function findingItem(view, f, gone = false) {
  const isNew = !gone && view.base && !view.base.findings.some((g) => findingKey(g) === findingKey(f));
  const item = el("button", { class: `finding${gone ? " gone" : ""}`, type: "button", onclick: () => !gone && f.at && view.pin(f.at, true) },
    f.gain ? el("span", { class: "gain" }, `${f.atMost ? "at most " : ""}${us(f.gain)} us`) : null,
    el("span", { class: "code" }, f.code), f.at ? el("span", { class: "soft small" }, ` line ${lineOf(f.at)}`) : null,
    isNew ? el("span", { class: "badge" }, "new") : gone ? el("span", { class: "badge" }, "gone") : null,
    el("br"), el("span", { class: "what" }, `${f.what}: ${f.why}`), el("span", { class: "fix" }, f.fix, f.unknown ? el("span", { class: "soft" }, ` (${f.unknown})`) : ""));
  const page = view.data.pages?.[f.code];
  if (!page || gone) return item;
  return el("div", { class: "with-page" }, item, el("details", { class: "about" }, el("summary", {}, "a kernel that has it, and the same kernel fixed"), ...markdown(page)));
}

// The few forms that pages of findings have: headings, paragraphs, blocks of code, `code` and **bold**.
function markdown(text) {
  return text.replace(/<!--.*?-->/g, "").split(/^```(?:\w*)\n([^]*?)^```$/m).flatMap((part, i) => (i % 2 ? [el("pre", {}, ...colouredPython(part))] : part.split(/\n{2,}/).filter((p) => p.trim() && !p.startsWith("# ")).map(paragraph)));
}
function paragraph(text) {
  const heading = text.trim().match(/^##+ (.*)$/);
  if (heading) return el("h3", {}, heading[1]);
  const parts = text.replace(/<!--.*?-->/g, "").trim().split(/(`[^`]+`|\*\*[^*]+\*\*)/);
  return el("p", {}, ...parts.map((p) => (p.startsWith("`") ? el("code", {}, p.slice(1, -1)) : p.startsWith("**") ? el("b", {}, p.slice(2, -2)) : p)));
}

function findingsCard(view) {
  const { findings } = view.data;
  const gone = (view.base?.findings ?? []).filter((f) => !findings.some((g) => findingKey(g) === findingKey(f)));
  return el("section", { class: "card", "aria-label": "Findings" },
    el("h2", {}, findings.length ? plural(findings.length, "finding") : "No findings"),
    el("div", { class: "findings" }, ...findings.map((f) => findingItem(view, f)), ...gone.map((f) => findingItem(view, f, true)),
      findings.length || gone.length ? null : el("p", { class: "soft" }, "No rule has anything to say of this launch.")));
}
