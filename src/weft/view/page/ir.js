// Layouts as layout IR has them, `#ttg.blocked<{sizePerThread = [1, 4], ...}>`: what weft/ir/gpu/names.py reads.

const CGA = ["CGALayout", "cga_layout", []];
const WARPS = ["warpsPerCTA", "warps_per_cta"];
const TILES = ["tilesPerWarp", "tiles_per_warp", null];

// Layouts whose text is their parameters in braces: what makes them, then [the word in the text, the parameter, and what is
// meant where it is left out].
const REGULAR = {
  "#ttg.blocked": [Blocked, ["sizePerThread", "size_per_thread"], ["threadsPerWarp", "threads_per_warp"], WARPS, ["order", "order"], CGA],
  "#ttg.swizzled_shared": [SwizzledShared, ["vec", "vec"], ["perPhase", "per_phase"], ["maxPhase", "max_phase"], ["order", "order"], CGA],
  "#ttg.nvmma_shared": [
    NVMMAShared, ["swizzlingByteWidth", "swizzle_byte_width"], ["transposed", "transposed"], ["elementBitWidth", "element_bitwidth"],
    ["fp4Padded", "fp4_padded", false], ["rank", "rank", 2], CGA,
  ],
  "#ttg.amd_mfma": [
    AMDMFMA, ["version", "version"], WARPS, ["instrShape", "instr_shape"], ["isTransposed", "transposed"], CGA, TILES,
    ["elementBitWidth", "element_bitwidth", null],
  ],
  "#ttg.amd_wmma": [AMDWMMA, ["version", "version"], ["isTranspose", "transposed"], WARPS, CGA, TILES, ["instrShape", "instr_shape", null]],
  "#ttig.dpas": [
    IntelDPAS, ["repeatCount", "repeat_count"], ["systolicDepth", "systolic_depth"], ["executionSize", "execution_size"],
    ["opsPerChan", "ops_per_channel"], ["threadsPerWarp", "threads_per_warp"], WARPS, ["repCluster", "rep_cluster"],
  ],
  "#ttg.slice": [Slice, ["dim", "dim"], ["parent", "parent"]],
  "#ttg.dot_op": [DotOperand, ["opIdx", "operand_index"], ["parent", "parent"], ["kWidth", "k_width", 0]],
  "#ttg.shared_linear": [SharedLinear, ["offset", "offset_bases"], ["block", "block_bases", []], ["alignment", "alignment", 16]],
};
REGULAR["#triton_intel_gpu.dpas"] = REGULAR["#ttig.dpas"];
REGULAR["#ttig.dot_op"] = REGULAR["#ttg.dot_op"];

// The shape that bases reach.
const reached = (...parts) => {
  const vectors = parts.flat();
  return vectors.length ? vectors[0].map((_, d) => 2 ** Math.max(...vectors.map((b) => 32 - Math.clz32(b[d])))) : [];
};
const splitOf = ({ CTASplitM: m = 1, CTASplitN: n = 1 }) => (m === 1 && n === 1 ? null : [m, n]);

// The others: what makes them of their fields, and of the pairs before these.
const IRREGULAR = {
  "#ttg.nvidia_mma": (f) => new NVMMA({ version: [f.versionMajor, f.versionMinor], warps_per_cta: f.warpsPerCTA, instr_shape: f.instrShape, cga_layout: f.CGALayout ?? [] }),
  "#ttg.linear"({ register = [], lane = [], warp = [], block = [] }) {
    return new DistributedLinear({ reg_bases: register, lane_bases: lane, warp_bases: warp, block_bases: block, shape: reached(register, lane, warp, block) });
  },
  "#ttg.padded_shared"({ order, shape, offset, block = [] }, interval_padding_pairs) {
    if (order) return PaddedShared.with_identity_for({ interval_padding_pairs, shape, order });
    return new PaddedShared({ interval_padding_pairs, offset_bases: offset, block_bases: block, shape: reached(offset, block) });
  },
  "#ttng.tensor_memory_encoding": (f) => new TensorMemory({ block: [f.blockM, f.blockN], col_stride: f.colStride, cta_split_num: splitOf(f), two_ctas: f.twoCTAs ?? false }),
  "#ttng.tensor_memory_scales_encoding": (f) => new TensorMemoryScales({ cta_split_num: splitOf(f) }),
};

