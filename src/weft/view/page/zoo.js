// Named layouts, as in weft/layouts/zoo: each has a rank and linear(shape).

const names = (rank) => Array.from({ length: rank }, (_, i) => `dim${i}`);
const identity = (size, inDim, outDim) => Linear.identity_1d(size, inDim, outDim);
const mapOf = (dims) => new Map(dims);

function matrixOrder(rank, rowMajor = true) {
  const last = rowMajor ? [rank - 1, rank - 2] : [rank - 2, rank - 1];
  return last.concat(Array.from({ length: Math.max(0, rank - 2) }, (_, i) => rank - 3 - i));
}

function identityNd(inDim, sizes, order, zero = null) {
  return order
    .map((d) => (d === zero ? Linear.zeros_1d(sizes[d], inDim, `dim${d}`) : identity(sizes[d], inDim, `dim${d}`)))
    .reduce((a, b) => a.times(b));
}

function fragment(order, ...pieces) {
  const start = identityNd("register", order.map(() => 1), order);
  const all = start.outs.map((d) => d[0]);
  return pieces
    .reduce((result, piece) => result.times(piece.transpose_outs(all.filter((n) => piece.hasOut(n)))), start)
    .transpose_outs(all);
}

function grow(layout, sizes) {
  const inner = layout.ins[0][0];
  return layout.outs.reduce((result, [name, log]) => (2 ** log < sizes[name] ? result.times(identity(sizes[name] / 2 ** log, inner, name)) : result), layout);
}

function clip(layout, sizes) {
  if (layout.outs.every(([n, log]) => 2 ** log <= sizes[n])) return layout;
  const outs = layout.outs.map(([n, log]) => [n, Math.min(log, log2(sizes[n], n))]);
  const columns = layout.columns.map((column) => {
    let flat = 0;
    let at = 0;
    layout.split(column).forEach((value, i) => {
      flat |= (value & (2 ** outs[i][1] - 1)) << at;
      at += outs[i][1];
    });
    return flat;
  });
  return new Linear(layout.ins, outs, columns);
}

const cluster = (bases, rank) => Linear.from_bases(new Map([["block", bases ?? []]]), names(rank));

function shapePerBlock(shape, cga) {
  return cluster(cga, shape.length).outs.map(([, log], i) => Math.max(1, shape[i] / 2 ** log));
}

function combine(block, cga, shape) {
  const all = names(shape.length);
  const target = Object.fromEntries(all.map((n, i) => [n, shape[i]]));
  const blocks = clip(cluster(cga, shape.length), target);
  const own = Object.fromEntries(blocks.outs.map(([n, log]) => [n, target[n] / 2 ** log]));
  const fitted = clip(grow(block, own), own);
  return fitted.times(blocks.transpose_outs(fitted.outs.map((d) => d[0]))).transpose_outs(all);
}

function checkSizes(owner, name, list, rank) {
  if (!Array.isArray(list)) throw new LayoutError(`${owner}: ${name} must be a list`);
  if (rank !== undefined && list.length !== rank) throw new LayoutError(`${owner}: ${name} has ${list.length} entries [${list.join(", ")}], expected ${rank}`);
  for (const size of list)
    if (!Number.isInteger(size) || size < 1 || size & (size - 1))
      throw new LayoutError(`${owner}: the entries of ${name} must be powers of two, got ${size} in [${list.join(", ")}]`);
  return list;
}

function checkOrder(owner, order, rank) {
  if (!Array.isArray(order) || [...order].sort((a, b) => a - b).join() !== Array.from({ length: rank }, (_, i) => i).join())
    throw new LayoutError(`${owner}: order must have each of the dimensions once, got [${order}]`);
  return order;
}

const operandCga = (cga, k) => (cga ?? []).map((basis) => basis.map((c, d) => (d === k ? 0 : c)));

class Named {
  to_linear(shape) {
    if (!Array.isArray(shape)) throw new LayoutError("the shape of a tile is needed");
    if (shape.length !== this.rank) throw new LayoutError(`${this.constructor.title}: a layout of rank ${this.rank} for a tile of rank ${shape.length}, of shape [${shape.join(", ")}]`);
    checkSizes(this.constructor.title, "the shape of the tile", shape);
    return this.linear(shape);
  }
  operand() {
    throw new LayoutError("DotOperandLayout: no product has a result with this layout");
  }
}

