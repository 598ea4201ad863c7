// Layout expressions: the grammar of weft/view/grammar.py, and what they stand for. Nothing is evaluated by JavaScript.

const TOKEN = /\s+|#[^\n]*|(?<swizzle>(?:Swizzle|Sw)\s*<\s*\d+\s*,\s*\d+\s*,\s*-?\d+\s*>)|(?<number>-?\d+)|(?<name>[A-Za-z_]\w*)|(?<string>"[^"\\\n]*"|'[^'\\\n]*')|(?<sign>[[\](){}:,.*=])/y;

function tokens(text) {
  const found = [];
  let at = 0;
  while (at < text.length) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) throw new LayoutError(`'${text[at]}' cannot stand in a layout expression`, at, at + 1);
    const kind = Object.keys(match.groups).find((k) => match.groups[k] !== undefined);
    if (kind) found.push({ kind, text: match[0], start: at, end: at + match[0].length });
    at += match[0].length;
  }
  found.push({ kind: "end", text: "", start: text.length, end: text.length });
  return found;
}

class Parser {
  constructor(text) {
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
    throw new LayoutError(`expected ${expected}, found ${found}`, this.next.start, this.next.end);
  }
  expect(sign, what) {
    return this.sees(sign) ? this.take() : this.unexpected(what);
  }
  whole() {
    const node = this.expression();
    if (this.next.kind !== "end") this.unexpected("the end of the expression, `*` or `.`");
    return node;
  }
  expression() {
    if (++this.depth > 60) throw new LayoutError("the expression is nested more than 60 deep", this.next.start, this.next.end);
    let node = this.postfix();
    while (this.sees("*")) {
      this.take();
      const right = this.postfix();
      node = { kind: "product", left: node, right, start: node.start, end: right.end };
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
        if (named.some(([n]) => n === name.text)) throw new LayoutError(`the argument ${name.text} is given twice`, name.start, name.end);
        named.push([name.text, this.expression()]);
      } else if (named.length) throw new LayoutError("an argument without a name after one with a name", this.next.start, this.next.end);
      else args.push(this.expression());
      if (!this.sees(")")) this.expect(",", "`,` or `)`");
    }
    return { kind: "call", fn, args, named, start: fn.start, end: this.take().end };
  }
  primary() {
    const token = this.next;
    const literal = (value) => ({ kind: "literal", value, start: this.take().start, end: token.end });
    if (token.kind === "swizzle" || this.isCute()) return this.cute();
    if (token.kind === "number") return literal(Number(token.text));
    if (token.kind === "string") return literal(token.text.slice(1, -1));
    if (token.kind === "name") {
      const constants = { True: true, False: false, None: null };
      if (Object.hasOwn(constants, token.text)) return literal(constants[token.text]);
      return { kind: "name", name: this.take().text, start: token.start, end: token.end };
    }
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
  // Where a number or nested tuple of numbers ends, in tokens; null where there is none.
  afterNest(at) {
    if (this.tokens[at].kind === "number") return at + 1;
    for (let depth = 0; this.tokens[at].kind === "number" || "(),".includes(this.tokens[at].text || "?"); ) {
      depth += { "(": 1, ")": -1 }[this.tokens[at++].text] ?? 0;
      if (depth <= 0) return depth < 0 ? null : at;
    }
    return null;
  }
  isCute() {
    const after = this.next.kind === "number" || this.sees("(") ? this.afterNest(this.at) : null;
    return after !== null && this.tokens[after].text === ":";
  }
  nest() {
    if (this.next.kind === "number") return Number(this.take().text);
    this.expect("(", "a number or `(`");
    const found = [this.nest()];
    while (this.sees(",")) {
      this.take();
      found.push(this.nest());
    }
    this.expect(")", "`,` or `)`");
    return found;
  }
  cute() {
    const { start } = this.next;
    const swizzle = this.next.kind === "swizzle" ? this.take().text.match(/-?\d+/g).map(Number) : null;
    let offset = 0;
    while (swizzle && this.next.text === "o") {
      this.take();
      if (this.next.kind === "number" && this.tokens[this.at + 1].text === "o") offset = Number(this.take().text);
    }
    if (!this.isCute()) this.unexpected("a CuTe layout, `shape:stride`");
    const shape = this.nest();
    this.expect(":", "`:`");
    const stride = this.nest();
    return { kind: "cute", shape, stride, swizzle, offset, start, end: this.tokens[this.at - 1].end };
  }
  mapping() {
    const { start } = this.take();
    const items = [];
    while (!this.sees("}")) {
      if (this.next.kind !== "string") this.unexpected("the name of a dimension in quotes");
      const key = this.take().text.slice(1, -1);
      this.expect(":", "`:`");
      items.push([key, this.expression()]);
      if (!this.sees("}")) this.expect(",", "`,` or `}`");
    }
    return { kind: "dict", items, start, end: this.take().end };
  }
}

