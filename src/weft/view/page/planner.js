// A plan for a conversion, made in the page when its layouts are not those that Weft planned: the kind of conversion, shuffles
// (weft/layouts/plan/shuffle.py) and a trip through shared memory without bank conflicts where that is possible (swizzle.py).
// Costs are not weighed, and ldmatrix, stmatrix and hybrids not considered: that is what the command line is for.

const PLACE_DIMS = ["register", "lane", "warp", "block"];
const NEAR = ["block", "warp", "lane"];

// A layout in registers with all four inputs, its outputs in the order of `order`.
function normalised(layout, name, order) {
  const odd = layout.ins.find((d) => !PLACE_DIMS.includes(d[0]));
  if (odd) throw new LayoutError(`${name} is no layout in registers, it has the input ${odd[0]}: there is nothing to convert`);
  for (const dim of PLACE_DIMS) if (!layout.hasIn(dim)) layout = layout.times(copies(dim, 1, layout.outs[0][0]));
  return layout.transpose_ins(PLACE_DIMS).transpose_outs(order);
}

function checkPair(src, dst) {
  for (const dim of NEAR)
    if (src.inLog(dim) !== dst.inLog(dim)) throw new LayoutError(`A has ${2 ** src.inLog(dim)} ${dim}s and B ${2 ** dst.inLog(dim)}: a conversion happens within one launch`);
  for (const [layout, name] of [[src, "A"], [dst, "B"]]) if (!layout.isSurjective) throw new LayoutError(`${name} does not hold the whole tile: ${layout.missing}`);
}

// {kind, scope, src, dst, steps}; `memory` is a layout of shared memory to go through, or null for one without conflicts.
function planHere(a, b, bits, memory = null) {
  if (b.hasIn("offset")) throw new LayoutError("B is a layout of shared memory, and a tile is stored to it by its accesses", "write it as S: the banks show the store by A");
  b = sameNames(a, b)[1];
  if (memory) memory = sameNames(a, memory)[1];
  const order = a.outs.map((d) => d[0]);
  if (!a.outs.length || !b.sameOuts(a.outs) || b.outs.some(([n, log]) => a.outAt(n)[1] !== log)) throw new LayoutError("A and B are not layouts of one tile: their outputs differ");
  const [src, dst] = [normalised(a, "A", order), normalised(b, "B", order)];
  checkPair(src, dst);
  const found = { src, dst, source: a, result: b, bits, scope: "", here: true };
  if (memory === null && src.equals(dst)) return { ...found, kind: "nothing", steps: [] }; // whatever copies registers hold
  const conversion = dst.invert_and_compose(src, NEAR);
  if (memory === null && conversion.isTrivialOver(NEAR)) {
    if (conversion.isTrivialOver(PLACE_DIMS)) return { ...found, kind: "nothing", steps: [] };
    return { ...found, kind: "registers", steps: [{ kind: "rename", text: "Registers get other names; nothing moves.", map: conversion, masks: {} }] };
  }
  const how = memory === null ? byShuffles(src, conversion) : null;
  if (how) return { ...found, kind: "shuffles", steps: shearSteps(how, src, dst) };
  const trip = memory === null ? tripOf(src, conversion, bits) : tripThrough(memory.transpose_outs(order), src, dst);
  return { ...found, kind: trip.scope === "cluster" ? "cluster" : "shared", scope: trip.scope, steps: tripSteps(trip, bits) };
}

// (register, lane, warp, block) of the source that each bit of a dimension of the result adds.
function partsOf(conversion, dim) {
  return conversion.inColumns(dim).map((c) => Object.fromEntries(conversion.split(c).map((v, i) => [conversion.outs[i][0], v])));
}

