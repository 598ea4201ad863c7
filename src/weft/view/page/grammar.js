// Layout expressions: the grammar of weft/view/grammar.py. What they stand for is in evaluate.js.

const TOKEN = /\s+|#(?![A-Za-z_]\w*\.[A-Za-z_])[^\n]*|(?<ir>#\w+\.\w+)|(?<number>_?-?\d+)|(?<name>[A-Za-z_]\w*)|(?<string>"[^"\\\n]*"|'[^'\\\n]*')|(?<sign>[[\](){}:,.*@=<>?\u2218])/y;

function tokens(text) {
  const found = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) throw new LayoutError(`'${text[at]}' cannot stand in a layout expression`, undefined, at, at + 1);
    const kind = Object.keys(match.groups).find((k) => match.groups[k] !== undefined);
    const end = kind === "ir" ? endOfIr(text, TOKEN.lastIndex) : TOKEN.lastIndex;
    if (kind) found.push({ kind, text: text.slice(at, end), start: at, end });
    at = end;
  }
  found.push({ kind: "end", text: "", start: text.length, end: text.length });
  return found;
}

// Where the angle brackets that open here are closed; the end of the text where they never are.
function endOfIr(text, at) {
  if (text[at] !== "<") return at;
  for (let depth = 0, i = at; i < text.length; i++) {
    depth += { "<": 1, ">": -1 }[text[i]] ?? 0;
    if (!depth) return i + 1;
  }
  return text.length;
}

class Parser {
  constructor(text) {
    this.text = text;
    this.tokens = tokens(text);
    this.at = 0;
    this.depth = 0;
  }
  get next() {
    return this.tokens[this.at];
  }
  take() {
    return this.tokens[this.at++];
  }
  sees(sign) {
    return this.next.kind === "sign" && this.next.text === sign;
  }
  unexpected(expected) {
    const found = this.next.kind === "end" ? "the end" : `\`${this.next.text}\``;
    throw new LayoutError(`expected ${expected}, found ${found}`, undefined, this.next.start, this.next.end);
  }
  expect(sign, what) {
    return this.sees(sign) ? this.take() : this.unexpected(what);
  }
  whole() {
    const node = this.expression();
    if (this.next.kind !== "end") this.unexpected("the end of the expression, `*`, `@` or `.`");
    return node;
  }
  expression() {
    if (++this.depth > 60) throw new LayoutError("the expression is nested more than 60 deep", undefined, this.next.start, this.next.end);
    let node = this.postfix();
    while (this.sees("*") || this.sees("@")) {
      const sign = this.take().text;
      const right = this.postfix();
      node = { kind: "operation", sign, left: node, right, start: node.start, end: right.end };
    }
    this.depth--;
    return node;
  }
  postfix() {
    let node = this.primary();
    for (;;) {
      if (this.sees(".")) {
        this.take();
        if (this.next.kind !== "name") this.unexpected("a name after `.`");
        const name = this.take();
        node = { kind: "attribute", value: node, name: name.text, start: node.start, end: name.end };
      } else if (this.sees("(") && (node.kind === "name" || node.kind === "attribute")) node = this.call(node);
      else return node;
    }
  }
  call(fn) {
    this.take();
    const args = [];
    const named = [];
    while (!this.sees(")")) {
      if (this.next.kind === "name" && this.tokens[this.at + 1].text === "=") {
        const name = this.take();
        this.take();
        if (named.some(([n]) => n === name.text)) throw new LayoutError(`the argument ${name.text} is given twice`, undefined, name.start, name.end);
        named.push([name.text, this.expression()]);
      } else if (named.length) throw new LayoutError("an argument without a name after one with a name", undefined, this.next.start, this.next.end);
      else args.push(this.expression());
      if (!this.sees(")")) this.expect(",", "`,` or `)`");
    }
    return { kind: "call", fn, args, named, start: fn.start, end: this.take().end };
  }
  primary() {
    const token = this.next;
    const literal = (value) => ({ kind: "literal", value, start: this.take().start, end: token.end });
    if (startsCute(this.text, token.start)) return this.cute();
    if (token.kind === "number") {
      const value = Number(token.text.replace("_", ""));
      if (!Number.isSafeInteger(value)) throw new LayoutError("the number is too large", undefined, token.start, token.end);
      return literal(value);
    }
    if (token.kind === "string") return literal(token.text.slice(1, -1));
    if (token.kind === "name") {
      const constants = { True: true, False: false, None: null };
      if (Object.hasOwn(constants, token.text)) return literal(constants[token.text]);
      return { kind: "name", name: this.take().text, start: token.start, end: token.end };
    }
    if (token.kind === "ir") return { kind: "ir", text: this.take().text, start: token.start, end: token.end };
    if (this.sees("[")) return this.items("]");
    if (this.sees("(")) return this.items(")");
    if (this.sees("{")) return this.mapping();
    return this.unexpected("a layout, a number, a string or a list");
  }
  items(close) {
    const { start } = this.take();
    const items = [];
    let commas = 0;
    while (!this.sees(close)) {
      items.push(this.expression());
      if (!this.sees(close)) {
        this.expect(",", `\`,\` or \`${close}\``);
        commas++;
      }
    }
    const { end } = this.take();
    return close === ")" && items.length === 1 && !commas ? items[0] : { kind: "list", items, start, end };
  }
  // CuTe's notation, which cute.js reads.
  cute() {
    const { start } = this.next;
    const [make, end] = readCute(this.text, start);
    while (this.next.kind !== "end" && this.next.start < end) this.take();
    return { kind: "cute", make, start, end };
  }
  mapping() {
    const { start } = this.take();
    const items = [];
    while (!this.sees("}")) {
      if (this.next.kind !== "string") this.unexpected("the name of a dimension in quotes");
      const token = this.take();
      const key = token.text.slice(1, -1);
      if (items.some(([known]) => known === key)) throw new LayoutError(`the name ${key} is given twice`, undefined, token.start, token.end);
      this.expect(":", "`:`");
      items.push([key, this.expression()]);
      if (!this.sees("}")) this.expect(",", "`,` or `}`");
    }
    return { kind: "dict", items, start, end: this.take().end };
  }
}
