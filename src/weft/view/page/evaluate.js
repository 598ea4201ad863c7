// What layout expressions stand for, with the words of weft/view/expressions.py. Nothing is evaluated by JavaScript.

// What parameters of the algebra must be: the words, and whether a value is that.
const isNames = (v) => Array.isArray(v) && v.every((n) => typeof n === "string");
const isMapOf = (v, of) => v instanceof Map && [...v.values()].every(of);
const isBases = (v) => Array.isArray(v) && v.every((b) => Array.isArray(b) && b.every(isInt));
const isPairsOf = (v, of) => Array.isArray(v) && v.every((p) => Array.isArray(p) && p.length === 2 && typeof p[0] === "string" && of(p[1]));
const KINDS = {
  layout: ["a layout", (v) => v instanceof Linear || v instanceof Named],
  names: ["a list of dimensions, as ['dim1', 'dim0']", isNames],
  name: ["the name of a dimension in quotes", (v) => typeof v === "string"],
  number: ["a number", isInt],
  flag: ["True or False", (v) => typeof v === "boolean"],
  sizes: ["a mapping of dimensions to sizes, as {'dim0': 16}", (v) => isMapOf(v, isInt)],
  renames: ["a mapping of names, as {'dim0': 'dim1'}", (v) => isMapOf(v, (n) => typeof n === "string")],
  bases: ["a mapping of dimensions to bases, as {'lane': [[0, 1], [1, 0]]}", (v) => isMapOf(v, isBases) || isPairsOf(v, isBases)],
  outs: ["a mapping of dimensions to sizes, as {'dim0': 16}, or a list of dimensions", (v) => isMapOf(v, isInt) || isNames(v) || isPairsOf(v, isInt)],
};

// Parameters with what each must be, for the makers of Linear and its methods that can be written.
const MAKERS = {
  empty: [{}, Linear.empty],
  from_bases: [{ bases: "bases", out_dims: "outs", require_surjective: "flag" }, Linear.from_bases, { require_surjective: true }],
  identity_1d: [{ size: "number", in_dim: "name", out_dim: "name" }, Linear.identity_1d],
  strided_1d: [{ size: "number", stride: "number", in_dim: "name", out_dim: "name" }, Linear.strided_1d],
  zeros_1d: [{ size: "number", in_dim: "name", out_dim: "name", out_size: "number" }, Linear.zeros_1d, { out_size: 1 }],
};
const METHODS = {
  compose: { outer: "layout" },
  concat_ins: { other: "layout" },
  concat_outs: { other: "layout" },
  divide_left: { divisor: "layout" },
  divide_right: { divisor: "layout" },
  flatten_ins: {},
  flatten_outs: {},
  invert: {},
  invert_and_compose: { outer: "layout", prefer: "names" },
  pseudoinvert: {},
  quotient: { dims: "names" },
  remove_zero_bases: { dim: "name" },
  rename_ins: { names: "renames" },
  rename_outs: { names: "renames" },
  reshape_ins: { dims: "sizes" },
  reshape_outs: { dims: "sizes" },
  resize_in: { dim: "name", size: "number" },
  resize_out: { dim: "name", size: "number" },
  sublayout: { ins: "names", outs: "names" },
  transpose_ins: { order: "names" },
  transpose_outs: { order: "names" },
  unsqueeze_in: { dim: "name" },
  unsqueeze_out: { dim: "name" },
};
// Types of elements, written as gl.float16, and the bits that they stand for.
const DTYPES = Object.fromEntries([
  ...["", "u"].flatMap((sign) => [8, 16, 32, 64].map((bits) => [`${sign}int${bits}`, bits])),
  ...["e5", "e4nv", "e4b8", "e4b15", "e5b16"].map((kind) => [`float8${kind}`, 8]),
  ...Object.entries({ bfloat16: 16, float16: 16, float32: 32, float64: 64 }),
]);
const METHOD_DEFAULTS = { prefer: [] };

const ZOO = [
  AMDMFMA, AMDWMMA, Blocked, DistributedLinear, DotOperand, IntelDPAS, NVMMA, NVMMAShared, PaddedShared, SharedLinear, Slice,
  SwizzledShared, TensorMemory, TensorMemoryScales,
];