const MAKERS = {
  empty: [[], Linear.empty],
  from_bases: [["bases", "out_dims", "require_surjective"], Linear.from_bases, { require_surjective: true }],
  identity_1d: [["size", "in_dim", "out_dim"], Linear.identity_1d],
  strided_1d: [["size", "stride", "in_dim", "out_dim"], Linear.strided_1d],
  zeros_1d: [["size", "in_dim", "out_dim", "out_size"], Linear.zeros_1d, { out_size: 1 }],
};

// Parameters of the methods of Linear that can be written.
const METHODS = {
  compose: ["outer"],
  concat_ins: ["other"],
  concat_outs: ["other"],
  divide_left: ["divisor"],
  divide_right: ["divisor"],
  flatten_ins: [],
  flatten_outs: [],
  invert: [],
  invert_and_compose: ["outer"],
  pseudoinvert: [],
  quotient: ["dims"],
  remove_zero_bases: ["dim"],
  rename_ins: ["names"],
  rename_outs: ["names"],
  reshape_ins: ["dims"],
  reshape_outs: ["dims"],
  resize_in: ["dim", "size"],
  resize_out: ["dim", "size"],
  sublayout: ["ins", "outs"],
  transpose_ins: ["order"],
  transpose_outs: ["order"],
  unsqueeze_in: ["dim"],
  unsqueeze_out: ["dim"],
};

function bind(name, parameters, defaults, args, named) {
  const list = `the parameters are (${parameters.join(", ")})`;
  if (args.length > parameters.length) throw new LayoutError(`${name}: too many arguments; ${list}`);
  const found = { ...defaults };
  args.forEach((a, i) => (found[parameters[i]] = a));
  for (const [key, value] of named) {
    if (!parameters.includes(key)) throw new LayoutError(`${name}: there is no parameter '${key}'; ${list}`);
    if (parameters.indexOf(key) < args.length) throw new LayoutError(`${name}: the argument ${key} is given twice`);
    found[key] = value;
  }
  for (const p of parameters) if (!(p in found)) throw new LayoutError(`${name}: missing a required argument: '${p}'; ${list}`);
  return found;
}

class Evaluator {
  constructor(shape, scope) {
    this.shape = shape;
    this.scope = scope;
  }
  // Errors without a place get that of a node.
  placed(node, compute) {
    try {
      return compute();
    } catch (error) {
      if (error instanceof LayoutError) {
        if (error.start === undefined) [error.start, error.end] = [node.start, node.end];
        throw error;
      }
      throw new LayoutError(`the parameters do not fit (${error.message})`, node.start, node.end);
    }
  }
  value(node) {
    return this.placed(node, () => this[node.kind](node));
  }
  literal(node) {
    return node.value;
  }
  list(node) {
    return node.items.map((item) => this.value(item));
  }
  dict(node) {
    return new Map(node.items.map(([key, item]) => [key, this.value(item)]));
  }
  cute(node) {
    return fromCute(node);
  }
  product(node) {
    return this.linear(node.left).times(this.linear(node.right));
  }
  attribute() {
    throw new LayoutError("a method has to be called: add `()` with its arguments");
  }
  name(node) {
    if (Object.hasOwn(this.scope, node.name)) return this.scope[node.name];
    throw this.unknown(node.name);
  }
  unknown(name) {
    const known = [...Object.keys(this.scope), ...ZOO.map((z) => z.title), "LinearLayout"];
    return new LayoutError(`there is no layout or function ${name} in this page; known are ${known.join(", ")}`);
  }
  linear(node) {
    return this.placed(node, () => asLinear(this.value(node), this.shape));
  }
  path(node) {
    if (node.kind === "name") return [node.name];
    if (node.kind !== "attribute") return null;
    const inner = this.path(node.value);
    return inner && [...inner, node.name];
  }
  call(node) {
    let path = this.path(node.fn);
    if (path && ["gl", "ttgl", "weft", "layouts"].includes(path[0]) && !Object.hasOwn(this.scope, path[0])) path = path.slice(1);
    const args = node.args.map((a) => this.value(a));
    const named = node.named.map(([k, v]) => [k, this.value(v)]);
    const name = path ? path.join(".") : "";
    const made = ZOO.find((z) => z.title === name);
    if (made) return new made(bind(name, made.parameters, made.defaults, args, named));
    const maker = name === "LinearLayout" ? "from_bases" : path?.length === 2 && path[0] === "LinearLayout" ? path[1] : null;
    if (maker && Object.hasOwn(MAKERS, maker)) {
      const [parameters, make, defaults] = MAKERS[maker];
      const bound = bind(name, parameters, defaults, args, named);
      return make(...parameters.map((p) => bound[p]));
    }
    if (node.fn.kind === "attribute" && (!path || Object.hasOwn(this.scope, path[0]))) return this.method(node.fn, args, named);
    throw this.unknown(name);
  }
  method(fn, args, named) {
    if (fn.name === "to_linear") {
      const own = this.value(fn.value);
      if (!(own instanceof Named)) throw new LayoutError("to_linear is a method of named layouts");
      return own.to_linear(bind("to_linear", ["shape"], {}, args, named).shape);
    }
    const own = this.linear(fn.value);
    if (!Object.hasOwn(METHODS, fn.name)) throw new LayoutError(`layouts have no method ${fn.name}; known are to_linear, ${Object.keys(METHODS).join(", ")}`);
    const parameters = METHODS[fn.name];
    const bound = bind(fn.name, parameters, {}, args, named);
    const operands = parameters.map((p) => (["outer", "other", "divisor"].includes(p) ? asLinear(bound[p], this.shape) : bound[p]));
    return own[fn.name](...operands);
  }
}

