// CuTe layouts: their texts (weft/layouts/cute/text.py), and the layouts of memory that they are (affine.py, memory.py), with the
// messages of these.

// A function from coordinates to offsets: `groups` are the [size, stride] of each outer mode, `at` is the offset of a flat index,
// `text` what it is called in messages.
class CuteFunction {
  constructor(groups, at, text, sums = null) {
    Object.assign(this, { groups, at, text, sums });
    this.sizes = groups.map((group) => group.reduce((all, [size]) => all * size, 1));
  }
  fail(message, hint) {
    throw new LayoutError(`${this.text}: ${message}`, hint);
  }
  // [dimension, power] of each bit of a coordinate.
  bits() {
    return this.groups.flatMap((group, i) => {
      let log = 0;
      for (const [size, stride] of group) {
        if (!isPower(size)) this.fail(`the mode ${size}:${stride} has a size that is no power of two`);
        log += Math.log2(size);
      }
      return Array.from({ length: log }, (_, k) => [`dim${i}`, 2 ** k]);
    });
  }
  toLinear() {
    const bits = this.bits();
    if (bits.length > 18) this.fail("this page takes layouts of up to 2^18 elements");
    const { sums } = this;
    if (sums && !sums.offset && !sums.columns.some((c) => c < 0)) {
      const pair = sharedPair(sums.columns);
      if (pair) {
        const [[other, before], [name, value]] = pair.map((k) => [`${bits[k][0]} = ${bits[k][1]}`, sums.columns[k]]);
        this.fail(`${name} adds ${value} and ${other} adds ${before} to the offset; the sum carries, ${before} + ${value} = ${before + value}, which no xor does (${before ^ value})`);
      }
    } else if (sums) {
      const least = sums.offset + sums.columns.reduce((sum, c) => sum + Math.min(c, 0), 0);
      if (least < 0) {
        const [size, stride] = this.groups.flat().find(([s, d]) => d < 0 && s > 1);
        this.fail(`the mode ${size}:${stride} has a negative stride, and the least offset is ${least}`);
      }
    }
    const offsets = Array.from({ length: 2 ** bits.length }, (_, i) => this.at(i));
    const lowest = offsets.indexOf(Math.min(...offsets.slice(0, 65536)));
    if (offsets[lowest] < 0) this.fail(`the offset at ${coordinateText(bits, lowest)} is ${offsets[lowest]}; offsets begin at 0`);
    if (offsets.some((x) => x >= 2 ** 30)) this.fail("an offset is too large for this page");
    const columns = bits.map((_, i) => offsets[2 ** i] ^ offsets[0]);
    const xors = columns.reduce((all, c) => [...all, ...all.map((x) => x ^ c)], [offsets[0]]);
    const wrong = xors.findIndex((x, i) => x !== offsets[i]);
    if (wrong >= 0) this.fail(`the offset at ${coordinateText(bits, wrong)} is ${offsets[wrong]}, and the xor of what its bits give alone is ${xors[wrong]}, so that the layout is not linear over F2`);
    if (offsets[0]) this.fail(`the layout has the offset ${offsets[0]} at 0, so that it is affine, not linear`);
    const reached = columns.reduce((a, b) => a | b, 0);
    const ins = this.groups.map((_, i) => [`dim${i}`, bits.filter(([name]) => name === `dim${i}`).length]);
    return new Linear(ins, [["offset", 32 - Math.clz32(reached)]], columns);
  }
  // {linear, pads}: from offsets to coordinates; padded where places are left out.
  memory() {
    let reason = null;
    try {
      const linear = this.toLinear();
      if (linear.isInvertible) return { linear: linear.invert(), pads: null };
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      reason = error;
    }
    const count = this.sizes.reduce((a, b) => a * b, 1);
    if (!isPower(count) || count > 2 ** 18) throw reason ?? new LayoutError(`${this.text}: ${count} coordinates; this page takes up to 2^18`);
    const places = Array.from({ length: count }, (_, i) => [this.at(i), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const same = places.findIndex(([place], i) => i && place === places[i - 1][0]);
    if (same > 0) {
      const [first, second] = [same - 1, same].map((i) => `(${this.coordinates(places[i][1]).join(", ")})`);
      this.fail(`${first} and ${second} have one offset, ${places[same][0]}, so that it is no layout of memory`);
    }
    const ranks = [];
    places.forEach(([, index], rank) => (ranks[index] = rank));
    const columns = Array.from({ length: Math.log2(count) }, (_, i) => ranks[2 ** i]);
    const xors = columns.reduce((all, c) => [...all, ...all.map((x) => x ^ c)], [0]);
    const pads = paddingOf(places.map(([place]) => place));
    if (!pads || xors.some((x, i) => x !== ranks[i])) {
      if (reason) throw reason;
      this.fail(`its ${count} elements leave places out up to offset ${places.at(-1)[0]}, not the same after every so many`);
    }
    const ins = this.sizes.map((size, i) => [`dim${i}`, Math.log2(size)]);
    const linear = new Linear(ins, [["offset", columns.length]], columns).invert();
    return { linear: linear.times(copies("block", 1, "dim0")), pads };
  }
  coordinates(index) {
    return this.sizes.map((size) => {
      const value = index % size;
      index = Math.floor(index / size);
      return value;
    });
  }
}

function coordinateText(bits, index) {
  const values = {};
  bits.forEach(([name, power], i) => (values[name] = (values[name] ?? 0) + ((index >>> i) & 1 ? power : 0)));
  return Object.entries(values).map(([name, value]) => `${name} = ${value}`).join(", ") || "0";
}

// Two columns that have a bit in common.
function sharedPair(columns) {
  for (let i = 0, taken = 0; i < columns.length; taken |= columns[i++])
    if (taken & columns[i]) return [columns.findIndex((c) => c & columns[i]), i];
  return null;
}

// The pairs [interval, padding] of what places in order leave out; null where no pairs do.
function paddingOf(places) {
  const gaps = places.map((place, i) => place - i);
  const pairs = [];
  for (let interval = 1; interval < places.length; interval *= 2) {
    const more = gaps[interval] - pairs.reduce((sum, [i, p]) => sum + Math.floor(interval / i) * p, 0);
    if (more) pairs.push([interval, more]);
  }
  if (gaps[0] || !pairs.length || pairs.some(([, p]) => p < 1 || !isPower(p))) return null;
  return gaps.every((gap, n) => gap === pairs.reduce((sum, [i, p]) => sum + Math.floor(n / i) * p, 0)) ? pairs : null;
}

// -- making

const nestText = (value) => (Array.isArray(value) ? `(${value.map(nestText).join(",")})` : String(value));

function cuteLeaves(shape, stride) {
  if (Number.isInteger(shape) && Number.isInteger(stride)) return [[shape, stride]];
  if (!Array.isArray(shape) || !Array.isArray(stride) || shape.length !== stride.length || !shape.length)
    throw new LayoutError(`the shape ${nestText(shape)} and the stride ${nestText(stride)} are not nested alike`);
  return shape.flatMap((s, i) => cuteLeaves(s, stride[i]));
}

function cuteSwizzle(bits, base, shift, elementBits = 0) {
  const text = `Swizzle<${bits},${base},${shift}>`;
  if (bits < 0 || base < 0) throw new LayoutError(`${text}: the number of bits and the base must be 0 or more`);
  if (Math.abs(shift) < bits)
    throw new LayoutError(`${text}: the shift must be ${bits} or more in absolute value, as the bits that are xored must not be among those that they are xored to`);
  if (elementBits) {
    if (!isPower(elementBits)) throw new LayoutError(`${text}: elements of ${elementBits} bits; only powers of two are offsets of a linear layout`);
    const own = base + 3 - Math.log2(elementBits);
    if (own < 0 && bits) throw new LayoutError(`${text}: of addresses it moves bytes within an element of ${elementBits} bits, which no layout of elements does`);
    return cuteSwizzle(bits, Math.max(own, 0), shift);
  }
  const mask = (2 ** bits - 1) * 2 ** base;
  return { bits, text, apply: (x) => (shift >= 0 ? x ^ ((x >> shift) & mask) : x ^ ((x & mask) << -shift)) };
}

function cutePlain(shape, stride, swizzle = null, offset = 0) {
  const leaves = cuteLeaves(shape, stride);
  const plain = `${nestText(shape)}:${nestText(stride)}`;
  const text = swizzle || offset ? `${swizzle?.text ?? "Swizzle<0,0,0>"} o ${offset} o ${plain}` : plain;
  for (const [size] of leaves) if (size < 1) throw new LayoutError(`${text}: a mode of size ${size}; sizes are 1 or more`);
  const groups = Array.isArray(shape) ? shape.map((s, i) => cuteLeaves(s, stride[i])) : [leaves];
  const at = (index) => {
    let total = offset;
    leaves.forEach(([size, step], i) => {
      const last = i === leaves.length - 1; // goes on beyond its size
      total += (last ? index : ((index % size) + size) % size) * step;
      index = Math.floor(index / size);
    });
    return swizzle ? swizzle.apply(total) : total;
  };
  const columns = leaves.every(([size]) => isPower(size)) ? leaves.flatMap(([size, step]) => Array.from({ length: Math.log2(size) }, (_, i) => step * 2 ** i)) : [];
  const found = new CuteFunction(groups, at, text, { columns, offset });
  return Object.assign(found, { plain: swizzle ? null : { shape, stride, offset } });
}

// outer(offset + inner); `outer` is a swizzle or a function.
function cuteComposed(outer, offset, inner) {
  if (outer.apply) {
    if (inner.plain) return cutePlain(inner.plain.shape, inner.plain.stride, outer.bits ? outer : null, inner.plain.offset + offset);
    if (!outer.bits && !offset) return inner;
  }
  const at = (index) => (outer.apply ?? outer.at)(inner.at(index) + offset);
  return new CuteFunction(inner.groups, at, `${outer.apply ? outer.text : `(${outer.text})`} o ${offset} o (${inner.text})`);
}

function columnMajor(shape) {
  let step = 1;
  const strides = (part) => {
    if (Array.isArray(part)) return part.map(strides);
    const stride = step;
    step *= part;
    return stride;
  };
  return strides(shape);
}

// -- reading

const CUTE_TOKEN = /\s*(?:(?<number>_?-?\d+)|(?<name>[A-Za-z_]\w*)|(?<sign>[^\s]))/y;
const CUTE_STARTS = /[\s(]*(?:(?:Swizzle|Sw|S)\s*[<(]|SW_\d|smem_ptr\b|(?:Layout|ComposedLayout|Tensor)\s*\(|\{\s*-?\d+\s*\}\s*[o\u2218])/y;

const matchAt = (pattern, text, at) => {
  const sticky = new RegExp(pattern.source, "y");
  sticky.lastIndex = at;
  const match = sticky.exec(text);
  return match ? [match, sticky.lastIndex] : null;
};

// Whether what begins here is in CuTe's notation, in a text that may have other things.
function startsCute(text, at) {
  if (matchAt(CUTE_STARTS, text, at)) return true;
  const follows = (end) => matchAt(/\s*:|\s*[o\u2218]\s/, text, end);
  const first = at;
  at = matchAt(/[\s(]*/, text, at)[1];
  const number = matchAt(/_?-?\d+/, text, at);
  if (number && follows(number[1])) return true;
  const opened = []; // any of the parentheses that it begins with may be that of a shape
  for (let i = first; i < text.length; i++) {
    if (text[i] === "(") opened.push(i);
    else if (text[i] === ")" && opened.length > 0) {
      if (opened.pop() < at && follows(i + 1)) return true;
    } else if (!/[\s\d_,()-]/.test(text[i])) break;
  }
  return false;
}

// Where a number or a nested tuple of numbers ends; null where there is none.
function afterNest(text, at) {
  const number = matchAt(/\s*_?-?\d+/, text, at);
  if (number) return number[1];
  for (let i = at, depth = 0; i < text.length; i++) {
    depth += { "(": 1, ")": -1 }[text[i]] ?? 0;
    if (!/[\s\d_,()-]/.test(text[i]) || (depth === 0 && !" )".includes(text[i]))) return null;
    if (depth === 0 && text[i] === ")") return i + 1;
  }
  return null;
}

// [what makes the layout that begins here, where it ends].
function readCute(text, at) {
  const reader = new CuteReader(text, at);
  const make = reader.composition();
  return [make, reader.end];
}

class CuteReader {
  constructor(text, at) {
    this.text = text;
    this.end = at;
    this.advance(at);
  }
  advance(at) {
    const found = matchAt(CUTE_TOKEN, this.text, at);
    if (!found) return Object.assign(this, { kind: "end", token: "", start: this.text.length, stop: this.text.length });
    const [match, stop] = found;
    const kind = Object.keys(match.groups).find((k) => match.groups[k] !== undefined);
    return Object.assign(this, { kind, token: match.groups[kind], start: stop - match.groups[kind].length, stop });
  }
  bad(at, expected) {
    const [rest] = this.text.slice(at).trim().split(/\s+/);
    throw new LayoutError(`expected ${expected}, found ${rest ? `\`${rest.slice(0, 8)}\`` : "the end"}`, undefined, at, at + 1);
  }
  take() {
    const { token } = this;
    this.end = this.stop;
    this.advance(this.stop);
    return token;
  }
  expect(token) {
    if (this.token !== token) this.bad(this.start, `'${token}'`);
    this.take();
  }
  number() {
    if (this.kind !== "number") this.bad(this.start, "a number");
    return Number(this.take().replace("_", ""));
  }
  nest() {
    if (this.token !== "(") {
      const value = this.number();
      if (this.token === "@") this.bad(this.start, "a stride that is a number, and not one of a coordinate of its own");
      return value;
    }
    this.take();
    const parts = [this.nest()];
    while (this.token === ",") {
      this.take();
      if (this.token === ")") break;
      parts.push(this.nest());
    }
    this.expect(")");
    return parts;
  }
  get composes() {
    return this.token === "o" || this.token === "\u2218";
  }
  composition() {
    const parts = [this.part()];
    while (this.composes) {
      this.take();
      parts.push(this.part());
    }
    let make = parts.pop();
    if (typeof make !== "function") this.bad(this.end, "a layout after it, as 'o' shape:stride");
    let [offset, bits] = [0, 0];
    for (const part of parts.reverse()) {
      if (typeof part === "number") offset += part;
      else if (part.pointer) bits = part.pointer;
      else {
        const [inner, own, width] = [make, offset, bits];
        make = part.swizzle ? () => cuteComposed(cuteSwizzle(...part.swizzle, width), own, inner()) : () => cuteComposed(part(), own, inner());
        [offset, bits] = part.swizzle ? [0, 0] : [0, bits];
      }
    }
    const [inner, own] = [make, offset];
    return offset ? () => cuteComposed(cuteSwizzle(0, 0, 0), own, inner()) : make;
  }
  // A function that makes a layout, {swizzle}, {pointer}, or an offset.
  part() {
    if (this.kind === "name" && ["Swizzle", "Sw", "S"].includes(this.token)) {
      this.take();
      if (this.token !== "<" && this.token !== "(") this.bad(this.start, "'<'");
      const close = { "<": ">", "(": ")" }[this.take()];
      const bits = this.number();
      this.expect(",");
      const base = this.number();
      this.expect(",");
      const shift = this.number();
      this.expect(close);
      return { swizzle: [bits, base, shift] };
    }
    if (this.kind === "name" && /^SW_\d+_\d+_\d+$/.test(this.token)) return { swizzle: this.take().split("_").slice(1).map(Number) };
    if (this.token === "smem_ptr") return this.pointer();
    if (this.kind === "name" && ["Layout", "ComposedLayout", "Tensor"].includes(this.token)) return this.call();
    if (this.token === "{") {
      this.take();
      const value = this.number();
      this.expect("}");
      return value;
    }
    if (this.token === "(" && afterNest(this.text, this.start) === null) {
      this.take();
      const inside = this.whole();
      this.expect(")");
      return inside;
    }
    const shape = this.nest();
    if (this.composes && Number.isInteger(shape)) return shape;
    this.expect(":");
    const stride = this.nest();
    return () => cutePlain(shape, stride);
  }
  // A composition, or a swizzle alone, as the outer part of one may be.
  whole() {
    const before = this.start;
    const part = this.part();
    if (part.swizzle && !this.composes) return part;
    this.advance(before);
    return this.composition();
  }
  pointer() {
    this.take();
    this.expect("[");
    const pointer = this.number();
    this.expect("b");
    this.expect("]");
    if (this.token === "(") {
      this.take();
      while (this.token !== ")" && this.kind !== "end") this.take();
      this.expect(")");
    }
    return { pointer };
  }
  call() {
    const name = this.take();
    this.expect("(");
    if (name === "Layout") {
      const shape = this.nest();
      if (this.token !== ",") {
        this.expect(")");
        return () => cutePlain(shape, columnMajor(shape));
      }
      this.take();
      const stride = this.nest();
      this.expect(")");
      return () => cutePlain(shape, stride);
    }
    const parts = [];
    let offset = 0;
    for (;;) {
      if (this.token === "offset") {
        this.take();
        this.expect("=");
        offset = this.number();
      } else if (this.kind === "number" && /^\s*[,)]/.test(this.text.slice(this.stop))) offset = this.number();
      else parts.push(this.whole());
      if (this.token !== ",") break;
      this.take();
    }
    const last = parts.at(-1);
    if (parts.length !== (name === "ComposedLayout" ? 2 : 1) || !last || last.swizzle) this.bad(this.start, name === "ComposedLayout" ? "an outer and an inner layout" : "a layout");
    this.expect(")");
    if (name === "Tensor") return () => cuteComposed(cuteSwizzle(0, 0, 0), offset, last());
    return () => cuteComposed(parts[0].swizzle ? cuteSwizzle(...parts[0].swizzle) : parts[0](), offset, last());
  }
}
