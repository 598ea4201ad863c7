// A layout seen as a tile: elements are numbered row by row, the last dimension the fastest.

const PLACES = ["register", "lane", "warp", "block"];
const isDistributed = (layout) => layout.ins.length > 0 && layout.ins.every((d) => PLACES.includes(d[0]));

class Tile {
  constructor(layout, pads = null) {
    if (Math.max(layout.inBits, layout.outBits) > 18) throw new LayoutError("the page draws tiles and memories of up to 2^18 elements; take a smaller shape: layouts repeat");
    this.layout = layout;
    this.pads = pads;
    this.inMemory = layout.hasIn("offset");
    const outs = layout.outs.map((d) => d[0]);
    const numbered = outs.every((n) => /^dim\d+$/.test(n));
    this.names = numbered ? [...outs].sort((a, b) => a.slice(3) - b.slice(3)) : outs;
    this.view = layout.transpose_outs([...this.names].reverse());
    this.sizes = this.names.map((n) => 2 ** layout.outAt(n)[1]);
    this.elements = 2 ** layout.outBits;
    this.columns = this.sizes.at(-1) ?? 1;
    this.elementOf = this.view.table(); // of each place
    this.firstPlace = new Int32Array(this.elements).fill(-1);
    this.copies = new Int32Array(this.elements);
    for (let p = this.elementOf.length - 1; p >= 0; p--) {
      this.firstPlace[this.elementOf[p]] = p;
      this.copies[this.elementOf[p]]++;
    }
    this.distributed = isDistributed(layout);
    const [at, log] = this.distributed && layout.hasIn("register") ? layout.inAt("register") : [0, 0];
    this.threadBits = ~((2 ** log - 1) << at);
    this.size = Object.fromEntries(layout.ins.map(([n, log]) => [n, 2 ** log]));
  }
  coordinates(element) {
    const found = [];
    for (let i = this.sizes.length - 1; i >= 0; i--) {
      found.unshift(element % this.sizes[i]);
      element = Math.floor(element / this.sizes[i]);
    }
    return found;
  }
  number(coordinates) {
    return coordinates.reduce((sum, c, i) => sum * this.sizes[i] + c, 0);
  }
  // All places that have an element.
  places(element) {
    const found = [];
    for (let p = 0; p < this.elementOf.length; p++) if (this.elementOf[p] === element) found.push(p);
    return found;
  }
  point(place) {
    return this.layout.splitIn(place);
  }
  // Places of one thread have one key: the place without its register.
  thread(place) {
    return place & this.threadBits;
  }
  fill(place, bits = 32) {
    const p = this.point(place);
    const s = this.size;
    if (this.distributed) return placeColour((p.warp ?? 0) + (s.warp ?? 1) * (p.block ?? 0), (s.warp ?? 1) * (s.block ?? 1), p.lane ?? 0, s.lane ?? 1);
    if (this.inMemory) return bankColour(Math.floor((padded(p.offset, this.pads) * bits) / 32) % 32, 32);
    const [first] = this.layout.ins[0] ?? [];
    return first ? placeColour(0, 1, p[first], s[first]) : inputColour(0);
  }
  short(place) {
    const p = this.point(place);
    if (this.inMemory) return String(padded(p.offset, this.pads));
    if (this.distributed) return String(p.register ?? 0);
    return this.wide.map((n) => p[n]).join() || "0";
  }
  // The dimensions of places that have more than one index.
  get wide() {
    return Object.keys(this.size).filter((n) => this.size[n] > 1);
  }
  // How many letters short() has at most; offsets shrink to fit rather.
  get letters() {
    return this.distributed || this.inMemory ? 3 : this.wide.reduce((sum, n) => sum + String(this.size[n] - 1).length + 1, 0);
  }
  // The bases that make the element of a place: [{dim, bit, basis}].
  derivation(place) {
    const found = [];
    let at = 0;
    for (const [dim, log] of this.layout.ins)
      for (let bit = 0; bit < log; bit++, at++)
        if ((place >>> at) & 1) found.push({ dim, bit, basis: this.coordinates(this.view.columns[at]) });
    return found;
  }
  describe(place) {
    const p = this.point(place);
    return Object.keys(p).filter((n) => this.size[n] > 1 || n === "register").map((n) => `${n} ${p[n]}`).join(", ");
  }
}

// What a canvas shows of a tile: rows, columns, names, and for each cell {element, place, fill, text} or null.
function tileScene(tile, bits) {
  return {
    label: `tile, ${tile.names.map((n, i) => `${n} ${tile.sizes[i]}`).join(" by ")}`,
    rows: tile.elements / tile.columns,
    columns: tile.columns,
    rowName: (r) => tile.coordinates(r * tile.columns).slice(0, -1).join(",") || "0",
    columnName: (c) => String(c),
    letters: Math.max(3, tile.letters),
    cell(r, c) {
      const element = r * tile.columns + c;
      const place = tile.firstPlace[element];
      if (place < 0) return null;
      return { element, place, fill: tile.fill(place, bits), text: tile.short(place) + (tile.copies[element] > 1 ? "+" : "") };
    },
    find: (element) => [[Math.floor(element / tile.columns), element % tile.columns]],
  };
}

