// -- shared memory: the layout S, and an access to it by A or B

const banks = new GridCanvas($("banks"), {
  hover: (cell) => { tellWord(cell); point({ panel: "s", element: cell.element, place: null }); },
  leave: () => point(null),
  pick: (cell) => pick("s", cell),
  clear,
});
let shared = null; // the Tile of S
let accessed = null;
const kept = {}; // what was computed last under a name: {key, value}

function once(name, parts, compute) {
  const key = JSON.stringify(parts);
  if (kept[name]?.key !== key) kept[name] = { key, value: compute() };
  return kept[name].value;
}

function tellWord(cell) {
  const at = cell.element == null ? "" : `, element (${shared.coordinates(cell.element).join(", ")})`;
  const who = cell.lanes ? `: ${cell.lanes.length > 1 ? "lanes" : "lane"} ${cell.lanes.join(", ")} in wavefront ${cell.wavefront}` : ": not accessed by this instruction";
  $("word").textContent = `byte ${cell.word * 4}, bank ${cell.word % BANKS}${at}${who}`;
}

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function drawMemory() {
  const own = ["a", "b"].filter((key) => panels[key].tile?.layout.hasIn("lane"));
  const by = own.includes(state.access) ? state.access : own[0];
  $("access").value = by ?? "a";
  for (const option of $("access").options) option.disabled = !own.includes(option.value);
  $("memory-body").hidden = !shared;
  $("access-line").hidden = !by;
  banks.scene = accessed = null;
  if (!shared) return;
  const bits = Number(state.bits);
  try {
    if (by) drawAccess(by, panels[by].tile.layout, bits);
    else $("banks-text").textContent = "Write a layout in registers as A or B to see its accesses to this memory.";
  } catch (error) {
    if (!(error instanceof LayoutError)) throw error;
    accessed = null;
    $("access-line").hidden = true;
    $("banks-text").textContent = `${by.toUpperCase()} and S do not fit each other: ${error.message}`;
  }
  showBanks(bits);
}

function drawAccess(by, registers, bits) {
  const found = sharedAccess(registers, shared.layout, bits, shared.pads, Number(state.vector) || 0);
  const clamp = (key, size) => Math.min(size - 1, Math.max(0, Number(state[key]) || 0));
  const warps = 2 ** registers.inLog("warp");
  const count = 2 ** (found.registers.length - Math.log2(found.vector));
  const [warp, index] = [clamp("warp", warps), clamp("instruction", count)];
  fillVectors(found, bits);
  $("warp").max = warps - 1;
  $("warp").value = warp;
  $("instruction").max = count - 1;
  $("instruction").value = index;
  $("instruction-of").textContent = `${index + 1} of ${count}`;
  accessed = instruction(found, bits, warp, index);
  fillWavefronts();
  const [most, sums] = once("wavefronts", [state.shape, state.a, state.b, state.s, by, bits, found.vector], () => allWavefronts(found, bits));
  const lost = accessed.wavefronts - accessed.phases;
  const all = `${plural(count, "instruction")} a warp, ${plural(sums[warp], "wavefront")}.`;
  const worst = shared.pads && most !== accessed.wavefronts ? ` The worst instruction takes ${most}.` : "";
  $("banks-text").textContent =
    `${found.vector * bits} bits a lane (${plural(found.vector, "element")}): ${plural(accessed.wavefronts, "wavefront")}, ` +
    `least ${accessed.phases}; ${lost ? `${lost} lost to bank conflicts` : "no bank conflict"}. ${all}${worst}`;
}

function fillVectors(found, bits) {
  const sizes = [];
  for (let size = found.widest; size >= 1; size /= 2) sizes.push(size);
  const name = (size) => `${size} (${size * bits} bits)`;
  $("vector").replaceChildren(element("option", { value: 0 }, `widest: ${name(found.widest)}`), ...sizes.slice(1).map((s) => element("option", { value: s }, name(s))));
  $("vector").value = found.vector === found.widest ? 0 : found.vector;
}

function fillWavefronts() {
  const select = $("wavefront");
  const wanted = state.wavefront === "all" ? "all" : String(Math.min(accessed.wavefronts - 1, Number(state.wavefront) || 0));
  select.replaceChildren(element("option", { value: "all" }, "all"), ...Array.from({ length: accessed.wavefronts }, (_, i) => element("option", { value: i }, String(i))));
  select.value = wanted;
}

// The elements of each word, from what is at each place of block 0.
function elementsOfWords(bits) {
  const { layout, pads } = shared;
  const offsets = 2 ** layout.inLog("offset");
  const words = new Map();
  for (let offset = 0; offset < offsets; offset++) {
    const at = (padded(offset, pads) * bits) / 32;
    const held = shared.elementOf[layout.joinIn({ offset })];
    for (let word = Math.floor(at); word < Math.max(at + bits / 32, Math.floor(at) + 1); word++) words.set(word, [...(words.get(word) ?? []), held]);
  }
  return [words, Math.ceil(((padded(offsets - 1, pads) + 1) * bits) / 8)];
}

function showBanks(bits) {
  const [elements, bytes] = once("words", [state.shape, state.a, state.b, state.s, bits], () => elementsOfWords(bits));
  const only = $("wavefront").value;
  const words = !accessed ? new Map() : only === "all" ? accessed.words : new Map([...accessed.words].filter(([, w]) => w.wavefront === Number(only)));
  const scene = bankScene(bytes, words, (word) => elements.get(word)?.[0] ?? null);
  scene.has = (word, wanted) => elements.get(word)?.includes(wanted) ?? false;
  banks.show(scene);
}