class IrReader {
  constructor(text, start) {
    this.text = text;
    this.start = start; // of the text in the expression
    this.at = 0;
  }
  fail(message, from = this.at, to = from + 1) {
    throw new LayoutError(message, undefined, this.start + from, this.start + Math.max(to, from + 1));
  }
  // What a pattern matches here, after spaces; null where it does not.
  match(pattern) {
    const found = new RegExp(`\\s*(${pattern.source})`, "y");
    found.lastIndex = this.at;
    const match = found.exec(this.text);
    if (!match) return null;
    this.at = found.lastIndex;
    return match[1];
  }
  expect(sign, pattern) {
    this.match(pattern) ?? this.fail(`expected ${sign} in the text of a layout`);
  }
  // Things between commas, up to a closing bracket.
  items(close, read) {
    const found = [];
    while (!this.match(close)) {
      if (found.length) this.expect("`,`", /,/);
      found.push(read());
    }
    return found;
  }
  value() {
    const number = this.match(/-?\d+/);
    if (number !== null) return this.match(/:\s*i\d+/) === ": i1" ? number !== "0" : Number(number);
    const word = this.match(/true\b|false\b/);
    if (word) return word === "true";
    if (this.match(/\[/)) return this.items(/\]/, () => this.value());
    if (this.match(/(?=#)/) !== null) return this.layout();
    return this.fail("expected a number, a list or a layout");
  }
  fields(close) {
    const pairs = this.items(close, () => {
      const name = this.match(/\w+/) ?? this.fail("expected the name of a field");
      this.expect("`=`", /=/);
      return [name, this.value()];
    });
    return Object.fromEntries(pairs);
  }
  layout() {
    this.match(/(?=#)/);
    const from = this.at;
    const name = this.match(/#[\w.]+/);
    const known = [...Object.keys(REGULAR), ...Object.keys(IRREGULAR)];
    if (!name.includes(".")) this.fail(`'${name}' is not defined`, from, this.at);
    if (!known.includes(name)) {
      const near = closest(name, known);
      throw new LayoutError(`there is no layout ${name}`, near ? `did you mean ${near}?` : `known are ${known.join(", ")}`, this.start + from, this.start + this.at);
    }
    let pairs = [], fields = {};
    if (this.match(/</)) {
      if (this.match(/\[/))
        pairs = this.items(/\]/, () => {
          const interval = Number(this.match(/\d+/) ?? this.fail("expected an interval and a padding, 64:+8"));
          this.expect("`:+`", /:\s*\+/);
          return [interval, Number(this.match(/\d+/) ?? this.fail("expected an interval and a padding, 64:+8"))];
        });
      if (this.match(/\{/)) fields = this.fields(/\}/);
      this.match(/,/);
      Object.assign(fields, this.fields(/>/));
    }
    try {
      if (!REGULAR[name]) return IRREGULAR[name](fields, pairs);
      const [made, ...parameters] = REGULAR[name];
      const missing = parameters.find(([key, , ...usual]) => !(key in fields) && !usual.length);
      if (missing) throw new LayoutError(`'${missing[0]}' is missing`);
      const values = parameters.map(([key, parameter, usual]) => [parameter, fields[key] ?? usual]);
      return new made(Object.fromEntries(values.map(([key, value]) => [key, key === "transposed" ? Boolean(value) : value])));
    } catch (error) {
      if (error instanceof LayoutError && error.start === undefined) this.fail(`${name}: ${error.message}`, from, from + name.length);
      if (error instanceof LayoutError) throw error;
      return this.fail(`${name}: these are not its fields`, from, from + name.length);
    }
  }
}

function layoutOfIr(text, start) {
  const reader = new IrReader(text, start);
  const layout = reader.layout();
  if (reader.match(/\S/)) reader.fail("expected a layout, as #ttg.blocked<{...}>, and nothing else", reader.at - 1);
  return layout;
}