function hardwareScene(tile, bits) {
  if (tile.inMemory) return memoryScene(tile, bits);
  const s = tile.size;
  const first = tile.layout.ins[0]?.[0];
  const columns = tile.distributed ? (s.register ?? 1) : (s[first] ?? 1);
  const order = tile.distributed ? PLACES.filter((n) => n in s) : tile.layout.ins.map((d) => d[0]);
  const moved = tile.layout.transpose_ins(order);
  const place = (r, c) => tile.layout.joinIn(moved.splitIn(r * columns + c));
  return {
    label: tile.distributed ? "hardware, a row for each lane, a column for each register" : "inputs",
    rows: tile.elementOf.length / columns,
    columns,
    rowName(r) {
      const p = tile.point(place(r, 0));
      if (tile.distributed) return ["block", "warp", "lane"].filter((n) => s[n] > 1).map((n) => ({ block: "b", warp: "w", lane: "t" })[n] + p[n]).join(" ") || "0";
      return Object.values(p).slice(1).join(",") || "0";
    },
    columnName: (c) => String(c),
    letters: Math.max(3, tile.coordinates(tile.elements - 1).join().length),
    cell(r, c) {
      const p = place(r, c);
      return { element: tile.elementOf[p], place: p, fill: tile.fill(p, bits), text: tile.coordinates(tile.elementOf[p]).join() };
    },
    find: (element) =>
      tile.places(element).map((p) => {
        const at = moved.joinIn(tile.point(p));
        return [Math.floor(at / columns), at % columns];
      }),
  };
}

// Shared memory, block after block: a row for each 128 bytes, with the gaps that padding leaves.
function memoryScene(tile, bits) {
  const offsets = tile.size.offset;
  const length = padded(offsets - 1, tile.pads) + 1; // elements of one block
  const columns = Math.min(2 ** Math.ceil(Math.log2(length)), Math.max(1, 1024 / bits));
  const perBlock = Math.ceil(length / columns);
  const placeAt = new Int32Array(length).fill(-1);
  for (let offset = 0; offset < offsets; offset++) placeAt[padded(offset, tile.pads)] = offset;
  const blocks = tile.elementOf.length / offsets;
  const inOrder = tile.layout.transpose_ins(["offset", ...tile.layout.ins.map((d) => d[0]).filter((n) => n !== "offset")]);
  const place = (r, c) => {
    const at = (r % perBlock) * columns + c;
    const offset = at < length ? placeAt[at] : -1;
    return offset < 0 ? -1 : tile.layout.joinIn(inOrder.splitIn(offset + offsets * Math.floor(r / perBlock)));
  };
  return {
    label: "shared memory, a row for each 128 bytes",
    rows: perBlock * blocks,
    columns,
    rowName: (r) => `${blocks > 1 ? `b${Math.floor(r / perBlock)} ` : ""}${((r % perBlock) * columns * bits) / 8}`,
    columnName: (c) => String(c),
    letters: Math.max(3, tile.coordinates(tile.elements - 1).join().length),
    cell(r, c) {
      const p = place(r, c);
      return p < 0 ? null : { element: tile.elementOf[p], place: p, fill: tile.fill(p, bits), text: tile.coordinates(tile.elementOf[p]).join() };
    },
    find: (element) =>
      tile.places(element).map((p) => {
        const at = inOrder.joinIn(tile.point(p));
        const inBlock = padded(at % offsets, tile.pads);
        return [perBlock * Math.floor(at / offsets) + Math.floor(inBlock / columns), inBlock % columns];
      }),
  };
}

function matrixScene(tile) {
  const ins = tile.layout.ins.flatMap(([n, log], at) => Array.from({ length: log }, (_, i) => [n === "register" ? "reg" : n, i, at]));
  const outs = tile.names.flatMap((n) => Array.from({ length: tile.layout.outAt(n)[1] }, (_, i) => [n, i]));
  const matrix = tile.layout.transpose_outs(tile.names);
  return {
    label: "matrix over F2, a row for each bit of the output, a column for each bit of the input",
    rows: outs.length,
    columns: ins.length,
    rowName: (r) => `${outs[r][0]}.${outs[r][1]}`,
    columnName: (c) => `${ins[c][0]}.${ins[c][1]}`,
    letters: Math.max(...ins.map(([n, i]) => `${n}.${i}`.length), 3),
    cell: (r, c) => ((matrix.columns[c] >>> r) & 1 ? { element: null, place: null, fill: inputColour(ins[c][2]), text: "1" } : null),
    find: () => [],
    // The rows and columns that take part in an element.
    active(place, element) {
      const bits = tile.names.flatMap((n, i) => Array.from({ length: tile.layout.outAt(n)[1] }, (_, b) => (tile.coordinates(element)[i] >>> b) & 1));
      return { columns: ins.map((_, c) => (place >>> c) & 1), rows: bits };
    },
  };
}
