// Linear layouts over F2, as in weft/layouts/linear.py: the same operations under the same names.

function mergedOrder(first, second, side) {
  const shared = first.filter((n) => second.includes(n));
  const other = second.filter((n) => first.includes(n));
  if (shared.join() !== other.join())
    throw new LayoutError(`the ${side} dimensions ${first.join(", ")} and ${second.join(", ")} are in conflicting orders`, `transpose_${side === "input" ? "ins" : "outs"} gives one of the layouts the order of the other`);
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

class Linear extends LinearMap {
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
    const pairs = [...bases];
    let outs;
    if (outDims instanceof Map || Array.isArray(outDims[0])) outs = [...outDims].map(([n, s]) => [n, log2(s, `the output dimension ${n}`)]);
    else {
      outs = outDims.map((n, at) => {
        const largest = Math.max(0, ...pairs.flatMap(([, own]) => own).map((b) => b[at] ?? 0));
        if (largest >= 2 ** MOST_BITS) throw new LayoutError(`a basis has the coordinate ${largest} of ${n}, and this page takes 2^${MOST_BITS} at most`);
        return [n, 32 - Math.clz32(largest)];
      });
    }
    for (const [what, dims] of [["input", pairs], ["output", outs]])
      if (new Set(dims.map((d) => d[0])).size !== dims.length) throw new LayoutError(`an ${what} dimension is named twice: ${dims.map((d) => d[0]).join(", ")}`);
    const columns = pairs.flatMap(([name, own]) => own.map((basis, i) => Linear.column(name, i, basis, outs)));
    const layout = new Linear(pairs.map(([n, own]) => [n, own.length]), outs, columns);
    if (requireSurjective && !layout.isSurjective)
      throw new LayoutError(`the layout does not reach all of its output: ${layout.missing}`, "add the missing bases; LinearLayout.from_bases takes them as they are with require_surjective=False");
    return layout;
  }
  // The coordinates of one basis in one int.
  static column(name, index, basis, outs) {
    if (basis.length !== outs.length)
      throw new LayoutError(`basis ${2 ** index} of ${name} has ${basis.length} coordinates ${repr(basis)}, expected one for each of the ${outs.length} output dimensions (${outs.map((d) => d[0]).join(", ")})`);
    let column = 0;
    let shift = 0;
    basis.forEach((value, at) => {
      const [out, log] = outs[at];
      if (value < 0 || value >= 2 ** log) throw new LayoutError(`basis ${2 ** index} of ${name} is ${repr(basis)}: its coordinate ${value} of ${out} is outside of 0 .. ${2 ** log - 1}`);
      column |= value << shift;
      shift += log;
    });
    return column;
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
  get isNumbered() {
    return this.outs.every(([n]) => /^dim\d+$/.test(n) && Number(n.slice(3)) < this.outs.length);
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
    if (JSON.stringify(other.outs) !== JSON.stringify(this.outs)) throw new LayoutError(`concat_ins needs equal outputs, got ${dimSizes(this.outs)} and ${dimSizes(other.outs)}`);
    this.checkDisjoint(this.ins, other.ins, "input");
    return new Linear(this.ins.concat(other.ins), this.outs, this.columns.concat(other.columns));
  }
  concat_outs(other) {
    if (JSON.stringify(other.ins) !== JSON.stringify(this.ins)) throw new LayoutError(`concat_outs needs equal inputs, got ${dimSizes(this.ins)} and ${dimSizes(other.ins)}`);
    this.checkDisjoint(this.outs, other.outs, "output");
    const shift = this.outBits;
    return new Linear(this.ins, this.outs.concat(other.outs), this.columns.map((c, i) => c | (other.columns[i] << shift)));
  }
  checkDisjoint(a, b, side) {
    const twice = a.map((d) => d[0]).filter((n) => b.some((d) => d[0] === n));
    if (twice.length) throw new LayoutError(`both layouts have the ${side} dimension ${twice.sort().join(", ")}`);
  }
  // The columns with the bits of each output moved to where `dims` has them.
  movedTo(dims) {
    const starts = {};
    let at = 0;
    for (const [name, log] of dims) {
      starts[name] = at;
      at += log;
    }
    return this.columns.map((c) => this.placed(c, starts));
  }
  sameOuts(dims) {
    return dims.length === this.outs.length && dims.every(([n]) => this.hasOut(n));
  }
  compose(outer) {
    if (!this.sameOuts(outer.ins)) throw new LayoutError(`compose: the outputs ${dimNames(this.outs)} of one layout are not the inputs ${dimNames(outer.ins)} of the other`);
    for (const [name, log] of this.outs)
      if (log > outer.inAt(name)[1]) throw new LayoutError(`compose: ${name} has size ${2 ** log} as an output and only ${2 ** outer.inAt(name)[1]} as an input`);
    return new Linear(this.ins, outer.outs, this.movedTo(outer.ins).map((c) => multiply(outer.columns, c)));
  }

  // -- inverting
  invert() {
    if (!this.isInvertible) {
      const free = this.freeMasks.filter((m) => m[1]).map(([n, m]) => `0x${m.toString(16)} of ${n}`);
      const reason = this.isSurjective ? `it is not injective: the bits ${free.join(", ")} hold copies` : `it is not surjective: ${this.missing}`;
      throw new LayoutError(`the layout has no inverse, ${reason}`, "pseudoinvert() chooses one source of each");
    }
    return this.pseudoinvert();
  }
  pseudoinvert() {
    const columns = solve(this.columns, units(this.outBits));
    if (!columns) throw new LayoutError(`only surjective layouts have a right inverse; ${this.missing}`);
    return new Linear(this.outs, this.ins, columns);
  }
  // Where in `outer` each thing of this layout is found; `prefer` says which of several copies, as in Python.
  invert_and_compose(outer, prefer = []) {
    if (!this.sameOuts(outer.outs)) throw new LayoutError(`invert_and_compose: the outputs ${dimNames(this.outs)} and ${dimNames(outer.outs)} are not the same`);
    for (const [name, log] of outer.outs)
      if (this.outAt(name)[1] > log) throw new LayoutError(`invert_and_compose: ${name} has size ${2 ** this.outAt(name)[1]}, and only ${2 ** log} in the outer layout`);
    const columns = solve(outer.columns, this.movedTo(outer.outs));
    if (!columns)
      throw new LayoutError("invert_and_compose: the outer layout does not reach everything that this one does", outer.isSurjective ? undefined : `${outer.missing} in the outer layout`);
    return new Linear(this.ins, outer.ins, prefer.length ? this.nearest(columns, outer, prefer) : columns);
  }
  // Of each solution plus the kernel of `outer`, the member that stays where its input is as far as it can.
  nearest(found, outer, prefer) {
    const odd = prefer.find((dim) => !this.hasIn(dim) && !outer.hasIn(dim));
    if (odd !== undefined) throw new LayoutError(`prefer: neither layout has an input dimension ${repr(odd)}; the outer has ${dimNames(outer.ins)}`);
    const same = kernel(outer.columns);
    if (!same.length) return found;
    const preferred = prefer.filter((d) => outer.hasIn(d));
    const order = [...preferred, ...outer.ins.map((d) => d[0]).filter((n) => !preferred.includes(n))];
    const starts = {};
    let at = 0;
    for (const name of [...order].reverse()) {
      starts[name] = at;
      at += outer.inLog(name);
    }
    const ranked = (vector) =>
      outer.ins.reduce((moved, [name, log]) => {
        const part = (vector & (2 ** log - 1)) << starts[name];
        vector >>>= log;
        return moved | part;
      }, 0);
    const rows = new Echelon(same.map(ranked));
    const loose = preferred.length ? span(same.filter((k) => !(ranked(k) >>> starts[preferred.at(-1)])).slice(0, 6)) : span(same.slice(0, 6));
    const homes = this.homes(outer, preferred);
    return found.map((solution, i) => {
      const near = solution ^ multiply(same, rows.reduce(ranked(solution ^ homes[i]))[1]);
      return loose.reduce((best, k) => (bitCount(near ^ k) < bitCount(best) ? near ^ k : best), near);
    });
  }
  // For each input bit the same bit as an input of `outer`, if it is of these dimensions; 0 for others.
  homes(outer, dims) {
    return this.ins.flatMap(([name, log]) => {
      const [start, size] = dims.includes(name) && outer.hasIn(name) ? outer.inAt(name) : [0, 0];
      return Array.from({ length: log }, (_, i) => (i < size ? 1 << (start + i) : 0));
    });
  }

  // -- taking apart
  divide_left(divisor) {
    return this.divide(divisor, true);
  }
  divide_right(divisor) {
    return this.divide(divisor, false);
  }
  // The layout C with this = divisor * C, or C * divisor; null where there is none.
  divide(divisor, left) {
    for (const [n, log] of divisor.ins) if (!this.hasIn(n) || log > this.inAt(n)[1]) return null;
    for (const [n, log] of divisor.outs) if (!this.hasOut(n) || log > this.outAt(n)[1]) return null;
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
    return same ? quotient : null;
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
    if (!this.isTrivialOver(names)) return null;
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
    if (total(ins) !== this.inBits) throw new LayoutError(`reshape_ins: ${dimSizes(this.ins)} have not as many elements as ${dimSizes(ins)}`);
    return new Linear(ins, this.outs, this.columns);
  }
  reshape_outs(dims) {
    const outs = [...dims].map(([n, s]) => [n, log2(s, `the output dimension ${n}`)]);
    if (total(outs) !== this.outBits) throw new LayoutError(`reshape_outs: ${dimSizes(this.outs)} have not as many elements as ${dimSizes(outs)}`);
    return new Linear(this.ins, outs, this.columns);
  }
  flatten_ins() {
    return this.ins.length ? new Linear([[this.ins[0][0], this.inBits]], this.outs, this.columns) : this;
  }
  flatten_outs() {
    return this.outs.length ? new Linear(this.ins, [[this.outs[0][0], this.outBits]], this.columns) : this;
  }
  unsqueeze_in(name) {
    if (this.inAt(name)[1]) throw new LayoutError(`unsqueeze_in: ${name} has size ${2 ** this.inAt(name)[1]}, not 1`);
    return new Linear(this.ins.filter((d) => d[0] !== name), this.outs, this.columns);
  }
  unsqueeze_out(name) {
    if (this.outAt(name)[1]) throw new LayoutError(`unsqueeze_out: ${name} has size ${2 ** this.outAt(name)[1]}, not 1`);
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
    return new Linear(this.renamed(names, this.ins, "input"), this.outs, this.columns);
  }
  rename_outs(names) {
    return new Linear(this.ins, this.renamed(names, this.outs, "output"), this.columns);
  }
  renamed(names, dims, side) {
    const found = dims.map(([n, log]) => [names.get(n) ?? n, log]);
    if (new Set(found.map((d) => d[0])).size !== found.length) throw new LayoutError(`an ${side} dimension is named twice: ${found.map((d) => d[0]).join(", ")}`);
    return found;
  }
  remove_zero_bases(name) {
    const [at, log] = this.inAt(name);
    const own = this.columns.slice(at, at + log).filter((c) => c);
    const ins = this.ins.map(([n, o]) => [n, n === name ? own.length : o]);
    return new Linear(ins, this.outs, [...this.columns.slice(0, at), ...own, ...this.columns.slice(at + log)]);
  }
}

// A layout with other names for dim0, dim1, ...
function withNames(layout, dims) {
  if (!dims || dims.length !== layout.outs.length || !layout.isNumbered) return layout;
  return layout.rename_outs(mapOf(dims.map((name, i) => [`dim${i}`, name])));
}
// Both with the same names of dimensions: one that has dim0, dim1, ... takes those that the other has of its own.
function sameNames(first, second) {
  if (first.outs.length !== second.outs.length || first.sameOuts(second.outs)) return [first, second];
  if (first.isNumbered) return [withNames(first, second.outs.map((d) => d[0])), second];
  return [first, withNames(second, first.outs.map((d) => d[0]))];
}