// The shears of a conversion within warps, or null where it crosses warps or takes more than one round.
function byShuffles(src, conversion) {
  const parts = Object.fromEntries(PLACE_DIMS.map((dim) => [dim, partsOf(conversion, dim)]));
  if ([...parts.register, ...parts.lane].some((p) => p.warp || p.block)) return null;
  if (parts.warp.some((p, i) => p.warp !== 1 << i || p.block)) return null;
  if (parts.block.some((p, i) => p.register || p.lane || p.warp || p.block !== 1 << i)) return null;
  const log = src.inLog("register");
  const same = kernel([...src.inColumns("register"), ...src.inColumns("lane")]).map((k) => [k & (2 ** log - 1), k >>> log]);
  const pairs = (dim) => parts[dim].map((p) => [p.register, p.lane]);
  return shears(pairs("register"), pairs("lane"), pairs("warp"), same.filter((c) => c[1]));
}

function shears(registers, lanes, warps, same) {
  const d = registers.map((p) => p[1]);
  const after = lanes.map(() => 0);
  const image = lanes.map((p) => [...p]);
  const rows = new Echelon();
  const given = [];
  const waiting = [];
  lanes.forEach(([, lane], i) => {
    if (rows.has(lane)) return waiting.push(i);
    rows.add(lane);
    given.push(i);
  });
  for (const i of waiting) {
    const used = rows.coefficients(image[i][1]);
    const register = given.reduce((sum, j, k) => ((used >>> k) & 1 ? sum ^ image[j][0] : sum), image[i][0]);
    if (!register) continue; // reads what other lanes read too
    const choice = wayOut(rows, image[i], registers, same);
    if (!choice) return null;
    [after[i], image[i]] = choice;
    rows.add(image[i][1]);
    given.push(i);
  }
  const lanesOut = image.map((p) => p[1]);
  const independent = given.map((i) => lanesOut[i]);
  const length = (x) => 32 - Math.clz32(x);
  const size = Math.max(lanes.length, ...[...lanesOut, ...d, ...warps.map((p) => p[1])].map(length));
  const known = solve([...independent, ...complement(independent, size)], units(size)) ?? [];
  const parts = given.map((i) => image[i][0]);
  const g = known.map((k) => multiply(parts, k & (2 ** parts.length - 1)));
  return {
    after,
    lanes: lanesOut,
    lanesByRegister: d,
    lanesByWarp: warps.map((p) => p[1]),
    registers: registers.map(([r, x]) => r ^ multiply(g, x)),
    before: g.slice(0, lanes.length),
    beforeByWarp: warps.map(([r, x]) => r ^ multiply(g, x)),
  };
}

// What to add so that a lane bit reads a lane of its own: [register of the result, new image].
function wayOut(rows, image, registers, same) {
  for (const [r, lane] of same) if (!rows.has(image[1] ^ lane)) return [0, [image[0] ^ r, image[1] ^ lane]];
  for (const [i, [r, lane]] of registers.entries()) if (!rows.has(image[1] ^ lane)) return [1 << i, [image[0] ^ r, image[1] ^ lane]];
  return null;
}

// A map between places: for each bit of each dimension, what it adds to each dimension.
function placeMap(parts, outs) {
  const ins = Object.entries(parts).map(([dim, own]) => [dim, own.length]);
  const starts = {};
  outs.reduce((at, [name, log]) => ((starts[name] = at), at + log), 0);
  const columns = Object.values(parts).flat().map((bit) => Object.entries(bit).reduce((sum, [name, v]) => sum ^ (v << starts[name]), 0));
  return new Linear(ins, outs, columns);
}
const unitsOf = (dim, log) => units(log).map((v) => ({ [dim]: v }));

