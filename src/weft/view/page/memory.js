// Layouts of tiles in shared memory and in tensor memory, as in weft/layouts/zoo/shared.py and tensor_memory.py.

class Shared extends Named {
  // The layout of bases; without a shape the sizes are what the bases reach.
  explicit(offsets, blocks, shape) {
    if (shape) this.reach([...offsets, ...blocks], shape);
    const outs = shape ? mapOf(shape.map((s, i) => [`dim${i}`, s])) : names(this.rank);
    return check.owned(this.constructor.title, () => Linear.from_bases(mapOf([["offset", offsets], ["block", blocks]]), outs));
  }
  // Fails where bases lead outside of a tile.
  reach(bases, shape) {
    const beyond = bases.filter((basis) => basis.some((x, i) => x >= shape[i]));
    if (!beyond.length) return;
    const above = (x) => (x ? 2 ** (Math.floor(Math.log2(x)) + 1) : 1);
    const reached = listed(shape.map((_, i) => Math.max(...bases.map((basis) => above(basis[i])))));
    check.fail(
      this.constructor.title,
      `the layout is for a tile of ${reached}, too big for one of ${listed(shape)}: the bases ${beyond.map(listed).join(", ")} lead outside of it`,
      `make the tile ${reached}, or leave these bases out`,
    );
  }
}

