// Named layouts of rectangular blocks, slices, operands and explicit ones, as in weft/layouts/zoo: each has a rank and
// linear(shape). Those of matrix instructions are in matrix.js, those of memories in memory.js.

class Named {
  to_linear(shape) {
    return this.linear(check.shape(this.constructor.title, shape, this.rank));
  }
  // What fields have that were not given, where that is not the default.
  get natural() {
    return {};
  }
  repr() {
    const { title, parameters, defaults } = this.constructor;
    const shown = parameters.flatMap((name) => {
      const text = nested(this[name]);
      if (!(name in defaults)) return [text];
      const usual = [defaults[name], this.natural[name]].some((v) => v !== undefined && nested(v) === text);
      return usual ? [] : [`${name}=${text}`];
    });
    return `${title}(${shown.join(", ")})`;
  }
}

// In registers.
class Distributed extends Named {
  checkOperand() {
    throw new LayoutError(
      `DotOperandLayout: no product has a result with the layout ${this.repr()}`,
      "the parent is a BlockedLayout, NVMMADistributedLayout, AMDMFMALayout, AMDWMMALayout or IntelDPASLayout",
    );
  }
  operand() {
    return this.checkOperand();
  }
}

class Blocked extends Distributed {
  static title = "BlockedLayout";
  static parameters = ["size_per_thread", "threads_per_warp", "warps_per_cta", "order", "cga_layout"];
  static defaults = { cga_layout: [] };
  constructor(p) {
    super();
    const t = Blocked.title;
    this.rank = check.sizes(t, "size_per_thread", p.size_per_thread).length;
    check.sizes(t, "threads_per_warp", p.threads_per_warp, this.rank, "size_per_thread");
    check.sizes(t, "warps_per_cta", p.warps_per_cta, this.rank, "size_per_thread");
    check.permutation(t, "order", p.order, this.rank);
    Object.assign(this, p, { cga_layout: check.cga(t, p.cga_layout, this.rank) });
  }
  linear(shape) {
    const block = identityNd("register", this.size_per_thread, this.order)
      .times(identityNd("lane", this.threads_per_warp, this.order))
      .times(identityNd("warp", this.warps_per_cta, this.order));
    return combine(block, this.cga_layout, shape);
  }
  checkOperand(index, kWidth) {
    if (kWidth) throw new LayoutError(`DotOperandLayout: k_width is ${kWidth}, and a product of blocked layouts is made of single multiplications; k_width must be 0`);
    if (this.rank < 2) throw new LayoutError(`DotOperandLayout: the parent ${this.repr()} has rank ${this.rank}, a product needs 2 or more`);
  }
  operand(index, kWidth, shape) {
    const k = index === 0 ? this.rank - 1 : this.rank - 2;
    const registers = this.size_per_thread.map((size, d) => (d === k ? shape[d] : size));
    const block = fragment(
      this.order,
      identityNd("register", registers, this.order),
      identityNd("lane", this.threads_per_warp, this.order, k),
      identityNd("warp", this.warps_per_cta, this.order, k),
    );
    return combine(block, operandCga(this.cga_layout, k), shape);
  }
}

class Slice extends Distributed {
  static title = "SliceLayout";
  static parameters = ["dim", "parent"];
  static defaults = {};
  constructor(p) {
    super();
    const { parent } = p;
    if (!(parent instanceof Distributed)) throw new LayoutError(`SliceLayout: parent must be a distributed layout, got ${repr(parent)}`);
    if (parent.rank < 2) throw new LayoutError(`SliceLayout: the parent ${parent.repr()} has rank 1, a slice of it would have no dimension`);
    check.integer("SliceLayout", "dim", p.dim, 0, parent.rank - 1);
    this.rank = parent.rank - 1;
    this.cga_layout = (parent.cga_layout ?? []).map((b) => b.filter((_, d) => d !== p.dim));
    Object.assign(this, p);
  }
  linear(shape) {
    const parent = this.parent.to_linear([...shape.slice(0, this.dim), 1, ...shape.slice(this.dim)]);
    const kept = parent.outs.map((d) => d[0]).filter((_, i) => i !== this.dim);
    const renamed = mapOf(kept.map((n, i) => [n, `dim${i}`]));
    return parent.sublayout(parent.ins.map((d) => d[0]), kept).rename_outs(renamed).remove_zero_bases("register");
  }
}

