// Small things that everything is made of: elements, numbers as people read them, and what a place of the source is called.

const $ = (id) => document.getElementById(id);
const page = JSON.parse($("data").textContent);

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  made.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false && c !== ""));
  return made;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const exact = (n) => Math.round(n).toLocaleString("en-US");
const us = (n) => (n >= 1000 ? exact(n) : n >= 10 ? n.toFixed(1) : n.toFixed(2));
const percent = (part) => `${Math.round(part * 100)}%`;
const plural = (n, word) => `${exact(n)} ${word}${n === 1 ? "" : "s"}`;
// Three digits and a prefix: 17.2 G.
function short(n) {
  for (const [size, name] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (n >= size) return `${(n / size).toPrecision(3)} ${name}`;
  return `${Number(n.toPrecision(3))} `;
}
const lineOf = (at) => (at === null ? null : Number(at.split(":")[1]));

// A time beside the one that it is compared with.
function ratio(now, before) {
  if (!before) return "";
  const change = now / before - 1;
  if (Math.abs(change) < 0.005) return el("span", { class: "soft" }, "the same");
  return el("span", { class: change < 0 ? "better" : "worse" }, `${change < 0 ? "−" : "+"}${Math.abs(change * 100).toFixed(Math.abs(change) < 0.1 ? 1 : 0)}%`);
}
