// A register layout against a shared layout: the instructions of a warp, and the wavefronts that each takes.
// The rules are those of weft/layouts/conflicts.py; wavefronts are counted one by one, not by rank.

const BANKS = 32;

// The place in memory of an offset, both in elements, where there is padding.
const padded = (offset, pads) => (pads ?? []).reduce((sum, [interval, padding]) => sum + Math.floor(offset / interval) * padding, offset);

// {vector (elements), widest, registers (bit positions, those of a vector first), offset (place -> offset), pads}
function sharedAccess(registers, shared, bits, pads = null, wanted = 0) {
  const [tile, memory] = sameNames(registers, shared);
  return accessOf(tile.invert_and_compose(memory), bits, pads, wanted);
}

function accessOf(access, bits, pads = null, wanted = 0) {
  const offset = access.sublayout(access.ins.map((d) => d[0]), ["offset"]);
  const columns = access.hasIn("register") ? offset.inColumns("register") : [];
  const whole = access.hasIn("register") ? access.inColumns("register") : [];
  const distinct = columns.map((_, i) => i).filter((i) => whole[i]);
  const others = access.ins.filter((d) => d[0] !== "register").flatMap((d) => offset.inColumns(d[0]));
  let size = 1;
  const first = [];
  while (size * 2 * bits <= 128) {
    const found = distinct.find((i) => columns[i] === size);
    if (found === undefined) break;
    first.push(found);
    size *= 2;
  }
  while (size > 1 && [...distinct.filter((i) => !first.includes(i)).map((i) => columns[i]), ...others].some((c) => c & (size - 1))) {
    first.pop();
    size /= 2;
  }
  const widest = Math.min(size, ...(pads ?? []).flat()); // no vector is cut by padding
  const vector = wanted ? Math.min(wanted, widest) : widest;
  return { offset, pads, vector, widest, registers: [...first, ...distinct.filter((i) => !first.includes(i))] };
}

// One instruction of one warp: its phases, and for every word that it touches the wavefront that brings it.
function instruction(found, bits, warp, index, block = 0) {
  const { offset, vector, registers, pads } = found;
  const spread = (x, positions) => positions.reduce((sum, at, i) => sum | (((x >>> i) & 1) << at), 0);
  const log = Math.log2(vector);
  const base = spread(index, registers.slice(log));
  const lanes = 2 ** offset.inLog("lane");
  const bytes = (vector * bits) / 8;
  const perPhase = Math.max(1, lanes / Math.max(1, bytes / 4));
  const words = new Map(); // word -> {wavefront, phase, lanes}
  let wavefronts = 0;
  const phases = Math.ceil(lanes / perPhase);
  for (let phase = 0; phase < phases; phase++) {
    const banks = Array.from({ length: BANKS }, () => []);
    for (let lane = phase * perPhase; lane < Math.min(lanes, (phase + 1) * perPhase); lane++)
      for (let v = 0; v < vector; v++) {
        const register = base | spread(v, registers.slice(0, log));
        const at = padded(offset.apply(offset.joinIn({ register, lane, warp, block })), pads);
        for (let byte = Math.floor((at * bits) / 8); byte < ((at + 1) * bits) / 8; byte += 4) {
          const word = Math.floor(byte / 4);
          const bank = banks[word % BANKS];
          if (!bank.includes(word)) bank.push(word);
          const seen = words.get(word) ?? { phase, lanes: [] };
          if (!seen.lanes.includes(lane)) seen.lanes.push(lane);
          words.set(word, seen);
        }
      }
    banks.forEach((bank) => bank.forEach((word, i) => (words.get(word).wavefront = wavefronts + i)));
    wavefronts += Math.max(...banks.map((b) => b.length));
  }
  return { wavefronts, phases, words, count: 2 ** (registers.length - log) };
}

// The wavefronts of all instructions of all warps: [the most that one takes, their sum for each warp]. Without padding all take
// the same.
function allWavefronts(found, bits) {
  const one = instruction(found, bits, 0, 0);
  const warps = 2 ** found.offset.inLog("warp");
  if (!found.pads) return [one.wavefronts, Array(warps).fill(one.wavefronts * one.count)];
  const sums = Array.from({ length: warps }, (_, warp) => Array.from({ length: one.count }, (_, i) => instruction(found, bits, warp, i).wavefronts));
  return [Math.max(...sums.flat()), sums.map((own) => own.reduce((a, b) => a + b, 0))];
}

// Shared memory as banks: a row for each 128 bytes, a column for each bank.
function bankScene(bytes, words, elementAt) {
  return {
    label: "shared memory as 32 banks: a row for each 128 bytes, coloured by wavefront",
    rows: Math.max(1, Math.ceil(bytes / 128)),
    columns: BANKS,
    letters: 3,
    rowName: (r) => String(r * 128),
    columnName: (c) => String(c),
    cell(r, c) {
      const word = r * BANKS + c;
      if (word * 4 >= bytes) return null;
      const seen = words.get(word);
      const element = elementAt(word);
      if (element === null) return null; // padding
      if (!seen) return { element, word, fill: [214, 218, 226], text: "", idle: true };
      const text = seen.lanes.length > 1 ? `${seen.lanes[0]}+` : String(seen.lanes[0]);
      return { element, word, fill: wavefrontColour(seen.wavefront), text, wavefront: seen.wavefront, lanes: seen.lanes };
    },
    find(element) {
      const found = [];
      for (let word = 0; word * 4 < bytes; word++) if (this.has(word, element)) found.push([Math.floor(word / BANKS), word % BANKS]);
      return found;
    },
    has: (word, element) => elementAt(word) === element,
  };
}