class Blocked extends Named {
  static title = "BlockedLayout";
  static parameters = ["size_per_thread", "threads_per_warp", "warps_per_cta", "order", "cga_layout"];
  static defaults = { cga_layout: [] };
  constructor(p) {
    super();
    const t = Blocked.title;
    this.rank = checkSizes(t, "size_per_thread", p.size_per_thread).length;
    checkSizes(t, "threads_per_warp", p.threads_per_warp, this.rank);
    checkSizes(t, "warps_per_cta", p.warps_per_cta, this.rank);
    checkOrder(t, p.order, this.rank);
    cluster(p.cga_layout, this.rank);
    Object.assign(this, p);
  }
  linear(shape) {
    const block = identityNd("register", this.size_per_thread, this.order)
      .times(identityNd("lane", this.threads_per_warp, this.order))
      .times(identityNd("warp", this.warps_per_cta, this.order));
    return combine(block, this.cga_layout, shape);
  }
  operand(index, kWidth, shape) {
    if (kWidth) throw new LayoutError("DotOperandLayout: k_width of a blocked parent must be 0");
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

class Slice extends Named {
  static title = "SliceLayout";
  static parameters = ["dim", "parent"];
  static defaults = {};
  constructor(p) {
    super();
    if (!(p.parent instanceof Named) || p.parent.isShared) throw new LayoutError("SliceLayout: parent must be a distributed layout");
    this.rank = p.parent.rank - 1;
    if (this.rank < 1) throw new LayoutError("SliceLayout: the parent has rank 1, a slice of it would have no dimension");
    if (!Number.isInteger(p.dim) || p.dim < 0 || p.dim > this.rank) throw new LayoutError(`SliceLayout: dim must be an integer from 0 to ${this.rank}, got ${p.dim}`);
    this.cga_layout = (p.parent.cga_layout ?? []).map((b) => b.filter((_, d) => d !== p.dim));
    Object.assign(this, p);
  }
  linear(shape) {
    const parent = this.parent.to_linear([...shape.slice(0, this.dim), 1, ...shape.slice(this.dim)]);
    const kept = parent.outs.map((d) => d[0]).filter((_, i) => i !== this.dim);
    const renamed = new Map(kept.map((n, i) => [n, `dim${i}`]));
    return parent.sublayout(parent.ins.map((d) => d[0]), kept).rename_outs(renamed).remove_zero_bases("register");
  }
}

function mmaTile(inner, outer, [m, n], kWidth) {
  return [
    identity(kWidth, "register", inner),
    identity(4, "lane", inner),
    identity(8, "lane", outer),
    identity(m / 8, "register", outer),
    identity(n / (4 * kWidth), "register", inner),
  ];
}

class NVMMA extends Named {
  static title = "NVMMADistributedLayout";
  static parameters = ["version", "warps_per_cta", "instr_shape", "cga_layout"];
  static defaults = { cga_layout: [] };
  constructor(p) {
    super();
    const t = NVMMA.title;
    if (!Array.isArray(p.version) || p.version.length !== 2 || ![2, 3].includes(p.version[0])) throw new LayoutError(`${t}: version must be [2, 0] (mma.sync) or [3, 0] (wgmma)`);
    this.rank = checkSizes(t, "warps_per_cta", p.warps_per_cta).length;
    if (this.rank < 2 || this.rank > 3) throw new LayoutError(`${t}: warps_per_cta must have 2 entries, or 3 for a batch`);
    checkSizes(t, "instr_shape", p.instr_shape);
    if (p.instr_shape.length < 2) throw new LayoutError(`${t}: instr_shape must have 2 entries or more`);
    Object.assign(this, p);
  }
  get warpOrder() {
    return matrixOrder(this.rank, this.version[0] === 2);
  }
  linear(shape) {
    const order = matrixOrder(this.rank);
    const size = this.version[0] === 2 ? this.instr_shape.slice(-2) : this.instr_shape.slice(0, 2);
    const tile = mmaTile(`dim${order[0]}`, `dim${order[1]}`, size, 2);
    return combine(fragment(order, ...tile, identityNd("warp", this.warps_per_cta, this.warpOrder)), this.cga_layout, shape);
  }
  operand(index, kWidth, shape) {
    if (!kWidth) throw new LayoutError("DotOperandLayout: k_width is 0; this parent needs a power of two");
    if (index && this.version[0] === 3) throw new LayoutError("DotOperandLayout: operand 1 of wgmma is in shared memory");
    const order = matrixOrder(this.rank, index === 0);
    const tile = mmaTile(`dim${order[0]}`, `dim${order[1]}`, [index ? 8 : 16, 8 * kWidth], kWidth);
    const warps = identityNd("warp", this.warps_per_cta, this.warpOrder, order[0]);
    return combine(fragment(order, ...tile, warps), operandCga(this.cga_layout, order[0]), shape);
  }
}

class DotOperand extends Named {
  static title = "DotOperandLayout";
  static parameters = ["operand_index", "parent", "k_width"];
  static defaults = {};
  constructor(p) {
    super();
    if (![0, 1].includes(p.operand_index)) throw new LayoutError("DotOperandLayout: operand_index must be 0 or 1");
    if (!(p.parent instanceof Named)) throw new LayoutError("DotOperandLayout: parent must be the distributed layout of the result");
    this.rank = p.parent.rank;
    const k = p.operand_index === 0 ? this.rank - 1 : this.rank - 2;
    this.cga_layout = operandCga(p.parent.cga_layout, k);
    Object.assign(this, p);
  }
  linear(shape) {
    return this.parent.operand(this.operand_index, this.k_width, shape);
  }
}

class SwizzledShared extends Named {
  static title = "SwizzledSharedLayout";
  static parameters = ["vec", "per_phase", "max_phase", "order", "cga_layout"];
  static defaults = { cga_layout: [] };
  isShared = true;
  constructor(p) {
    super();
    ["vec", "per_phase", "max_phase"].forEach((n) => checkSizes(SwizzledShared.title, n, [p[n]]));
    this.rank = p.order?.length;
    checkOrder(SwizzledShared.title, p.order, this.rank);
    Object.assign(this, p);
  }
  linear(shape) {
    const own = shapePerBlock(shape, this.cga_layout);
    if (this.rank === 1) return combine(identity(own[0], "offset", "dim0"), this.cga_layout, shape);
    const [column, row] = this.order;
    const bases = [];
    for (let c = 1; c < own[column]; c *= 2) bases.push([0, c]);
    for (let r = 1; r < own[row]; r *= 2) {
      const phase = Math.floor(r / this.per_phase) % this.max_phase;
      bases.push([r, (this.vec * phase) % own[column]]);
    }
    let block = Linear.from_bases(mapOf([["offset", bases]]), mapOf([[`dim${row}`, own[row]], [`dim${column}`, own[column]]]));
    if (this.rank > 2) block = block.times(identityNd("offset", own, this.order.slice(2)));
    return combine(block, this.cga_layout, shape);
  }
}

class NVMMAShared extends Named {
  static title = "NVMMASharedLayout";
  static parameters = ["swizzle_byte_width", "element_bitwidth", "rank", "transposed", "fp4_padded", "cga_layout"];
  static defaults = { rank: 2, transposed: false, fp4_padded: false, cga_layout: [] };
  isShared = true;
  constructor(p) {
    super();
    const t = NVMMAShared.title;
    if (![0, 32, 64, 128].includes(p.swizzle_byte_width)) throw new LayoutError(`${t}: swizzle_byte_width must be one of 0, 32, 64, 128, got ${p.swizzle_byte_width}`);
    if (![8, 16, 32, 64].includes(p.element_bitwidth)) throw new LayoutError(`${t}: element_bitwidth must be one of 8, 16, 32, 64, got ${p.element_bitwidth}`);
    Object.assign(this, p);
  }
  box(own) {
    const box = own.map((size) => Math.min(size, 256));
    const at = this.transposed ? 0 : this.rank - 1;
    if (this.fp4_padded) box[at] = Math.min(own[at] * 2, 256);
    if (this.swizzle_byte_width) {
      const needed = (8 * this.swizzle_byte_width) / this.element_bitwidth;
      if (box[at] < needed) throw new LayoutError(`NVMMASharedLayout: a row of ${this.swizzle_byte_width} bytes has ${needed} elements, and dimension ${at} of the tile has ${box[at]}`);
      box[at] = needed;
    }
    if (this.fp4_padded) box[at] /= 2;
    return box;
  }
  core() {
    const width = this.swizzle_byte_width;
    const vec = 128 / this.element_bitwidth;
    const column = (o) => (this.fp4_padded ? Math.floor(o / 16) * 8 + (o % 8) : o);
    const bases = [];
    for (let c = 1; c < (8 * width) / this.element_bitwidth; c *= 2) bases.push([0, column(c)]);
    for (const row of [1, 2, 4]) bases.push([row, column(vec * (Math.floor((row * width) / 128) % (width / 16)))]);
    return Linear.from_bases(mapOf([["offset", bases]]), ["dim0", "dim1"]);
  }
  linear(shape) {
    const own = shapePerBlock(shape, this.cga_layout);
    const box = this.box(own);
    const sizes = Object.fromEntries(own.map((s, i) => [`dim${i}`, s]));
    const reversed = Array.from({ length: this.rank }, (_, i) => this.rank - 1 - i);
    if (!this.swizzle_byte_width) return combine(grow(identityNd("offset", box, reversed), sizes), this.cga_layout, shape);
    let rows = box.slice(0, -1).reduce((a, b) => a * b, 1);
    let columns = box[this.rank - 1];
    if (this.transposed) [rows, columns] = [columns, rows];
    if (rows < 8) throw new LayoutError(`NVMMASharedLayout: the tile has ${rows} rows; a swizzle needs 8 or more`);
    const tile = grow(this.core(), { dim0: rows, dim1: columns });
    const order = this.transposed ? [0, ...reversed.slice(0, -1)] : reversed;
    const cut = mapOf(order.map((d) => [`dim${d}`, box[d]]));
    const block = tile.transpose_outs(["dim1", "dim0"]).reshape_outs(cut).transpose_outs(names(this.rank));
    return combine(grow(block, sizes), this.cga_layout, shape);
  }
}

class SharedLinear extends Named {
  static title = "SharedLinearLayout";
  static parameters = ["offset_bases", "block_bases", "alignment"];
  static defaults = { block_bases: [], alignment: 16 };
  isShared = true;
  constructor(p) {
    super();
    if (!p.offset_bases?.length) throw new LayoutError("SharedLinearLayout: offset_bases is empty; it needs a basis for each bit of an offset");
    this.rank = p.offset_bases[0].length;
    Object.assign(this, p);
  }
  linear(shape) {
    const bases = mapOf([["offset", this.offset_bases], ["block", this.block_bases]]);
    return Linear.from_bases(bases, mapOf(shape.map((s, i) => [`dim${i}`, s])));
  }
}

class DistributedLinear extends Named {
  static title = "DistributedLinearLayout";
  static parameters = ["reg_bases", "lane_bases", "warp_bases", "block_bases", "shape"];
  static defaults = {};
  constructor(p) {
    super();
    this.rank = checkSizes(DistributedLinear.title, "shape", p.shape).length;
    Object.assign(this, p);
    this.own();
  }
  own() {
    const bases = mapOf([["register", this.reg_bases], ["lane", this.lane_bases], ["warp", this.warp_bases], ["block", this.block_bases]]);
    return Linear.from_bases(bases, mapOf(this.shape.map((s, i) => [`dim${i}`, s])));
  }
  linear(shape) {
    if (shape.join() !== this.shape.join()) throw new LayoutError(`DistributedLinearLayout: in this page its tile has its own shape, [${this.shape.join(", ")}]`);
    return this.own();
  }
}

const ZOO = [Blocked, Slice, NVMMA, DotOperand, SwizzledShared, NVMMAShared, SharedLinear, DistributedLinear];