class DotOperand extends Distributed {
  static title = "DotOperandLayout";
  static parameters = ["operand_index", "parent", "k_width"];
  static defaults = {};
  constructor(p) {
    super();
    const t = DotOperand.title;
    check.integer(t, "operand_index", p.operand_index, 0, 1);
    if (!(p.parent instanceof Distributed)) check.fail(t, `parent must be the distributed layout of the result, got ${repr(p.parent)}`);
    if (p.k_width !== 0) check.powerOfTwo(t, "k_width", p.k_width);
    check.integer(t, "k_width", p.k_width, 0, 2 ** 30);
    p.parent.checkOperand(p.operand_index, p.k_width);
    this.rank = p.parent.rank;
    this.cga_layout = operandCga(p.parent.cga_layout, p.operand_index === 0 ? this.rank - 1 : this.rank - 2);
    Object.assign(this, p);
  }
  linear(shape) {
    return this.parent.operand(this.operand_index, this.k_width, shape);
  }
}

class DistributedLinear extends Distributed {
  static title = "DistributedLinearLayout";
  static parameters = ["reg_bases", "lane_bases", "warp_bases", "block_bases", "shape"];
  static defaults = {};
  constructor(p) {
    super();
    const t = DistributedLinear.title;
    this.rank = check.sizes(t, "shape", p.shape).length;
    for (const field of DistributedLinear.parameters.slice(0, 4))
      check.bases(t, field, p[field], this.rank);
    Object.assign(this, p);
    this.own();
  }
  own() {
    const bases = mapOf([["register", this.reg_bases], ["lane", this.lane_bases], ["warp", this.warp_bases], ["block", this.block_bases]]);
    return check.owned(DistributedLinear.title, () => Linear.from_bases(bases, mapOf(this.shape.map((s, i) => [`dim${i}`, s]))));
  }
  // The block bases in parts of the tile, as other layouts have them.
  get cga_layout() {
    const part = this.block_bases.reduce((sizes, basis) => sizes.map((s, d) => (basis[d] ? Math.min(s, basis[d]) : s)), this.shape);
    return this.block_bases.map((basis) => basis.map((c, d) => Math.floor(c / part[d])));
  }
  // The dimensions in which registers move, the fastest first, then the others from the last one on.
  repeatOrder() {
    const seen = this.reg_bases.filter((b) => b.some(Boolean)).map((b) => b.findIndex(Boolean));
    return [...new Set([...seen, ...downFrom(this.rank - 1)])];
  }
  linear(shape) {
    const own = this.own();
    if (shape.join() === this.shape.join()) return own;
    const sizes = Object.fromEntries(shape.map((s, d) => [`dim${d}`, s]));
    const fitted = clip(grow(own.transpose_outs(this.repeatOrder().map((d) => `dim${d}`)), sizes), sizes);
    // Without the registers that came to hold copies when the layout was wrapped.
    const before = own.inColumns("register");
    const kept = fitted.inColumns("register").map((c, i) => c !== 0 || (i < before.length && before[i] === 0));
    const log = fitted.inLog("register");
    const ins = fitted.ins.map(([n, l]) => [n, n === "register" ? kept.filter(Boolean).length : l]);
    return new Linear(ins, fitted.outs, fitted.columns.filter((_, i) => i >= log || kept[i])).transpose_outs(Object.keys(sizes));
  }
}

function natural_k_width({ element_bits }) {
  return Math.max(1, Math.floor(32 / check.powerOfTwo("natural_k_width", "element_bits", element_bits)));
}
