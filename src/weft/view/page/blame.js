// Where in an expression an error is, as in weft/view/blame.py: the part of an argument that its message speaks of.

const BASIS = /\bbasis (\d+) of (\w+) (?:is|has)\b/;
const LISTED = /(?:the basis|the coordinates in (\w+) must .*, got) (\[[^\]]*\])(?: of (\w+) (?:has|moves))?/;
const ENTRY = /the entries of (\w+) must be powers of two, got (\S+) in \[/;
const NO_NAME = /no (?:in|out)put dimension '(\w+)'/;
const BAD_SIZE = /the size of the (?:in|out)put dimension (\w+) must be/;

// `nodes` and `values` have what was written for each parameter of a call, and what it stands for; null for none.
function blamed(message, nodes, values) {
  return blamedBasis(message, nodes) ?? blamedEntry(message, nodes) ?? blamedName(message, nodes) ?? blamedArgument(message, nodes, values);
}

// What is written for a dimension in a mapping, or as a parameter of its own, as lane_bases.
function writtenFor(name, nodes) {
  for (const node of Object.values(nodes)) {
    const item = node.kind === "dict" && node.items.find(([key]) => key === name);
    if (item) return item[1];
  }
  return nodes[name === "register" ? "reg_bases" : `${name}_bases`];
}

const textOf = (node) => (node.kind === "list" ? `[${node.items.map(textOf).join(", ")}]` : node.kind === "literal" ? repr(node.value) : "");
const among = (node, text) => (node?.kind === "list" ? node.items.find((item) => textOf(item) === text) : undefined);

function blamedBasis(message, nodes) {
  let match = BASIS.exec(message);
  if (match) {
    const node = writtenFor(match[2], nodes);
    return node?.kind === "list" ? node.items[Math.round(Math.log2(Number(match[1])))] : undefined;
  }
  match = LISTED.exec(message);
  return match ? among(nodes[match[1] ?? match[3]], match[2]) : undefined;
}

function blamedEntry(message, nodes) {
  const match = ENTRY.exec(message);
  return match ? among(nodes[match[1]], match[2]) : undefined;
}

function literalsIn(node) {
  if (node.kind === "literal") return [node];
  if (node.kind === "list") return node.items.flatMap(literalsIn);
  return node.kind === "dict" ? node.items.flatMap(([, item]) => literalsIn(item)) : [];
}

function blamedName(message, nodes) {
  let match = NO_NAME.exec(message);
  if (match) return Object.values(nodes).flatMap(literalsIn).find((node) => node.value === match[1]);
  match = BAD_SIZE.exec(message);
  const found = match ? writtenFor(match[1], nodes) : undefined;
  return found?.kind === "literal" ? found : undefined;
}

// Of the arguments that the message names, the one with the value that it says it got, else the first.
function blamedArgument(message, nodes, values) {
  const got = message.includes("got ") ? message.slice(message.lastIndexOf("got ") + 4) : null;
  const spoken = Object.keys(nodes).flatMap((name) => {
    const match = new RegExp(`\\b${name}\\b`).exec(message);
    return match ? [[got !== null && got.startsWith(repr(values[name])) ? 0 : 1, match.index, name]] : [];
  });
  spoken.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return spoken.length ? nodes[spoken[0][2]] : undefined;
}