function shearSteps(how, src, dst) {
  const others = { lane: unitsOf("lane", src.inLog("lane")), warp: unitsOf("warp", src.inLog("warp")), block: unitsOf("block", src.inLog("block")) };
  const steps = [];
  if ([...how.before, ...how.beforeByWarp].some(Boolean)) {
    const lane = how.before.map((g, i) => ({ lane: 1 << i, register: g }));
    const warp = how.beforeByWarp.map((h, i) => ({ warp: 1 << i, register: h }));
    const map = placeMap({ register: unitsOf("register", src.inLog("register")), ...others, lane, warp }, src.ins);
    steps.push({ kind: "select", text: "Each lane chooses among its registers what it will send.", map, masks: {} });
  }
  const moved = placeMap(
    {
      register: how.registers.map((register, i) => ({ register, lane: how.lanesByRegister[i] })),
      lane: how.lanes.map((lane) => ({ lane })),
      warp: how.lanesByWarp.map((lane, i) => ({ warp: 1 << i, lane })),
      block: others.block,
    },
    src.ins,
  );
  const still = how.lanes.every((x, i) => x === 1 << i) && ![...how.lanesByRegister, ...how.lanesByWarp].some(Boolean);
  steps.push({ kind: still ? "rename" : "shuffle", text: still ? "Registers get other names; nothing moves." : "Each register is read from a lane of the same warp.", map: moved, masks: {} });
  if (how.after.some(Boolean)) {
    const lane = how.after.map((register, i) => ({ lane: 1 << i, register }));
    const map = placeMap({ register: unitsOf("register", dst.inLog("register")), ...others, lane }, dst.ins);
    steps.push({ kind: "select", text: "Each lane puts what it got in order among its registers.", map, masks: {} });
  }
  return steps;
}

// -- through shared memory

// Bits of places that hold copies, by dimension: who has one set stores nothing.
function copyMasks(src) {
  return Object.fromEntries(src.sublayout(["register", "lane", "warp"], src.outs.map((d) => d[0])).freeMasks);
}

function scopeOf(src, conversion) {
  const crossing = ["register", "lane", "warp"].some((dim) => partsOf(conversion, dim).some((p) => p.block));
  if (crossing || partsOf(conversion, "block").some((p, i) => p.block !== 1 << i)) return "cluster";
  const still = ["register", "lane"].every((dim) => partsOf(conversion, dim).every((p) => !p.warp)) && partsOf(conversion, "warp").every((p, i) => p.warp === 1 << i);
  return still && !copyMasks(src).warp ? "warp" : "block";
}

// A trip through a layout of memory that was chosen.
function tripThrough(memory, src, dst) {
  if (Math.max(src.inLog("block"), memory.inLog("block")) > 0) throw new LayoutError("through S: the page goes through a chosen layout of one block only");
  const map = (layout) => layout.invert_and_compose(memory);
  const store = map(src.sublayout(["register", "lane", "warp"], src.outs.map((d) => d[0])));
  const load = map(dst);
  const only = (layout) => layout.sublayout(layout.ins.map((d) => d[0]), ["offset"]);
  return { store: only(store), load: only(load), masks: copyMasks(src), scope: scopeOf(src, dst.invert_and_compose(src, NEAR)) };
}

