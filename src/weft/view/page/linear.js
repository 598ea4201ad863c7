// Linear layouts over F2, as in weft/layouts/linear.py: the same operations under the same names.
// A layout is {ins: [[name, log]], outs: [[name, log]], columns: [int]}; a column has the first output lowest.

class LayoutError extends Error {
  constructor(message, start, end) {
    super(message);
    this.start = start;
    this.end = end;
  }
}

const MOST_BITS = 30;

function log2(size, what) {
  if (!Number.isInteger(size) || size < 1 || size > 2 ** MOST_BITS || (size & (size - 1)) !== 0)
    throw new LayoutError(`the size of ${what} must be a power of two, got ${size}`);
  return 31 - Math.clz32(size);
}

const total = (dims) => dims.reduce((sum, d) => sum + d[1], 0);
const dimNames = (dims) => "(" + dims.map((d) => d[0]).join(", ") + ")";

// Rows in echelon form that remember which of the columns they are made of.
class Echelon {
  constructor(columns = []) {
    this.rows = [];
    this.count = 0;
    columns.forEach((c) => this.add(c));
  }
  reduce(vector) {
    let made = 0;
    for (const [row, pivot, combination] of this.rows)
      if (vector & pivot) {
        vector ^= row;
        made ^= combination;
      }
    return [vector, made];
  }
  add(vector) {
    const [rest, made] = this.reduce(vector);
    const mine = made ^ (1 << this.count);
    this.count += 1;
    if (!rest) return false;
    this.rows.push([rest, 1 << (31 - Math.clz32(rest)), mine]);
    return true;
  }
  coefficients(vector) {
    const [rest, made] = this.reduce(vector);
    return rest ? null : made;
  }
  get rank() {
    return this.rows.length;
  }
}

const rankOf = (columns) => new Echelon(columns).rank;

function multiply(columns, x) {
  let result = 0;
  for (let i = 0; i < columns.length; i++) if ((x >>> i) & 1) result ^= columns[i];
  return result;
}

function mergedOrder(first, second, side) {
  const shared = first.filter((n) => second.includes(n));
  const other = second.filter((n) => first.includes(n));
  if (shared.join() !== other.join())
    throw new LayoutError(`the ${side} dimensions ${first.join(", ")} and ${second.join(", ")} are in conflicting orders`);
  const result = [];
  const rest = [...second];
  for (const name of first) {
    if (rest.includes(name)) {
      while (rest[0] !== name) result.push(rest.shift());
      rest.shift();
    }
    result.push(name);
  }
  return result.concat(rest);
}

class Linear {
  constructor(ins, outs, columns) {
    if (Math.max(total(ins), total(outs)) > MOST_BITS) throw new LayoutError(`this page takes layouts of up to ${MOST_BITS} bits`);
    const odd = [...ins, ...outs].find((d) => typeof d[0] !== "string");
    if (odd) throw new LayoutError(`the name of a dimension is a string, got ${odd[0]}`);
    this.ins = ins;
    this.outs = outs;
    this.columns = columns;
  }