function asLinear(value, shape) {
  if (value instanceof Linear) return value;
  if (value instanceof Named) return value.to_linear(shape);
  if (value instanceof Map) {
    const rank = [...value.values()].flat()[0]?.length;
    if (!rank) throw new LayoutError("one of the bases at least has to be given");
    const outs = shape?.length === rank ? new Map(shape.map((s, i) => [`dim${i}`, s])) : names(rank);
    return Linear.from_bases(value, outs, false);
  }
  throw new LayoutError("a layout is needed here");
}

// CuTe's Shape:Stride with a Swizzle, from dim0, dim1, ... to the offset, as weft/layouts/cute.py reads it.
function fromCute({ shape, stride, swizzle, offset }) {
  const leaves = (s, d) => {
    if (Number.isInteger(s) && Number.isInteger(d)) return [[s, d]];
    if (!Array.isArray(s) || !Array.isArray(d) || s.length !== d.length) throw new LayoutError("the shape and the stride are not nested alike");
    return s.flatMap((x, i) => leaves(x, d[i]));
  };
  const modes = Array.isArray(shape) && Array.isArray(stride) && shape.length === stride.length ? shape.map((s, i) => leaves(s, stride[i])) : [leaves(shape, stride)];
  if (offset) throw new LayoutError(`the layout has the offset ${offset}, so that it is affine, not linear`);
  let taken = 0;
  const [count, base, shift] = swizzle ?? [0, 0, 0];
  if (Math.abs(shift) < count) throw new LayoutError(`the shift of a swizzle must be ${count} or more in absolute value`);
  const mask = (2 ** count - 1) << base;
  const swizzled = (x) => (shift >= 0 ? x ^ ((x >> shift) & mask) : x ^ ((x & mask) << -shift));
  const bases = modes.map((mode) =>
    mode.flatMap(([size, step]) =>
      Array.from({ length: log2(size, "a mode") }, (_, i) => {
        const value = step * 2 ** i;
        if (step < 0) throw new LayoutError(`the mode ${size}:${step} has a negative stride`);
        if (value >= 2 ** MOST_BITS) throw new LayoutError(`the stride ${step} is too large for this page`);
        if (taken & value) throw new LayoutError(`the sum carries at ${value}: only layouts in which every bit of the offset comes from one bit of a coordinate are linear over F2`);
        taken |= value;
        return swizzled(value);
      }),
    ),
  );
  const reached = bases.flat().reduce((a, b) => a | b, 0);
  const ins = bases.map((own, i) => [`dim${i}`, own.length]);
  return new Linear(ins, [["offset", 32 - Math.clz32(reached)]], bases.flat());
}

// The linear layout that an expression stands for; `given` are layouts computed by Python, by their texts.
function layoutOf(text, shape, scope = {}, given = {}) {
  const known = given[JSON.stringify([text.trim(), shape])];
  if (known) return known;
  const node = new Parser(text).whole();
  const found = new Evaluator(shape, scope).linear(node);
  return node.kind === "cute" ? new Evaluator(shape, scope).placed(node, () => found.invert()) : found;
}