class SwizzledShared extends Shared {
  static title = "SwizzledSharedLayout";
  static parameters = ["vec", "per_phase", "max_phase", "order", "cga_layout"];
  static defaults = { cga_layout: [] };
  constructor(p) {
    super();
    const t = SwizzledShared.title;
    this.rank = check.permutation(t, "order", p.order).length;
    ["vec", "per_phase", "max_phase"].forEach((n) => check.powerOfTwo(t, n, p[n]));
    Object.assign(this, p, { cga_layout: check.cga(t, p.cga_layout, this.rank) });
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

class NVMMAShared extends Shared {
  static title = "NVMMASharedLayout";
  static parameters = ["swizzle_byte_width", "element_bitwidth", "rank", "transposed", "fp4_padded", "cga_layout"];
  static defaults = { rank: 2, transposed: false, fp4_padded: false, cga_layout: [] };
  constructor(p) {
    super();
    const t = NVMMAShared.title;
    check.integer(t, "rank", p.rank, 1, 5);
    const width = check.oneOf(t, "swizzle_byte_width", p.swizzle_byte_width, [0, 32, 64, 128]);
    if (width && p.rank < 2) check.fail(t, `swizzle_byte_width is ${width}, and a tile of rank 1 has no rows to swizzle; use 0`);
    check.oneOf(t, "element_bitwidth", p.element_bitwidth, [8, 16, 32, 64]);
    check.flag(t, "transposed", p.transposed);
    check.flag(t, "fp4_padded", p.fp4_padded);
    Object.assign(this, p, { cga_layout: check.cga(t, p.cga_layout, p.rank) });
  }
  // What one TMA instruction copies: at most 256 along a dimension, and the swizzle's width along columns.
  box(own) {
    const box = own.map((size) => Math.min(size, 256));
    const at = this.transposed ? 0 : this.rank - 1;
    if (this.fp4_padded) box[at] = Math.min(own[at] * 2, 256);
    if (this.swizzle_byte_width) {
      const needed = (8 * this.swizzle_byte_width) / this.element_bitwidth;
      if (box[at] < needed)
        check.fail(
          NVMMAShared.title,
          `a row of ${this.swizzle_byte_width} bytes has ${needed} elements of ${this.element_bitwidth} bits, and dimension ${at} of the tile, ${listed(own)} in one block, has ${box[at]}`,
          "choose a narrower swizzle_byte_width; NVMMASharedLayout.get_default_for picks one that fits",
        );
      box[at] = needed;
    }
    if (this.fp4_padded) box[at] = Math.floor(box[at] / 2);
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
    if (!this.swizzle_byte_width) return combine(grow(identityNd("offset", box, downFrom(this.rank - 1)), sizes), this.cga_layout, shape);
    let [rows, columns] = [product(box.slice(0, -1)), box[this.rank - 1]];
    if (this.transposed) [rows, columns] = [columns, rows];
    if (rows < 8) check.fail(NVMMAShared.title, `the tile, ${listed(own)} in one block, has ${rows} rows; a swizzle needs 8 or more`, "use swizzle_byte_width=0");
    const tile = grow(this.core(), { dim0: rows, dim1: columns });
    const order = this.transposed ? [0, ...downFrom(this.rank - 1).slice(0, -1)] : downFrom(this.rank - 1);
    const block = tile.transpose_outs(["dim1", "dim0"]).reshape_outs(mapOf(order.map((d) => [`dim${d}`, box[d]]))).transpose_outs(names(this.rank));
    return combine(grow(block, sizes), this.cga_layout, shape);
  }
  // The layout with the widest swizzle that fits.
  static get_default_for({ block_shape, dtype, transposed, fp4_padded, cga_layout }) {
    const t = NVMMAShared.title;
    const rank = check.sequence(t, "block_shape", block_shape).length;
    const bits = check.oneOf(t, "the width of dtype", dtype, [8, 16, 32, 64]);
    const cga = check.cga(t, cga_layout, rank);
    let own = shapePerBlock(check.shape(t, block_shape, rank), cga);
    if (transposed) own = [...own.slice(1), own[0]];
    const width = Math.floor((own.at(-1) * (fp4_padded ? 2 : 1) * bits) / 8);
    const fits = [128, 64, 32].filter((w) => width >= w && width % w === 0);
    const swizzle = fits.length && rank >= 2 && product(own.slice(0, -1)) >= 8 ? fits[0] : 0;
    return new NVMMAShared({ swizzle_byte_width: swizzle, element_bitwidth: bits, rank, transposed, fp4_padded, cga_layout: cga });
  }
}

class SharedLinear extends Shared {
  static title = "SharedLinearLayout";
  static parameters = ["offset_bases", "block_bases", "alignment"];
  static defaults = { block_bases: [], alignment: 16 };
  constructor(p) {
    super();
    const t = SharedLinear.title;
    const offsets = check.sequence(t, "offset_bases", p.offset_bases);
    if (!offsets.length) check.fail(t, "offset_bases is empty; it needs a basis for each bit of an offset");
    this.rank = check.sequence(t, "a basis of offset_bases", offsets[0]).length;
    if (!this.rank) check.fail(t, "the bases in offset_bases are empty; they need a coordinate for each dimension");
    check.bases(t, "offset_bases", offsets, this.rank);
    check.bases(t, "block_bases", p.block_bases, this.rank);
    check.powerOfTwo(t, "alignment", p.alignment);
    Object.assign(this, p);
  }
  linear(shape) {
    return this.explicit(this.offset_bases, this.block_bases, shape);
  }
}

// A linear layout with gaps: `pads` has the pairs [interval, padding], and address() the place of an offset.
class PaddedShared extends Shared {
  static title = "PaddedSharedLayout";
  static parameters = ["interval_padding_pairs", "offset_bases", "block_bases", "shape"];
  static defaults = {};
  constructor(p) {
    super();
    const t = PaddedShared.title;
    this.rank = check.sizes(t, "shape", p.shape).length;
    const pairs = check.sequence(t, "interval_padding_pairs", p.interval_padding_pairs);
    pairs.forEach((pair) => check.sizes(t, "a pair of interval_padding_pairs", pair, 2, "[interval, padding]"));
    if (!pairs.length) check.fail(t, "interval_padding_pairs is empty; it needs a pair [interval, padding]");
    if (new Set(pairs.map((pair) => pair[0])).size !== pairs.length) check.fail(t, `an interval is given twice in ${nested(pairs)}`);
    check.bases(t, "offset_bases", p.offset_bases, this.rank);
    check.bases(t, "block_bases", p.block_bases, this.rank);
    Object.assign(this, p);
    this.explicit(this.offset_bases, this.block_bases, this.shape);
  }
  get pads() {
    return this.interval_padding_pairs;
  }
  linear(shape) {
    if (shape.join() !== this.shape.join())
      check.fail(
        PaddedShared.title,
        `the layout is for a tile of shape ${listed(this.shape)}, got ${listed(shape)}`,
        `make it for this tile: ${PaddedShared.title}.with_identity_for(${nested(this.pads)}, ${listed(shape)}, order)`,
      );
    return this.explicit(this.offset_bases, this.block_bases, shape);
  }
  static with_identity_for({ interval_padding_pairs, shape, order }) {
    const t = PaddedShared.title;
    const sizes = check.sizes(t, "shape", shape);
    const linear = identityNd("offset", sizes, check.permutation(t, "order", order, sizes.length));
    return new PaddedShared({ interval_padding_pairs, offset_bases: linear.transpose_outs(names(sizes.length)).bases("offset"), block_bases: [], shape: sizes });
  }
}

// -- tensor memory

const TMEM_VARIANTS = ["32x32b", "16x64b", "16x128b", "16x256b", "32x32b_splitn"];

class TensorLayout extends Named {
  rank = 2;
  checkSplit(value) {
    return value == null ? null : check.sizes(this.constructor.title, "cta_split_num", value, 2, "[rows, columns]");
  }
  // The layout of a cluster from that of one block: the parts lie side by side, as more columns.
  split(layout) {
    return (this.cta_split_num ?? []).reduce((all, count, dim) => all.times(identity(count, "col", `dim${dim}`)), layout);
  }
  part(shape) {
    const split = this.cta_split_num ?? [1, 1];
    const sizes = shape.map((size, i) => Math.floor(size / split[i]));
    if (sizes.includes(0)) check.fail(this.constructor.title, `cta_split_num ${listed(this.cta_split_num ?? [])} splits a tile of shape ${listed(shape)} too far`);
    return sizes;
  }
  canonical(layout) {
    return layout.transpose_ins(["row", "col"]).transpose_outs(["dim0", "dim1"]);
  }
}

class TensorMemory extends TensorLayout {
  static title = "TensorMemoryLayout";
  static parameters = ["block", "col_stride", "cta_split_num", "two_ctas"];
  static defaults = { cta_split_num: null, two_ctas: false };
  constructor(p) {
    super();
    const t = TensorMemory.title;
    const [rows, columns] = check.sizes(t, "block", p.block, 2, "(rows, columns)");
    check.oneOf(t, "the number of rows in block", rows, [64, 128]);
    if (columns > 512) check.fail(t, `block has ${columns} columns, tensor memory has 512`);
    check.oneOf(t, "col_stride", p.col_stride, [1, 2, 4]);
    const cta_split_num = this.checkSplit(p.cta_split_num);
    check.flag(t, "two_ctas", p.two_ctas);
    Object.assign(this, p, { cta_split_num });
  }
  linear(shape) {
    const t = TensorMemory.title;
    const [rows, columns] = this.part(shape);
    const [high, wide] = [this.block[0], Math.min(this.block[1], columns)];
    if (rows < high) check.fail(t, `a block has ${high} rows, and the tile, of shape ${listed(shape)}, ${rows} in one CTA`);
    const start = copies("col", this.col_stride, "dim1");
    if (this.two_ctas && high === 64 && this.cta_split_num?.[0] > 1) return this.split(this.pair(start, rows, columns));
    let tile;
    if (high === 128) tile = start.times(identity(128, "row", "dim0")).times(identity(wide, "col", "dim1"));
    else {
      const between = rows > 64 ? [64, 0] : columns > wide ? [0, wide] : [0, 0];
      const half = this.canonical(start.times(identity(16, "row", "dim0")).times(identity(wide, "col", "dim1")));
      const bases = mapOf([["row", [...half.bases("row"), between, [16, 0], [32, 0]]], ["col", half.bases("col")]]);
      tile = Linear.from_bases(bases, ["dim0", "dim1"]);
    }
    const more = (size, dim) => identity(Math.max(1, Math.floor(size / 2 ** tile.outAt(dim)[1])), "col", dim);
    return this.split(this.canonical(tile.times(more(rows, "dim0")).times(more(columns, "dim1"))));
  }
  // What each of a pair of blocks has of 128 rows: 64 of them, the upper half of the columns from row 64 on.
  pair(start, rows, columns) {
    if (rows !== 64 || columns < 2 || this.cta_split_num[0] !== 2)
      check.fail(
        TensorMemory.title,
        `with two_ctas and blocks of 64 rows, cta_split_num must split 128 rows among 2 blocks; it is ${listed(this.cta_split_num)}, with ${rows} rows and ${columns} columns for each`,
      );
    const half = start.times(identity(64, "row", "dim0")).times(identity(Math.floor(columns / 2), "col", "dim1"));
    return this.canonical(half.times(identity(2, "row", "dim1")));
  }
}

class TensorMemoryScales extends TensorLayout {
  static title = "TensorMemoryScalesLayout";
  static parameters = ["cta_split_num"];
  static defaults = { cta_split_num: null };
  constructor(p) {
    super();
    this.cta_split_num = this.checkSplit(p.cta_split_num);
  }
  linear(shape) {
    const [rows, columns] = this.part(shape);
    const pieces = [
      identity(32, "row", "dim0"),
      copies("row", 4, "dim0"),
      identity(4, "col", "dim1"),
      identity(2, "col", "dim0"),
      identity(Math.max(1, Math.floor(rows / 64)), "col", "dim0"),
      identity(Math.max(1, Math.floor(columns / 4)), "col", "dim1"),
    ];
    const whole = pieces.reduce((a, b) => a.times(b));
    return this.split(this.canonical(clip(whole, { dim0: rows, dim1: columns })));
  }
}

// The register layout with which an instruction loads a tile from tensor memory, or stores it.
function get_tmem_reg_layout({ element_ty, shape, layout, num_warps, instr_variant, cga_layout }) {
  const t = "get_tmem_reg_layout";
  const bits = check.oneOf(t, "the width of element_ty", element_ty, [8, 16, 32, 64]);
  if (bits > 32) check.fail(t, `elements of tensor memory have 8, 16 or 32 bits, got ${bits}`);
  if (!TMEM_VARIANTS.includes(instr_variant)) check.fail(t, `instr_variant must be one of ${TMEM_VARIANTS.join(", ")}, got ${repr(instr_variant)}`);
  if (check.powerOfTwo(t, "num_warps", num_warps) < 4) check.fail(t, `num_warps must be 4 or more, as each warp reaches 32 of 128 rows; got ${num_warps}`);
  const cga = check.cga(t, cga_layout, 2);
  if (layout instanceof TensorMemory && bits * layout.col_stride > 32)
    check.fail(
      t,
      `elements of ${bits} bits with col_stride ${layout.col_stride} are ${bits * layout.col_stride} bits apart; a column of tensor memory has 32, so that col_stride is at most ${32 / bits}`,
    );
  if (!(layout instanceof TensorLayout)) check.fail(t, `layout must be a layout of tensor memory, got ${repr(layout)}`);
  const memory = layout.to_linear(shape);
  const parts = cluster(cga, 2);
  const outer = identity(2 ** parts.outAt("dim0")[1], "col", "dim0").times(identity(2 ** parts.outAt("dim1")[1], "col", "dim1"));
  const block = memory.divide(outer, false);
  if (!block)
    check.fail(t, `the blocks of cga_layout ${nested(cga)} are not those of the tensor memory layout`, "cta_split_num must say how many blocks split the rows and the columns");
  if (2 ** block.inLog("col") * bits > 512 * 32)
    check.fail(t, `a tile of shape ${listed(shape)} in ${layout.repr()} takes ${(2 ** block.inLog("col") * bits) / 32} columns of each block, tensor memory has 512`);
  const found = tmemRegisters(block, instr_variant.replace("_splitn", ""), num_warps, bits);
  if (!found) check.fail(t, `${instr_variant} cannot load a tile of shape ${listed(shape)} in ${layout.repr()} with ${num_warps} warps`, "32x32b loads any tile");
  const whole = found.times(parts);
  const bases = Object.fromEntries(["register", "lane", "warp", "block"].map((dim) => [dim, whole.bases(dim)]));
  if (instr_variant === "32x32b_splitn") splitColumns(bases, shape[1], bits);
  return new DistributedLinear({ reg_bases: bases.register, lane_bases: bases.lane, warp_bases: bases.warp, block_bases: bases.block, shape });
}

// Elements packed into registers of 32 bits, as many as fit.
function tmemRegisters(memory, atom, warps, bits) {
  if (bits === 32) return tmemWords(memory, atom, warps);
  let [packed, quotient] = [1, memory];
  for (let count = 2; bits * count <= 32; count *= 2) {
    const smaller = memory.divide(identity(count, "col", "dim1"), true);
    if (!smaller) break;
    [packed, quotient] = [count, smaller];
  }
  if (packed > 1) {
    const found = tmemRegisters(quotient, atom, warps, bits * packed);
    return found && identity(packed, "register", "dim1").times(found);
  }
  const padding = copies("col", 32 / bits, "dim1");
  const pairs = memory.divide(padding.times(identity(2, "col", "dim1")), true);
  if (bits === 16 && pairs) {
    const found = tmemWords(pairs, atom, warps);
    return found && identity(2, "register", "dim1").times(found);
  }
  return tmemWords(memory.divide(padding, true) ?? memory, atom, warps);
}

// What one instruction moves for one warp, from (register, lane) to (row, col) of 32 bits.
function tmemAtom(name) {
  if (name === "16x64b") return Linear.from_bases(mapOf([["register", []], ["lane", [[8, 0], [0, 1], [1, 0], [2, 0], [4, 0]]]]), ["row", "col"]);
  const pieces =
    name === "32x32b"
      ? [identity(32, "lane", "row")]
      : [identity(name === "16x256b" ? 2 : 1, "register", "col"), identity(4, "lane", "col"), identity(8, "lane", "row"), identity(2, "register", "row")];
  const start = Linear.from_bases(mapOf([["register", []], ["lane", []]]), mapOf([["row", 1], ["col", 1]]));
  return pieces.reduce((a, b) => a.times(b.transpose_outs(["row", "col"].filter((n) => b.hasOut(n)))), start);
}

// Elements of 32 bits: the instruction's tile, extended over columns and warps.
function tmemWords(memory, atom, warps) {
  let tile = tmemAtom(atom);
  let columns = Math.floor(2 ** memory.inLog("col") / 2 ** tile.outAt("col")[1]);
  const allRows = atom === "32x32b";
  const halfEmpty = memory.inColumns("row")[4] === 0;
  let reached = tile.compose(memory);
  if (allRows) reached = reached.resize_in("lane", 16);
  if (columns === 0 || !reached.isInjective) return null;
  const row16 = allRows || halfEmpty ? null : warps > 4 ? "warp" : "register";
  let side = Math.floor(warps / (row16 === "warp" ? 8 : 4));
  const idle = Math.floor(side / Math.min(columns, side));
  side = Math.floor(side / idle);
  columns = Math.floor(columns / side);
  if (columns > 1 && allRows && halfEmpty)
    tile = tile.divide(identity(2, "lane", "row"), true).times(identity(Math.floor(columns / 2), "register", "col")).times(identity(2, "lane", "col"));
  else if (columns > 1) tile = tile.times(identity(columns, "register", "col"));
  const bases = mapOf([...tile.ins.map(([n]) => [n, tile.bases(n)]), ["warp", [[32, 0], [64, 0]]]]);
  if (row16) bases.get(row16).push([16, 0]);
  const whole = Linear.from_bases(bases, mapOf([["row", 128], ["col", 2 ** tile.outAt("col")[1]]]), false);
  return whole.times(identity(side, "warp", "col")).times(copies("warp", idle, "col")).compose(memory);
}

// Exchange bases so that the last register bit tells the two halves of the columns apart.
function splitColumns(bases, columns, bits) {
  const t = "get_tmem_reg_layout";
  const half = [0, Math.floor(columns / 2)];
  const isHalf = (basis) => basis?.join() === half.join();
  const registers = bases.register;
  if (!registers.length) {
    if (!isHalf(bases.lane.at(-1))) check.fail(t, "32x32b_splitn needs two or more columns for each lane");
    registers.push(half);
    bases.lane[bases.lane.length - 1] = [0, 0];
    return;
  }
  if (isHalf(registers.at(-1))) return;
  if (2 ** registers.length <= 32 / bits)
    check.fail(t, `32x32b_splitn needs more than ${32 / bits} registers of ${bits} bits, the tile has ${2 ** registers.length} for each lane`, "load it with 32x32b and convert");
  for (const dim of ["lane", "warp"]) {
    const at = bases[dim].findIndex(isHalf);
    if (at < 0) continue;
    [registers[registers.length - 1], bases[dim][at]] = [bases[dim][at], registers.at(-1)];
    return;
  }
  check.fail(t, `no part of the layout tells the halves of ${columns} columns apart`);
}