  // -- making
  static empty() {
    return new Linear([], [], []);
  }
  static identity_1d(size, inDim, outDim) {
    return Linear.strided_1d(size, 1, inDim, outDim);
  }
  static strided_1d(size, stride, inDim, outDim) {
    const log = log2(size, inDim);
    const shift = log2(stride, `the stride of ${outDim}`);
    if (!log) return Linear.zeros_1d(size, inDim, outDim);
    return new Linear([[inDim, log]], [[outDim, log + shift]], Array.from({ length: log }, (_, i) => 1 << (shift + i)));
  }
  static zeros_1d(size, inDim, outDim, outSize = 1) {
    const log = log2(size, inDim);
    return new Linear([[inDim, log]], [[outDim, log2(outSize, outDim)]], Array(log).fill(0));
  }
  // bases: Map of name to lists; outs: Map of name to size, or list of names, or list of [name, size].
  static from_bases(bases, outDims, requireSurjective = true) {
    if (!(bases instanceof Map)) bases = new Map(bases);
    let outs;
    if (outDims instanceof Map) outs = [...outDims].map(([n, s]) => [n, log2(s, `the output dimension ${n}`)]);
    else if (outDims.length && Array.isArray(outDims[0])) outs = outDims.map(([n, s]) => [n, log2(s, `the output dimension ${n}`)]);
    else {
      requireSurjective = true;
      outs = outDims.map((n, at) => {
        const largest = Math.max(0, ...[...bases.values()].flat().map((b) => b[at] ?? 0));
        return [n, 32 - Math.clz32(largest)];
      });
    }
    const columns = [];
    for (const [name, own] of bases)
      own.forEach((basis, i) => {
        if (basis.length !== outs.length)
          throw new LayoutError(`basis ${1 << i} of ${name} has ${basis.length} coordinates (${basis.join(", ")}), expected one for each of the ${outs.length} output dimensions`);
        let column = 0;
        let shift = 0;
        basis.forEach((value, at) => {
          if (!Number.isInteger(value) || value < 0 || value >= 2 ** outs[at][1])
            throw new LayoutError(`basis ${1 << i} of ${name} is (${basis.join(", ")}): its coordinate ${value} of ${outs[at][0]} is outside of 0 .. ${2 ** outs[at][1] - 1}`);
          column |= value << shift;
          shift += outs[at][1];
        });
        columns.push(column);
      });
    const layout = new Linear([...bases].map(([n, own]) => [n, own.length]), outs, columns);
    if (requireSurjective && !layout.isSurjective) throw new LayoutError("the layout does not reach all of its output");
    return layout;
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
    throw new LayoutError(`the layout has no input dimension '${name}'; it has ${dimNames(this.ins)}`);
  }
  outAt(name) {
    let at = 0;
    for (const [n, log] of this.outs) {
      if (n === name) return [at, log];
      at += log;
    }
    throw new LayoutError(`the layout has no output dimension '${name}'; it has ${dimNames(this.outs)}`);
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

  // -- putting together
  placed(column, place) {
    let moved = 0;
    for (const [name, log] of this.outs) {
      moved |= (column & (2 ** log - 1)) << place[name];
      column >>>= log;
    }
    return moved;
  }
  times(outer) {
    const ins = mergedOrder(this.ins.map((d) => d[0]), outer.ins.map((d) => d[0]), "input");
    const outs = mergedOrder(this.outs.map((d) => d[0]), outer.outs.map((d) => d[0]), "output");
    const mine = Object.fromEntries(this.outs);
    const theirs = Object.fromEntries(outer.outs);
    const placeMine = {};
    const placeTheirs = {};
    let at = 0;
    const outDims = outs.map((n) => {
      placeMine[n] = at;
      placeTheirs[n] = at + (mine[n] ?? 0);
      const log = (mine[n] ?? 0) + (theirs[n] ?? 0);
      at += log;
      return [n, log];
    });
    const columns = [];
    const inDims = ins.map((name) => {
      let count = 0;
      for (const [layout, place] of [[this, placeMine], [outer, placeTheirs]])
        if (layout.hasIn(name)) {
          const own = layout.inColumns(name);
          own.forEach((c) => columns.push(layout.placed(c, place)));
          count += own.length;
        }
      return [name, count];
    });
    return new Linear(inDims, outDims, columns);
  }
  concat_ins(other) {
    if (JSON.stringify(other.outs) !== JSON.stringify(this.outs)) throw new LayoutError("concat_ins needs equal outputs");
    if (this.ins.some((d) => other.hasIn(d[0]))) throw new LayoutError("both layouts have an input dimension of one name");
    return new Linear(this.ins.concat(other.ins), this.outs, this.columns.concat(other.columns));
  }
  concat_outs(other) {
    if (JSON.stringify(other.ins) !== JSON.stringify(this.ins)) throw new LayoutError("concat_outs needs equal inputs");
    if (this.outs.some((d) => other.hasOut(d[0]))) throw new LayoutError("both layouts have an output dimension of one name");
    const shift = this.outBits;
    return new Linear(this.ins, this.outs.concat(other.outs), this.columns.map((c, i) => c | (other.columns[i] << shift)));
  }
  matchedTo(dims, operation) {
    const starts = {};
    let at = 0;
    for (const [name, log] of dims) {
      starts[name] = at;
      at += log;
    }
    const logs = Object.fromEntries(dims);
    if (dims.length !== this.outs.length || this.outs.some((d) => !(d[0] in logs)))
      throw new LayoutError(`${operation}: the outputs ${dimNames(this.outs)} of one layout are not ${dimNames(dims)} of the other`);
    for (const [name, log] of this.outs)
      if (log > logs[name]) throw new LayoutError(`${operation}: ${name} has size ${2 ** log} in one layout and only ${2 ** logs[name]} in the other`);
    return this.columns.map((c) => this.placed(c, starts));
  }
  compose(outer) {
    const source = this.matchedTo(outer.ins, "compose");
    return new Linear(this.ins, outer.outs, source.map((c) => multiply(outer.columns, c)));
  }

  // -- inverting
  invert() {
    if (!this.isInvertible)
      throw new LayoutError(`the layout has no inverse, it is not ${this.isSurjective ? "injective" : "surjective"}; pseudoinvert() chooses one source of each`);
    return this.pseudoinvert();
  }
  pseudoinvert() {
    if (!this.isSurjective) throw new LayoutError("only surjective layouts have a right inverse");
    const rows = new Echelon(this.columns);
    const columns = Array.from({ length: this.outBits }, (_, i) => rows.coefficients(1 << i));
    return new Linear(this.outs, this.ins, columns);
  }
  invert_and_compose(outer) {
    const targets = this.matchedTo(outer.outs, "invert_and_compose");
    const rows = new Echelon(outer.columns);
    const columns = targets.map((t) => rows.coefficients(t));
    if (columns.includes(null)) throw new LayoutError("invert_and_compose: the outer layout does not reach everything that this one does");
    return new Linear(this.ins, outer.ins, columns);
  }

  // -- taking apart
  divide_left(divisor) {
    return this.divide(divisor, true);
  }
  divide_right(divisor) {
    return this.divide(divisor, false);
  }
  divide(divisor, left) {
    const fail = () => {
      throw new LayoutError(`divide_${left ? "left" : "right"}: the layout cannot be divided so`);
    };
    for (const [n, log] of divisor.ins) if (!this.hasIn(n) || log > this.inAt(n)[1]) fail();
    for (const [n, log] of divisor.outs) if (!this.hasOut(n) || log > this.outAt(n)[1]) fail();
    const small = Object.fromEntries(divisor.outs);
    const own = Object.fromEntries(this.outs.map(([n, log]) => [n, log - (small[n] ?? 0)]));
    const quotientIns = this.ins.map(([n, log]) => [n, log - (divisor.hasIn(n) ? divisor.inAt(n)[1] : 0)]);
    const take = (dims, which) => {
      const columns = [];
      for (const [n, log] of this.ins) {
        const count = divisor.hasIn(n) ? divisor.inAt(n)[1] : 0;
        const here = this.inColumns(n);
        const cut = left ? here.slice(0, count) : here.slice(log - count);
        const rest = left ? here.slice(count) : here.slice(0, log - count);
        columns.push(...(which === "cut" ? cut : rest));
      }
      return columns;
    };
    // The quotient's columns: coordinates with the divisor's bits taken out.
    const columns = take(this.ins, "rest").map((column) => {
      let flat = 0;
      let at = 0;
      for (const [n, log] of this.outs) {
        const value = column & (2 ** log - 1);
        column >>>= log;
        const inner = left ? log - own[n] : 0;
        flat |= ((value >>> inner) & (2 ** own[n] - 1)) << at;
        at += own[n];
      }
      return flat;
    });
    const quotient = new Linear(quotientIns, this.outs.map(([n]) => [n, own[n]]), columns);
    const again = left ? divisor.times(quotient) : quotient.times(divisor);
    const same = again
      .transpose_ins(this.ins.map((d) => d[0]))
      .transpose_outs(this.outs.map((d) => d[0]))
      .equals(this);
    return same ? quotient : fail();
  }
  isTrivialOver(names) {
    const inOrder = {};
    let at = 0;
    for (const [n, log] of this.outs) {
      inOrder[n] = [at, log];
      at += log;
    }
    if (names.some((n) => !this.hasIn(n) || !this.hasOut(n) || this.inAt(n)[1] !== this.outAt(n)[1])) return false;
    const own = names.reduce((mask, n) => mask | ((2 ** inOrder[n][1] - 1) << inOrder[n][0]), 0);
    at = 0;
    for (const [n, log] of this.ins)
      for (let i = 0; i < log; i++, at++) {
        const column = this.columns[at];
        if (names.includes(n) ? column !== 1 << (inOrder[n][0] + i) : column & own) return false;
      }
    return true;
  }
  quotient(names) {
    if (!this.isTrivialOver(names)) throw new LayoutError("quotient: the layout cannot be divided so");
    const rest = (dims) => dims.map((d) => d[0]).filter((n) => !names.includes(n));
    return this.sublayout(rest(this.ins), rest(this.outs));
  }
  sublayout(ins, outs) {
    ins.forEach((n) => this.inAt(n));
    outs.forEach((n) => this.outAt(n));
    const columns = this.ins.filter((d) => ins.includes(d[0])).flatMap(([n]) => this.inColumns(n));
    const kept = columns.map((column) => {
      let flat = 0;
      let at = 0;
      for (const [n, log] of this.outs) {
        if (outs.includes(n)) {
          flat |= (column & (2 ** log - 1)) << at;
          at += log;
        }
        column >>>= log;
      }
      return flat;
    });
    return new Linear(this.ins.filter((d) => ins.includes(d[0])), this.outs.filter((d) => outs.includes(d[0])), kept);
  }

  // -- rearranging
  transpose_ins(order) {
    this.checkOrder(order, this.ins, "input");
    return new Linear(order.map((n) => [n, this.inAt(n)[1]]), this.outs, order.flatMap((n) => this.inColumns(n)));
  }
  transpose_outs(order) {
    this.checkOrder(order, this.outs, "output");
    const outs = order.map((n) => [n, this.outAt(n)[1]]);
    const starts = {};
    let at = 0;
    for (const [n, log] of outs) {
      starts[n] = at;
      at += log;
    }
    return new Linear(this.ins, outs, this.columns.map((c) => this.placed(c, starts)));
  }
  checkOrder(order, dims, side) {
    if ([...order].sort().join() !== dims.map((d) => d[0]).sort().join())
      throw new LayoutError(`(${order.join(", ")}) is not a permutation of the ${side} dimensions ${dimNames(dims)}`);
  }
  reshape_ins(dims) {
    const ins = [...dims].map(([n, s]) => [n, log2(s, `the input dimension ${n}`)]);
    if (total(ins) !== this.inBits) throw new LayoutError("reshape_ins: the number of elements is not the same");
    return new Linear(ins, this.outs, this.columns);
  }
  reshape_outs(dims) {
    const outs = [...dims].map(([n, s]) => [n, log2(s, `the output dimension ${n}`)]);
    if (total(outs) !== this.outBits) throw new LayoutError("reshape_outs: the number of elements is not the same");
    return new Linear(this.ins, outs, this.columns);
  }
  flatten_ins() {
    return this.ins.length ? new Linear([[this.ins[0][0], this.inBits]], this.outs, this.columns) : this;
  }
  flatten_outs() {
    return this.outs.length ? new Linear(this.ins, [[this.outs[0][0], this.outBits]], this.columns) : this;
  }
  unsqueeze_in(name) {
    if (this.inAt(name)[1]) throw new LayoutError(`unsqueeze_in: ${name} has not size 1`);
    return new Linear(this.ins.filter((d) => d[0] !== name), this.outs, this.columns);
  }
  unsqueeze_out(name) {
    if (this.outAt(name)[1]) throw new LayoutError(`unsqueeze_out: ${name} has not size 1`);
    return new Linear(this.ins, this.outs.filter((d) => d[0] !== name), this.columns);
  }
  resize_in(name, size) {
    const log = log2(size, name);
    const [at, old] = this.inAt(name);
    const own = this.columns.slice(at, at + Math.min(old, log)).concat(Array(Math.max(0, log - old)).fill(0));
    const ins = this.ins.map(([n, o]) => [n, n === name ? log : o]);
    return new Linear(ins, this.outs, [...this.columns.slice(0, at), ...own, ...this.columns.slice(at + old)]);
  }
  resize_out(name, size) {
    const log = log2(size, name);
    this.outAt(name);
    const outs = this.outs.map(([n, o]) => [n, n === name ? log : o]);
    const columns = this.columns.map((column) => {
      let flat = 0;
      let at = 0;
      this.split(column).forEach((value, i) => {
        if (value >= 2 ** outs[i][1]) throw new LayoutError(`resize_out: a basis of the layout has ${name} = ${value}, beyond ${size - 1}`);
        flat |= value << at;
        at += outs[i][1];
      });
      return flat;
    });
    return new Linear(this.ins, outs, columns);
  }
  rename_ins(names) {
    return new Linear(this.ins.map(([n, log]) => [names.get(n) ?? n, log]), this.outs, this.columns);
  }
  rename_outs(names) {
    return new Linear(this.ins, this.outs.map(([n, log]) => [names.get(n) ?? n, log]), this.columns);
  }
  remove_zero_bases(name) {
    const [at, log] = this.inAt(name);
    const own = this.columns.slice(at, at + log).filter((c) => c);
    const ins = this.ins.map(([n, o]) => [n, n === name ? own.length : o]);
    return new Linear(ins, this.outs, [...this.columns.slice(0, at), ...own, ...this.columns.slice(at + log)]);
  }
}
