// Results and operands of matrix instructions, as in weft/layouts/zoo/nvidia.py, amd.py, intel.py and scales.py.

class NVMMA extends Distributed {
  static title = "NVMMADistributedLayout";
  static parameters = ["version", "warps_per_cta", "instr_shape", "cga_layout"];
  static defaults = { cga_layout: [] };
  constructor(p) {
    super();
    const t = NVMMA.title;
    const version = check.sequence(t, "version", p.version);
    if (version.length !== 2 || ![2, 3].includes(version[0]))
      check.fail(t, `version must be [2, 0] (mma.sync) or [3, 0] (wgmma), got ${listed(version)}`, version[0] === 5 ? "the accumulators of version [5, 0] (tcgen05) are in tensor memory, see TensorMemoryLayout" : undefined);
    this.rank = check.warps(t, p.warps_per_cta).length;
    this.checkShape(version, p.instr_shape);
    Object.assign(this, p, { cga_layout: check.cga(t, p.cga_layout, this.rank) });
  }
  checkShape(version, given) {
    const t = NVMMA.title;
    const wgmma = version[0] === 3;
    if (wgmma && this.rank !== 2) check.fail(t, `the rank of wgmma's result must be 2, got ${this.rank} from warps_per_cta`);
    const shape = check.sizes(t, "instr_shape", given);
    const fits = wgmma ? [2, 3].includes(shape.length) : shape.length === this.rank;
    const [m, n] = fits ? (wgmma ? shape.slice(0, 2) : shape.slice(-2)) : [0, 0];
    if (m < 8 || n < 8)
      check.fail(t, `instr_shape of version ${listed(version)} for rank ${this.rank} must be ${wgmma ? "[16, N, K]" : "[..., 16, 8], one for each dimension"}, with 8 or more rows and columns; got ${listed(shape)}`);
  }
  tile(inner, outer, [m, n], kWidth) {
    return [
      identity(kWidth, "register", inner),
      identity(4, "lane", inner),
      identity(8, "lane", outer),
      identity(Math.floor(m / 8), "register", outer),
      identity(Math.floor(n / (4 * kWidth)), "register", inner),
    ];
  }
  get warpOrder() {
    return matrixOrder(this.rank, this.version[0] === 2);
  }
  linear(shape) {
    const order = matrixOrder(this.rank);
    const size = this.version[0] === 2 ? this.instr_shape.slice(-2) : this.instr_shape.slice(0, 2);
    const tile = this.tile(`dim${order[0]}`, `dim${order[1]}`, size, 2);
    return combine(fragment(order, ...tile, identityNd("warp", this.warps_per_cta, this.warpOrder)), this.cga_layout, shape);
  }
  checkOperand(index, kWidth) {
    if (!kWidth) throw new LayoutError(`DotOperandLayout: k_width is 0; operands of ${this.repr()} need a power of two`);
    if (index && this.version[0] === 3)
      throw new LayoutError("DotOperandLayout: operand 1 of wgmma is in shared memory, it has no layout in registers", "store it to shared memory in an NVMMASharedLayout");
  }
  operand(index, kWidth, shape) {
    const order = operandOrder(index, this.rank);
    const tile = this.tile(`dim${order[0]}`, `dim${order[1]}`, [index ? 8 : 16, 8 * kWidth], kWidth);
    const warps = identityNd("warp", this.warps_per_cta, this.warpOrder, order[0]);
    return combine(fragment(order, ...tile, warps), operandCga(this.cga_layout, order[0]), shape);
  }
}

// What AMD's two have in common: tiles of instructions repeated over the tensor.
class AMDMatrix extends Distributed {
  tiles(value) {
    return value == null ? Array(this.rank).fill(1) : check.sizes(this.constructor.title, "tiles_per_warp", value, this.rank, "warps_per_cta");
  }
  result(tile, shape) {
    const { rank, tiles_per_warp: tiles, warps_per_cta: warps } = this;
    const [m, n] = [rank - 2, rank - 1];
    const wide = this.instr_shape[1] * warps[n] * tiles[n];
    const pieces = [
      identity(tiles[n], "register", `dim${n}`),
      identity(warps[n], "warp", `dim${n}`),
      identity(Math.max(1, Math.floor(shape[n] / wide)), "register", `dim${n}`),
      identity(tiles[m], "register", `dim${m}`),
      identity(warps[m], "warp", `dim${m}`),
    ];
    if (rank === 3) pieces.push(identity(warps[0], "warp", "dim0"));
    return combine(fragment(matrixOrder(rank), ...tile, ...pieces), this.cga_layout, shape);
  }
  repeated(tile, repeat, index, shape) {
    const order = operandOrder(index, this.rank);
    const [k, other] = order;
    const pieces = [
      identity(Math.max(1, Math.floor(repeat)), "register", `dim${k}`),
      identity(this.tiles_per_warp[other], "register", `dim${other}`),
      identityNd("warp", this.warps_per_cta, matrixOrder(this.rank), k),
    ];
    return combine(fragment(order, ...tile, ...pieces), this.cga_layout, shape);
  }
}

