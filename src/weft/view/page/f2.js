// Vectors over F2 as the bits of an int, and matrices as lists of columns; as in weft/layouts/f2.py.

// What an expression says that stands for nothing: where in the text, and a way out.
class LayoutError extends Error {
  constructor(message, hint, start, end) {
    super(message);
    this.hint = hint;
    this.start = start;
    this.end = end;
  }
}

const MOST_BITS = 30;

const isInt = (value) => typeof value === "number" && Number.isSafeInteger(value);
const isPower = (value) => isInt(value) && value > 0 && (BigInt(value) & (BigInt(value) - 1n)) === 0n;

function log2(size, what) {
  if (!isPower(size)) throw new LayoutError(`the size of ${what} must be a power of two, got ${repr(size)}`);
  if (size > 2 ** MOST_BITS) throw new LayoutError(`the size of ${what} is ${size}, and this page takes 2^${MOST_BITS} at most`);
  return 31 - Math.clz32(size);
}

const bitCount = (x) => {
  let count = 0;
  for (; x; x &= x - 1) count++;
  return count;
};

// Rows in echelon form that remember which of the vectors given they are made of.
class Echelon {
  constructor(vectors = []) {
    this.rows = [];
    this.count = 0;
    vectors.forEach((v) => this.add(v));
  }
  reduce(vector) {
    let made = 0;
    for (const [row, pivot, combination] of this.rows)
      if (vector & pivot) {
        vector ^= row;
        made ^= combination;
      }
    return [vector, made];
  }
  // 0 if independent of those before, else the vectors, with it, whose sum is 0.
  relation(vector) {
    const [rest, made] = this.reduce(vector);
    const mine = made ^ (1 << this.count);
    this.count += 1;
    if (!rest) return mine;
    this.rows.push([rest, 1 << (31 - Math.clz32(rest)), mine]);
    return 0;
  }
  add(vector) {
    return !this.relation(vector);
  }
  has(vector) {
    return !this.reduce(vector)[0];
  }
  coefficients(vector) {
    const [rest, made] = this.reduce(vector);
    return rest ? null : made;
  }
  get rank() {
    return this.rows.length;
  }
}

function multiply(columns, x) {
  let result = 0;
  for (let i = 0; i < columns.length; i++) if ((x >>> i) & 1) result ^= columns[i];
  return result;
}

const rankOf = (columns) => new Echelon(columns).rank;
const units = (size) => Array.from({ length: size }, (_, i) => 1 << i);

// x with matrix * x = targets, or null.
function solve(columns, targets) {
  const rows = new Echelon(columns);
  const found = targets.map((t) => rows.coefficients(t));
  return found.includes(null) ? null : found;
}

function kernel(columns) {
  const rows = new Echelon();
  return columns.map((c) => rows.relation(c)).filter((relation) => relation);
}

// The indices of the columns that are a sum of columns before them.
function dependent(columns) {
  const rows = new Echelon();
  return columns.flatMap((c, i) => (rows.add(c) ? [] : [i]));
}

function span(vectors) {
  return vectors.reduce((found, v) => found.concat(found.map((x) => x ^ v)), [0]);
}

function intersection(a, b) {
  const independent = new Echelon();
  const first = a.filter((v) => independent.add(v));
  const rows = new Echelon();
  return kernel([...first, ...b]).map((k) => multiply(first, k & (2 ** first.length - 1))).filter((common) => rows.add(common));
}

function complement(vectors, size) {
  const rows = new Echelon(vectors);
  return units(size).filter((unit) => rows.add(unit));
}

// A basis of a largest subspace that meets the span of a, and that of b, in zero only.
function commonComplement(a, b, size) {
  const common = intersection(a, b);
  const outside = (vectors) => {
    const rows = new Echelon(common);
    return vectors.filter((v) => rows.add(v));
  };
  const [onlyA, onlyB] = [outside(a), outside(b)];
  const paired = onlyA.slice(0, onlyB.length).map((v, i) => v ^ onlyB[i]);
  return [...paired, ...complement([...common, ...onlyA, ...onlyB], size)];
}