// Everything that can be called by name: its parameters, their defaults, and what makes it of them.
const CALLABLES = Object.fromEntries([
  ...ZOO.map((z) => [z.title, { parameters: z.parameters, defaults: z.defaults, make: (p) => new z(p) }]),
  ...["LinearLayout", ...Object.keys(MAKERS).map((m) => `LinearLayout.${m}`)].map((name) => {
    const [kinds, make, defaults] = MAKERS[name.split(".")[1] ?? "from_bases"];
    return [name, { kinds, parameters: Object.keys(kinds), defaults: defaults ?? {}, make: (p) => make(...Object.keys(kinds).map((k) => p[k])) }];
  }),
  ["make_cga_layout", { parameters: ["ctas_per_cga", "cta_split_num", "cta_order"], defaults: {}, make: make_cga_layout }],
  ["mfma_scale_layout", { parameters: ["dot_operand_layout", "shape"], defaults: {}, make: mfma_scale_layout }],
  ["wmma_scale_layout", { parameters: ["dot_operand_layout", "shape"], defaults: {}, make: wmma_scale_layout }],
  ["natural_k_width", { parameters: ["element_bits"], defaults: {}, make: natural_k_width }],
  ["get_tmem_reg_layout", {
    parameters: ["element_ty", "shape", "layout", "num_warps", "instr_variant", "cga_layout"],
    defaults: { instr_variant: "32x32b", cga_layout: [] },
    make: get_tmem_reg_layout,
  }],
  ["NVMMASharedLayout.get_default_for", {
    parameters: ["block_shape", "dtype", "transposed", "fp4_padded", "cga_layout"],
    defaults: { transposed: false, fp4_padded: false, cga_layout: null },
    make: NVMMAShared.get_default_for,
  }],
  ["PaddedSharedLayout.with_identity_for", { parameters: ["interval_padding_pairs", "shape", "order"], defaults: {}, make: PaddedShared.with_identity_for }],
]);

function bind(name, parameters, defaults, args, named) {
  const hint = `the parameters are (${parameters.join(", ")})`;
  const fail = (text) => {
    throw new LayoutError(`${name}: ${text}`, hint);
  };
  if (args.length > parameters.length) fail("too many positional arguments");
  const found = { ...defaults };
  args.forEach((a, i) => (found[parameters[i]] = a));
  for (const [key, value] of named) {
    if (!parameters.includes(key)) fail(`got an unexpected keyword argument '${key}'`);
    if (parameters.indexOf(key) < args.length) fail(`multiple values for argument '${key}'`);
    found[key] = value;
  }
  for (const p of parameters) if (!(p in found)) fail(`missing a required argument: '${p}'`);
  return found;
}