class AMDMFMA extends AMDMatrix {
  static title = "AMDMFMALayout";
  static parameters = ["version", "instr_shape", "transposed", "warps_per_cta", "element_bitwidth", "tiles_per_warp", "cga_layout"];
  static defaults = { element_bitwidth: null, tiles_per_warp: null, cga_layout: [] };
  constructor(p) {
    super();
    const t = AMDMFMA.title;
    const shape = check.sizes(t, "instr_shape", p.instr_shape, 3, "[M, N, K]");
    const size = shape.slice(0, 2).join("x");
    const legal = ["32x32", "16x16", "64x4", "4x64"];
    if (!legal.includes(size)) check.fail(t, `instr_shape starts with M x N, one of ${legal.join(", ")}, got ${listed(shape)}`);
    check.flag(t, "transposed", p.transposed);
    if (size === "64x4" && !p.transposed) check.fail(t, "the result of a 64x4 instruction is always transposed, got transposed=False");
    this.rank = check.warps(t, p.warps_per_cta).length;
    check.integer(t, "version", p.version, 1, 4);
    const element_bitwidth = check.oneOf(t, "element_bitwidth", p.element_bitwidth ?? 32, [32, 64]);
    const tiles_per_warp = this.tiles(p.tiles_per_warp);
    Object.assign(this, p, { element_bitwidth, tiles_per_warp, cga_layout: check.cga(t, p.cga_layout, this.rank) });
  }
  get natural() {
    return { element_bitwidth: 32, tiles_per_warp: Array(this.rank).fill(1) };
  }
  linear(shape) {
    let [m, n] = this.instr_shape;
    let [rows, columns] = [`dim${this.rank - 2}`, `dim${this.rank - 1}`];
    if (this.transposed) [m, n, rows, columns] = [n, m, columns, rows];
    const height = this.element_bitwidth === 64 ? 1 : 4;
    const tile = [
      identity(height, "register", rows),
      identity(n, "lane", columns),
      identity(64 / n, "lane", rows),
      identity(Math.max(1, Math.floor((m * n) / (64 * height))), "register", rows),
    ];
    return this.result(tile, shape);
  }
  checkOperand(index, kWidth) {
    if (!kWidth) throw new LayoutError(`DotOperandLayout: k_width is 0; operands of ${this.repr()} need a power of two`);
  }
  operand(index, kWidth, shape) {
    const [k, other] = operandOrder(index, this.rank);
    const size = this.instr_shape[index];
    const times = ["64,4,0", "4,64,1"].includes([...this.instr_shape.slice(0, 2), index].join()) ? 16 : 1;
    const tile = [
      identity(kWidth, "register", `dim${k}`),
      identity(size, "lane", `dim${other}`),
      identity(64 / size, "lane", `dim${k}`),
      identity(times, "register", `dim${k}`),
    ];
    return this.repeated(tile, shape[k] / ((64 / size) * kWidth * times), index, shape);
  }
}

const WMMA_DEPTHS = { 1: [16], 2: [16, 32], 3: [4, 32, 64, 128] };
const WMMA_K_WIDTHS = { 1: [8, 16], 2: [4, 8, 16], 3: [2, 8, 16] };

