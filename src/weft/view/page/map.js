// What a linear layout is, as in weft/layouts/map.py: dimensions, bases, values, text; linear.js has what is done with it.
// A layout is {ins: [[name, log]], outs: [[name, log]], columns: [int]}; a column has the first output lowest.

const total = (dims) => dims.reduce((sum, d) => sum + d[1], 0);
const dimNames = (dims) => "(" + dims.map((d) => d[0]).join(", ") + ")";
const dimSizes = (dims) => dims.map(([n, log]) => `${n} of size ${2 ** log}`).join(", ") || "no dimension";

class LinearMap {
  constructor(ins, outs, columns) {
    if (Math.max(total(ins), total(outs)) > MOST_BITS) throw new LayoutError(`this page takes layouts of up to ${MOST_BITS} bits`);
    const odd = [...ins, ...outs].find((d) => typeof d[0] !== "string");
    if (odd) throw new LayoutError(`the name of a dimension is a string, got ${repr(odd[0])}`);
    this.ins = ins;
    this.outs = outs;
    this.columns = columns;
  }

  // -- what it is
  get inBits() {
    return this.columns.length;
  }
  get outBits() {
    return total(this.outs);
  }
  get rank() {
    return (this._rank ??= rankOf(this.columns));
  }
  get isSurjective() {
    return this.rank === this.outBits;
  }
  get isInjective() {
    return this.rank === this.inBits;
  }
  get isInvertible() {
    return this.isSurjective && this.isInjective;
  }
  // Where it does not reach, in words.
  get missing() {
    const points = complement(this.columns, this.outBits).map((v) => this.split(v));
    return "nothing maps to " + points.flatMap((p) => p.flatMap((v, i) => (v ? [`${this.outs[i][0]} = ${v}`] : []))).join(", ");
  }
  // For each input the bits that hold copies.
  get freeMasks() {
    const free = dependent(this.columns);
    let at = 0;
    return this.ins.map(([name, log]) => {
      const mask = free.filter((i) => i >= at && i < at + log).reduce((sum, i) => sum | (1 << (i - at)), 0);
      at += log;
      return [name, mask];
    });
  }
  // The coordinates of the bases of an input.
  bases(name) {
    return this.inColumns(name).map((c) => this.split(c));
  }
  // An expression that makes it.
  repr() {
    const bases = this.ins.map(([n]) => `${repr(n)}: [${this.bases(n).map(repr).join(", ")}]`).join(", ");
    const outs = this.outs.map(([n, log]) => `${repr(n)}: ${2 ** log}`).join(", ");
    return `LinearLayout({${bases}}, {${outs}}${this.isSurjective ? "" : ", require_surjective=False"})`;
  }
  hasIn(name) {
    return this.ins.some((d) => d[0] === name);
  }
  hasOut(name) {
    return this.outs.some((d) => d[0] === name);
  }
  inAt(name) {
    let at = 0;
    for (const [n, log] of this.ins) {
      if (n === name) return [at, log];
      at += log;
    }
    throw new LayoutError(`the layout has no input dimension ${repr(name)}; it has ${dimNames(this.ins)}`);
  }
  outAt(name) {
    let at = 0;
    for (const [n, log] of this.outs) {
      if (n === name) return [at, log];
      at += log;
    }
    throw new LayoutError(`the layout has no output dimension ${repr(name)}; it has ${dimNames(this.outs)}`);
  }
  inLog(name) {
    return this.hasIn(name) ? this.inAt(name)[1] : 0;
  }
  inColumns(name) {
    const [at, log] = this.inAt(name);
    return this.columns.slice(at, at + log);
  }
  split(flat, dims = this.outs) {
    return dims.map(([, log]) => {
      const value = flat & (2 ** log - 1);
      flat >>>= log;
      return value;
    });
  }
  splitIn(flat) {
    return Object.fromEntries(this.split(flat, this.ins).map((v, i) => [this.ins[i][0], v]));
  }
  joinIn(point) {
    let flat = 0;
    let at = 0;
    for (const [name, log] of this.ins) {
      flat |= (point[name] ?? 0) << at;
      at += log;
    }
    return flat;
  }
  apply(flat) {
    return multiply(this.columns, flat);
  }
  table() {
    const found = new Int32Array(1 << this.inBits);
    this.columns.forEach((column, i) => {
      const size = 1 << i;
      for (let x = 0; x < size; x++) found[size + x] = found[x] ^ column;
    });
    return found;
  }
  toString() {
    if (!this.ins.length && !this.outs.length) return "\n(empty layout)";
    const lines = [];
    let at = 0;
    for (const [name, log] of this.ins) {
      if (!log) lines.push(` - ${name} is a size 1 dimension`);
      for (let i = 0; i < log; i++)
        lines.push(`${i ? "   " : " - "}${name}=${2 ** i} -> (${this.split(this.columns[at + i]).join(", ")})`);
      at += log;
    }
    const sizes = this.outs.map(([n, log]) => `${n} (size ${2 ** log})`).join(", ");
    return "\n" + lines.concat(`where out dims are: [${sizes}]`).join("\n");
  }
  equals(other) {
    return this.toString() === other.toString();
  }
}
