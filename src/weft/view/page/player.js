// A conversion, step by step: after each step, which element every place holds. Steps are linear maps that Python made.

// States: {kind: "registers" | "memory", held: Int32Array of elements, -1 where there is nothing}
function play(plan) {
  const dims = ["register", "lane", "warp", "block"];
  const src = new Tile(plan.src);
  const states = [{ kind: "registers", layout: plan.src, held: Int32Array.from(src.elementOf) }];
  let registers = states[0];
  let memory = null;
  for (const step of plan.steps) {
    const map = step.map;
    if (step.kind === "barrier") {
      states.push(states.at(-1));
      continue;
    }
    const table = map.table();
    if (step.kind === "store") {
      const own = 2 ** map.outAt("offset")[1];
      const blocks = 2 ** plan.src.inLog("block");
      const perBlock = 2 ** map.inBits;
      const held = new Int32Array(own * blocks).fill(-1);
      const from = new Int32Array(own * blocks).fill(-1);
      for (let p = 0; p < registers.held.length; p++) {
        const point = registers.layout.splitIn(p);
        if (dims.some((d) => (point[d] ?? 0) & (step.masks[d] ?? 0))) continue;
        const at = table[map.joinIn(point)] + own * Math.floor(p / perBlock);
        held[at] = registers.held[p];
        from[at] = p;
      }
      memory = { kind: "memory", own, held, from, bits: Math.max(8, plan.bits) };
      states.push(memory);
      continue;
    }
    const held = new Int32Array(table.length);
    const from = new Int32Array(table.length);
    for (let p = 0; p < table.length; p++) {
      if (step.kind === "load") {
        const [offset, block] = [map.outAt("offset"), map.hasOut("block") ? map.outAt("block") : [0, 0]];
        const at = (table[p] >>> offset[0]) & (2 ** offset[1] - 1);
        from[p] = at + memory.own * ((table[p] >>> block[0]) & (2 ** block[1] - 1));
        held[p] = memory.held[from[p]];
      } else {
        from[p] = registers.layout.joinIn(outPoint(map, table[p]));
        held[p] = registers.held[from[p]];
      }
    }
    registers = { kind: "registers", layout: map, held, from };
    states.push(registers);
  }
  return { states, source: src, dst: new Tile(plan.dst), right: isRight(registers, plan.dst) };
}

function outPoint(map, flat) {
  return Object.fromEntries(map.split(flat).map((v, i) => [map.outs[i][0], v]));
}

// Whether every place holds, in the end, what the destination layout says.
function isRight(registers, dst) {
  const tile = new Tile(dst);
  return tile.elementOf.every((element, p) => registers.held[registers.layout.joinIn(tile.point(p))] === element);
}

// A state as a scene; colours are those of where the element was in the source, so that they move with it.
function stateScene(state, source, bits, warp) {
  const colour = (element) => (element < 0 ? null : source.fill(source.firstPlace[element], bits));
  const text = (element) => source.coordinates(element).join();
  const letters = Math.max(3, text(source.elements - 1).length);
  const cellOf = (place) => {
    const element = state.held[place];
    return element === undefined || element < 0 ? null : { element, place, fill: colour(element), text: text(element) };
  };
  if (state.kind === "memory") {
    const columns = Math.min(state.held.length, Math.max(1, 1024 / state.bits));
    return {
      label: "shared memory, a row for each 128 bytes",
      rows: Math.max(1, state.held.length / columns),
      columns,
      letters,
      rowName: (r) => String((r * columns * state.bits) / 8),
      columnName: (c) => String(c),
      cell: (r, c) => cellOf(r * columns + c),
      find: (element) => [...state.held.keys()].filter((i) => state.held[i] === element).map((i) => [Math.floor(i / columns), i % columns]),
    };
  }
  const lanes = 2 ** state.layout.inLog("lane");
  const registers = 2 ** state.layout.inLog("register");
  const place = (r, c) => state.layout.joinIn({ register: c, lane: r, warp: warp.warp, block: warp.block });
  return {
    label: `registers of warp ${warp.warp}, a row for each lane, a column for each register`,
    rows: lanes,
    columns: registers,
    letters,
    rowName: (r) => `t${r}`,
    columnName: (c) => `r${c}`,
    cell: (r, c) => cellOf(place(r, c)),
    find(element) {
      const found = [];
      for (let r = 0; r < lanes; r++) for (let c = 0; c < registers; c++) if (state.held[place(r, c)] === element) found.push([r, c]);
      return found;
    },
  };
}