class AMDWMMA extends AMDMatrix {
  static title = "AMDWMMALayout";
  static parameters = ["version", "transposed", "warps_per_cta", "instr_shape", "tiles_per_warp", "cga_layout"];
  static defaults = { instr_shape: null, tiles_per_warp: null, cga_layout: [] };
  constructor(p) {
    super();
    const t = AMDWMMA.title;
    const instr_shape = check.sizes(t, "instr_shape", p.instr_shape ?? [16, 16, 16], 3, "[M, N, K]");
    const depths = WMMA_DEPTHS[check.integer(t, "version", p.version, 1, 3)];
    if (instr_shape.slice(0, 2).join() !== "16,16" || !depths.includes(instr_shape[2]))
      check.fail(t, `instr_shape of version ${p.version} must be [16, 16, K] with K one of ${depths.join(", ")}, got ${listed(instr_shape)}`);
    this.rank = check.warps(t, p.warps_per_cta).length;
    check.flag(t, "transposed", p.transposed);
    const tiles_per_warp = this.tiles(p.tiles_per_warp);
    Object.assign(this, p, { instr_shape, tiles_per_warp, cga_layout: check.cga(t, p.cga_layout, this.rank) });
  }
  get natural() {
    return { instr_shape: [16, 16, 16], tiles_per_warp: Array(this.rank).fill(1) };
  }
  linear(shape) {
    let [rows, columns] = [`dim${this.rank - 2}`, `dim${this.rank - 1}`];
    if (this.transposed) [rows, columns] = [columns, rows];
    const registers = identity(8, "register", rows);
    const lanes = [identity(16, "lane", columns), identity(2, "lane", rows)];
    return this.result(this.version === 1 ? [...lanes, registers] : [registers, ...lanes], shape);
  }
  checkOperand(index, kWidth) {
    check.oneOf("DotOperandLayout", `k_width of ${this.repr()}`, kWidth, WMMA_K_WIDTHS[this.version]);
  }
  operand(index, kWidth, shape) {
    const [k, other] = operandOrder(index, this.rank);
    const lanes = this.version === 1 ? copies("lane", 2, `dim${k}`) : identity(2, "lane", `dim${k}`);
    const depth = Math.max(this.instr_shape[2], 2 * kWidth);
    const tile = [identity(kWidth, "register", `dim${k}`), identity(16, "lane", `dim${other}`), lanes, identity(depth / (2 * kWidth), "register", `dim${k}`)];
    // Only so that the tiles of a warp come after all of K; without them K is what is covered first anyway.
    return this.repeated(tile, this.tiles_per_warp[other] > 1 ? shape[k] / depth : 1, index, shape);
  }
}

class IntelDPAS extends Distributed {
  static title = "IntelDPASLayout";
  static parameters = ["repeat_count", "systolic_depth", "execution_size", "ops_per_channel", "warps_per_cta", "rep_cluster", "threads_per_warp"];
  static defaults = {};
  constructor(p) {
    super();
    const t = IntelDPAS.title;
    this.rank = check.warps(t, p.warps_per_cta).length;
    const threads = check.powerOfTwo(t, "threads_per_warp", p.threads_per_warp);
    const wide = check.powerOfTwo(t, "execution_size", p.execution_size);
    if (threads < wide) check.fail(t, `threads_per_warp must be execution_size (${wide}) or more, got ${threads}`);
    check.oneOf(t, "repeat_count", p.repeat_count, [1, 2, 4, 8]);
    check.oneOf(t, "systolic_depth", p.systolic_depth, [8]);
    check.oneOf(t, "ops_per_channel", p.ops_per_channel, [1, 2, 4, 8]);
    check.sizes(t, "rep_cluster", p.rep_cluster, this.rank, "warps_per_cta");
    this.cga_layout = [];
    Object.assign(this, p);
  }
  linear(shape) {
    const [m, n] = [`dim${this.rank - 2}`, `dim${this.rank - 1}`];
    const rows = this.threads_per_warp / this.execution_size;
    const tile = [
      identity(this.execution_size, "lane", n),
      identity(rows, "lane", m),
      identity(Math.max(1, Math.floor(this.repeat_count / rows)), "register", m),
    ];
    return this.over(tile, shape, [this.rank - 2, this.rank - 1], null);
  }
  checkOperand(index, kWidth) {
    const wanted = index ? this.ops_per_channel : Math.max(1, this.ops_per_channel / 2);
    if (kWidth !== wanted)
      throw new LayoutError(`DotOperandLayout: k_width of operand ${index} of ${this.repr()} must be ${wanted}, got ${kWidth}`, "lanes hold 16 bits of operand 0 and 32 bits of operand 1 at once");
  }
  operand(index, kWidth, shape) {
    const [m, n] = [this.rank - 2, this.rank - 1];
    if (index === 0) {
      const lanes = (this.systolic_depth * this.ops_per_channel) / kWidth;
      const rows = Math.floor(this.threads_per_warp / lanes);
      const tile = [
        identity(kWidth, "register", `dim${n}`),
        identity(lanes, "lane", `dim${n}`),
        identity(rows, "lane", `dim${m}`),
        identity(Math.max(1, Math.floor(this.repeat_count / rows)), "register", `dim${m}`),
      ];
      return this.over(tile, shape, [m, n], n);
    }
    const rows = this.threads_per_warp / this.execution_size;
    const tile = [
      identity(kWidth, "register", `dim${m}`),
      identity(this.execution_size, "lane", `dim${n}`),
      identity(rows, "lane", `dim${m}`),
      identity(Math.max(1, Math.floor(this.systolic_depth / rows)), "register", `dim${m}`),
    ];
    return this.over(tile, shape, [n, m], m);
  }
  // One instruction's tile over the tensor; along k there are no clusters, and all warps have the same.
  over(tile, shape, dims, k) {
    const pieces = [...tile];
    const last = [this.rank - 1, this.rank - 2];
    for (const d of last) if (d !== k) pieces.push(identity(this.rep_cluster[d], "register", `dim${d}`));
    for (const d of last) pieces.push(d === k ? copies("warp", this.warps_per_cta[d], `dim${d}`) : identity(this.warps_per_cta[d], "warp", `dim${d}`));
    if (this.rank === 3) pieces.push(identity(this.warps_per_cta[0], "warp", "dim0"));
    return combine(fragment([dims[1], dims[0], ...downFrom(this.rank - 3)], ...pieces), [], shape);
  }
}