// A trip through memory in which neither side has bank conflicts, where there is one.
function tripOf(src, conversion, bits) {
  const bytesLog = Math.max(0, Math.log2(bits) - 3);
  const dims = ["register", "lane", "warp"];
  const own = dims.flatMap((d) => src.inColumns(d));
  const free = dependent(own);
  const basis = own.filter((_, i) => !free.includes(i));
  const rows = new Echelon(basis);
  const inside = own.map((c) => rows.coefficients(c) ?? 0);
  const size = basis.length;
  const cut = (dim) => dims.slice(0, dims.indexOf(dim)).reduce((sum, d) => sum + src.inLog(d), 0);
  const a = Object.fromEntries(dims.map((d) => [d, inside.slice(cut(d), cut(d) + src.inLog(d))]));
  const b = Object.fromEntries(PLACE_DIMS.map((d) => [d, conversion.inColumns(d).map((c) => multiply(inside, c & (2 ** own.length - 1)))]));
  const home = Object.fromEntries(PLACE_DIMS.map((d) => [d, conversion.inColumns(d).map((c) => c >>> own.length)]));
  const apart = [...a.lane, ...a.warp, ...b.lane, ...b.warp, ...b.block].filter(Boolean);
  const writer = a.register.filter(Boolean);
  const reader = b.register.filter((c, i) => c && !home.register[i]);
  const low = lowest(writer, reader, apart, bytesLog);
  const words = Math.max(0, low.length - (2 - bytesLog));
  const phase = (lanes) => (words ? lanes.slice(0, Math.max(0, 5 - words)) : lanes).filter(Boolean);
  const memory = memoryBasis(low, phase(a.lane), phase(b.lane), apart, size, bytesLog);
  const place = new Echelon(memory);
  const at = (vectors) => vectors.map((v) => place.coefficients(v) ?? 0);
  const store = new Linear(dims.map((d) => [d, a[d].length]), [["offset", size]], dims.flatMap((d) => at(a[d])));
  const load = new Linear(
    PLACE_DIMS.map((d) => [d, b[d].length]),
    [["offset", size], ["block", src.inLog("block")]],
    PLACE_DIMS.flatMap((d) => at(b[d]).map((x, i) => x + home[d][i] * 2 ** size)),
  );
  return { store, load, masks: copyMasks(src), scope: scopeOf(src, conversion) };
}

// The elements of the lowest offset bits: registers of both sides that nothing else has a part in, up to 16 bytes; to a full word
// from the writer's.
function lowest(writer, reader, apart, bytesLog) {
  const rows = new Echelon();
  let common = writer.filter((c) => reader.includes(c) && rows.add(c));
  if ([...writer, ...reader].some((c) => c & (c - 1))) {
    common = common.concat(intersection(writer, reader).filter((c) => rows.add(c)));
    const others = new Echelon(apart);
    common = common.filter((c) => others.add(c));
  }
  const found = common.slice(0, Math.max(0, 4 - bytesLog));
  const taken = new Echelon(found);
  for (const c of writer) if (found.length < Math.max(0, 2 - bytesLog) && taken.add(c)) found.push(c);
  return found;
}

// The element at each power of two of the offset: vector, banks, segments.
function memoryBasis(low, aLanes, bLanes, apart, size, bytesLog) {
  const banks = 7 - bytesLog - low.length;
  const segments = Math.max(0, size - low.length - Math.max(0, banks));
  const rows = new Echelon(low);
  const chosen = [];
  if (segments)
    for (const v of [...commonComplement([...low, ...aLanes], [...low, ...bLanes], size), ...aLanes, ...bLanes, ...units(size)])
      if (chosen.length < segments && rows.add(v)) chosen.push(v);
  const banked = units(size).filter((v) => rows.add(v));
  const place = new Echelon([...low, ...apart]);
  units(size).forEach((unit) => place.add(unit));
  const mask = 2 ** low.length - 1;
  return [...low, ...[...banked, ...chosen].map((v) => v ^ multiply(low, (place.coefficients(v) ?? 0) & mask))];
}

function tripSteps(trip, bits) {
  const told = (map, verb, name) => {
    const width = Math.max(8, bits); // smaller elements have a byte each
    const found = accessOf(map, width);
    const { wavefronts, phases, count } = instruction(found, width, 0, 0);
    const elements = `${found.vector} element${found.vector > 1 ? "s" : ""}`;
    return `Each warp ${verb} with ${count} ${name}.shared of ${elements} a lane, ${wavefronts} wavefront${wavefronts > 1 ? "s" : ""} each (least ${phases}).`;
  };
  const masked = Object.values(trip.masks).some(Boolean) ? " One of several copies only." : "";
  return [
    { kind: "store", text: told(trip.store, "stores", "st") + masked, map: trip.store, masks: trip.masks },
    { kind: "barrier", text: `The ${trip.scope} waits until all has been stored.`, map: null, masks: {} },
    { kind: "load", text: told(trip.load, "loads", "ld"), map: trip.load, masks: {} },
  ];
}