const what = (value) => {
  if (value instanceof Linear) return "a LinearLayout";
  if (value instanceof Named) return `a ${value.constructor.title}`;
  if (value instanceof CuteFunction) return "a CuTe layout";
  if (value instanceof Map) return "a mapping";
  if (Array.isArray(value)) return "a list";
  return { boolean: "True or False", number: "a number", string: "a string" }[typeof value] ?? "None";
};

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
      throw new LayoutError(`the parameters do not fit (${error.message})`, undefined, node.start, node.end);
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
    return node.make();
  }
  ir(node) {
    return layoutOfIr(node.text, node.start);
  }
  operation(node) {
    const [left, right] = [this.linear(node.left), this.linear(node.right)];
    return node.sign === "*" ? left.times(right) : right.compose(left);
  }
  attribute(node) {
    const path = this.path(node);
    if (path?.length === 2 && ["gl", "ttgl", "tl"].includes(path[0]) && Object.hasOwn(DTYPES, path[1])) return DTYPES[path[1]];
    throw new LayoutError("a method has to be called: add `()` with its arguments");
  }
  name(node) {
    if (Object.hasOwn(this.scope, node.name)) return this.scope[node.name];
    if (Object.hasOwn(CALLABLES, node.name)) throw new LayoutError(`${node.name} has to be called: add \`(...)\` with its parameters`);
    if (["A", "B", "S"].includes(node.name)) throw new LayoutError(`${node.name} stands for no layout now: its own field is empty, wrong, or below this one`);
    throw this.unknown(node.name, [...Object.keys(this.scope), ...Object.keys(CALLABLES)]);
  }
  unknown(name, known) {
    const near = closest(name, known);
    return new LayoutError(`there is no layout or function ${name}`, near ? `did you mean ${near}?` : `known are ${known.join(", ")}`);
  }
  linear(node) {
    const value = this.value(node);
    return this.placed(node, () => asLinear(value, this.shape));
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
    let name = path ? path.join(".") : "";
    const [last] = path ? path.slice(-1) : [""], within = path ? path.slice(0, -1) : [];
    // Where a vendor's layouts stand in Gluon.
    if (within.length && !Object.hasOwn(CALLABLES, name) && Object.hasOwn(CALLABLES, last) && within.every((x) => /^[a-z]/.test(x)) && !Object.hasOwn(this.scope, path[0])) name = last;
    if (Object.hasOwn(CALLABLES, name)) {
      const { parameters, defaults, kinds, make } = CALLABLES[name];
      return this.invoke(node, name, parameters, defaults, kinds, args, named, make);
    }
    if (node.fn.kind === "attribute" && (!path || Object.hasOwn(this.scope, path[0]))) return this.method(node, args, named);
    const error = this.unknown(name, Object.keys(CALLABLES));
    [error.start, error.end] = [node.fn.start, node.fn.end];
    throw error;
  }
  // Call with the arguments bound to parameters; errors that speak of an argument are placed there.
  invoke(node, name, parameters, defaults, kinds, args, named, make) {
    const nodes = Object.fromEntries([...node.args.map((a, i) => [parameters[i], a]), ...node.named]);
    const at = (parameter, compute) => this.placed(nodes[parameter] ?? node, compute);
    const odd = named.find(([key]) => !parameters.includes(key));
    const bound = at(odd?.[0], () => bind(name, parameters, defaults, args, named));
    for (const [parameter, kind] of Object.entries(kinds ?? {}))
      at(parameter, () => {
        const [words, fits] = KINDS[kind];
        if (kind === "layout" && (bound[parameter] instanceof Map || bound[parameter] instanceof CuteFunction)) bound[parameter] = asLinear(bound[parameter], this.shape);
        if (!fits(bound[parameter])) throw new LayoutError(`${name}: ${parameter} must be ${words}, got ${repr(bound[parameter])}`);
        if (kind === "layout") bound[parameter] = asLinear(bound[parameter], this.shape);
      });
    try {
      return make(bound);
    } catch (error) {
      if (!(error instanceof LayoutError) || error.start !== undefined) throw error;
      return this.placed(blamed(error.message, nodes, bound) ?? node, () => {
        throw error;
      });
    }
  }
  method(node, args, named) {
    const { fn } = node;
    if (fn.name === "to_linear") {
      const own = this.value(fn.value);
      if (!(own instanceof Named)) throw new LayoutError(`to_linear is a method of named layouts, this is ${what(own)}`, undefined, fn.start, fn.end);
      return this.invoke(node, "to_linear", ["shape"], {}, null, args, named, (p) => own.to_linear(p.shape));
    }
    const own = this.linear(fn.value);
    if (!Object.hasOwn(METHODS, fn.name)) throw new LayoutError(`layouts have no method ${fn.name}`, `known are to_linear, ${Object.keys(METHODS).join(", ")}`, fn.start, fn.end);
    const kinds = METHODS[fn.name];
    const parameters = Object.keys(kinds);
    return this.invoke(node, fn.name, parameters, METHOD_DEFAULTS, kinds, args, named, (bound) => {
      const found = own[fn.name](...parameters.map((p) => bound[p]));
      if (found === null) throw new LayoutError(`${fn.name}: the layout cannot be divided so`, undefined, node.start, node.end);
      return found;
    });
  }
}

// The known name that differs in the fewest letters, if they are few.
function closest(name, known) {
  const distance = (a, b) => {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
      row = next;
    }
    return row[b.length];
  };
  const [best] = known.map((k) => [distance(name.toLowerCase(), k.toLowerCase()), k]).sort((a, b) => a[0] - b[0]);
  return best && best[0] <= Math.max(1, name.length / 4) ? best[1] : null;
}

// The linear layout of a value; bases alone are of the shape where they have its rank and `shape` is given.
function asLinear(value, shape, sized = null) {
  if (value instanceof Linear) return value;
  if (value instanceof Named) return value.to_linear(shape);
  if (value instanceof CuteFunction) return value.toLinear();
  if (!(value instanceof Map)) throw new LayoutError(`a layout is needed here, this is ${what(value)}`);
  for (const [name, own] of value) if (!isBases(own)) throw new LayoutError(`the bases of ${name} must be a list of coordinates, as [[0, 1], [1, 0]]`);
  const ranks = new Set([...value.values()].flat().map((b) => b.length));
  if (ranks.size !== 1) throw new LayoutError("bases have to have the same number of coordinates each, and one of them has to be given");
  const [rank] = ranks;
  if (sized?.length === rank) return Linear.from_bases(value, mapOf(sized.map((s, i) => [`dim${i}`, s])), false);
  return Linear.from_bases(value, names(rank));
}

// What an expression stands for: {linear, named (the layout with its name and parameters, if it is one)}; `given` are layouts
// computed by Python, by their texts.
function layoutOf(text, shape, scope = {}, given = {}) {
  const known = given[JSON.stringify([text.trim(), shape])];
  if (known) return known;
  const node = new Parser(text).whole();
  const evaluator = new Evaluator(shape, scope);
  const value = evaluator.value(node);
  if (value instanceof CuteFunction) return evaluator.placed(node, () => value.memory());
  const linear = evaluator.placed(node, () => asLinear(value, shape, shape));
  return { linear, pads: value?.pads ?? null };
}