// -- the scales of block-scaled products on AMD

function mfma_scale_layout({ dot_operand_layout: operand, shape }) {
  const parent = operand?.parent;
  if (!(operand instanceof DotOperand) || !(parent instanceof AMDMFMA) || ![16, 32].includes(parent.instr_shape[0]) || parent.rank !== 2)
    throw new LayoutError(`mfma_scale_layout: the layout must be an operand of a 16x16 or 32x32 AMDMFMALayout of rank 2, got ${repr(operand)}`);
  const size = parent.instr_shape[0];
  return scales(operand, parent, [identity(size, "lane", "dim0"), identity(64 / size, "lane", "dim1")], shape, 1);
}

function wmma_scale_layout({ dot_operand_layout: operand, shape }) {
  const parent = operand?.parent;
  if (!(operand instanceof DotOperand) || !(parent instanceof AMDWMMA) || parent.version !== 3 || parent.rank !== 2)
    throw new LayoutError(`wmma_scale_layout: the layout must be an operand of an AMDWMMALayout of version 3 and rank 2, got ${repr(operand)}`);
  const tiles = parent.tiles_per_warp[operand.operand_index];
  if (tiles > 2) throw new LayoutError(`wmma_scale_layout: there are lanes for 1 or 2 tiles per warp, tiles_per_warp says ${tiles}`);
  const upper = tiles === 2 ? identity(2, "lane", "dim0") : copies("lane", 2, "dim0");
  return scales(operand, parent, [identity(4, "register", "dim1"), identity(16, "lane", "dim0"), upper], shape, tiles);
}

// A tile of scales over all of K, then over the tiles of a warp, then over the warps that share the operand.
function scales(operand, parent, tile, shape, tilesInLanes) {
  const index = operand.operand_index;
  const sizes = check.shape("the layout of scales", shape, 2);
  const covered = 2 ** fragment([0, 1], ...tile).outAt("dim1")[1];
  const warps = parent.warps_per_cta;
  const along = index ? [identity(warps[1], "warp", "dim0"), copies("warp", warps[0], "dim1")] : [copies("warp", warps[1], "dim1"), identity(warps[0], "warp", "dim0")];
  const pieces = [
    ...tile,
    identity(Math.max(1, Math.floor(sizes[1] / covered)), "register", "dim1"),
    identity(Math.floor(parent.tiles_per_warp[index] / tilesInLanes), "register", "dim0"),
    ...along,
  ];
  return explicit(combine(fragment([0, 1], ...pieces), [], sizes), sizes);
}

// A layout in registers as a named one.
function explicit(linear, shape) {
  const bases = (dim) => linear.bases(dim);
  return new DistributedLinear({ reg_bases: bases("register"), lane_bases: bases("lane"), warp_bases: bases("warp"), block_bases: bases("block"), shape });
}
