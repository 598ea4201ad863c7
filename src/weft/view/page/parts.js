// Pieces of which the layouts of hardware are put together, as in weft/layouts/zoo/parts.py and cga.py.

const names = (rank) => Array.from({ length: rank }, (_, i) => `dim${i}`);
const identity = (size, inDim, outDim) => Linear.identity_1d(size, inDim, outDim);
const copies = (inDim, count, outDim) => Linear.zeros_1d(count, inDim, outDim);
const mapOf = (dims) => new Map(dims);
const downFrom = (last) => Array.from({ length: Math.max(0, last + 1) }, (_, i) => last - i);
const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

function matrixOrder(rank, rowMajor = true) {
  const last = rowMajor ? [rank - 1, rank - 2] : [rank - 2, rank - 1];
  return last.concat(downFrom(rank - 3));
}
const operandOrder = (index, rank) => matrixOrder(rank, index === 0);

function identityNd(inDim, sizes, order, zero = null) {
  return order
    .map((d) => (d === zero ? copies(inDim, sizes[d], `dim${d}`) : identity(sizes[d], inDim, `dim${d}`)))
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

const cluster = (bases, rank) => Linear.from_bases(mapOf([["block", bases ?? []]]), names(rank));

function shapePerBlock(shape, cga) {
  return cluster(cga, shape.length).outs.map(([, log], i) => Math.max(1, Math.floor(shape[i] / 2 ** log)));
}

// The layout of a tile from that of a block.
function combine(block, cga, shape) {
  const all = names(shape.length);
  const target = Object.fromEntries(all.map((n, i) => [n, shape[i]]));
  const blocks = clip(cluster(cga, shape.length), target);
  const own = Object.fromEntries(blocks.outs.map(([n, log]) => [n, target[n] / 2 ** log]));
  const fitted = clip(grow(block, own), own);
  return fitted.times(blocks.transpose_outs(fitted.outs.map((d) => d[0]))).transpose_outs(all);
}

const operandCga = (cga, k) => (cga ?? []).map((basis) => basis.map((c, d) => (d === k ? 0 : c)));

function make_cga_layout({ ctas_per_cga, cta_split_num, cta_order }) {
  const owner = "make_cga_layout";
  const counts = check.sizes(owner, "ctas_per_cga", ctas_per_cga);
  const rank = counts.length;
  const splits = check.sizes(owner, "cta_split_num", cta_split_num, rank, "ctas_per_cga");
  const found = [];
  for (const dim of check.permutation(owner, "cta_order", cta_order, rank)) {
    const [count, split] = [counts[dim], splits[dim]];
    if (split > count) check.fail(owner, `dimension ${dim} is to be split ${split} times among ${count} blocks`);
    for (let bit = 1; bit < count; bit *= 2) found.push(counts.map((_, d) => (d === dim && bit < split ? bit : 0)));
  }
  return found;
}
