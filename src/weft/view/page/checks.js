// Checks of the parameters of named layouts, with the words of weft/layouts/zoo/checks.py; values written as Python does.

function repr(value) {
  if (value === null || value === undefined) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "string") return value.includes("'") ? `"${value}"` : `'${value}'`;
  if (Array.isArray(value)) return `(${value.map(repr).join(", ")}${value.length === 1 ? "," : ""})`;
  if (value instanceof Map) return `{${[...value].map(([k, v]) => `${repr(k)}: ${repr(v)}`).join(", ")}}`;
  if (value instanceof Named || value instanceof Linear) return value.repr();
  return String(value);
}

// A list written as one; lists within it as tuples.
const listed = (value) => `[${value.map(repr).join(", ")}]`;
// All lists within it as well.
const nested = (value) => (Array.isArray(value) ? `[${value.map(nested).join(", ")}]` : repr(value));

const check = {
  fail(owner, text, hint) {
    throw new LayoutError(`${owner}: ${text}`, hint);
  },
  sequence(owner, name, value) {
    if (!Array.isArray(value)) check.fail(owner, `${name} must be a list, got ${repr(value)}`);
    return value;
  },
  integer(owner, name, value, low, high) {
    if (!isInt(value) || value < low || value > high) check.fail(owner, `${name} must be an integer from ${low} to ${high}, got ${repr(value)}`);
    return value;
  },
  powerOfTwo(owner, name, value) {
    if (!isPower(value)) check.fail(owner, `${name} must be a power of two, got ${repr(value)}`);
    return value;
  },
  oneOf(owner, name, value, legal) {
    if (!legal.includes(value)) check.fail(owner, `${name} must be one of ${legal.join(", ")}, got ${repr(value)}`);
    return value;
  },
  flag(owner, name, value) {
    if (typeof value !== "boolean") check.fail(owner, `${name} must be True or False, got ${repr(value)}`);
    return value;
  },
  sizes(owner, name, value, rank, like) {
    const found = check.sequence(owner, name, value);
    if (rank === undefined && !found.length) check.fail(owner, `${name} is empty; it needs a power of two for each dimension of the tile`);
    if (rank !== undefined && found.length !== rank)
      check.fail(owner, `${name} has ${found.length} entries ${listed(found)}, expected ${rank}${like ? `, as ${like}` : ""}`);
    for (const size of found) if (!isPower(size)) check.fail(owner, `the entries of ${name} must be powers of two, got ${repr(size)} in ${listed(found)}`);
    return found;
  },
  permutation(owner, name, value, rank) {
    const found = check.sequence(owner, name, value);
    const expected = Array.from({ length: rank ?? found.length }, (_, i) => i);
    if (!found.length || !found.every(isInt) || [...found].sort((a, b) => a - b).join() !== expected.join())
      check.fail(owner, `${name} must have each of the dimensions ${expected.join(", ") || "0, 1, ..."} once, got ${listed(found)}`);
    return found;
  },
  bases(owner, name, value, rank) {
    for (const basis of check.sequence(owner, name, value)) {
      check.sequence(owner, `a basis of ${name}`, basis);
      if (basis.length !== rank)
        check.fail(owner, `the basis ${listed(basis)} of ${name} has ${basis.length} coordinates, expected ${rank}, one for each dimension`);
      if (!basis.every((c) => isInt(c) && c >= 0)) check.fail(owner, `the coordinates in ${name} must be integers from 0 on, got ${listed(basis)}`);
    }
    return value;
  },
  shape(owner, value, rank) {
    const found = check.sequence(owner, "the shape of the tile", value);
    if (found.length !== rank) check.fail(owner, `a layout of rank ${rank} for a tile of rank ${found.length}, of shape ${listed(found)}`);
    for (const size of found) if (!isPower(size)) check.fail(owner, `a tile's sizes must be powers of two, got ${repr(size)} in ${listed(found)}`);
    return found;
  },
  cga(owner, value, rank) {
    const found = check.bases(owner, "cga_layout", value ?? [], rank);
    try {
      cluster(found, rank);
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      check.fail(owner, `cga_layout ${nested(found)} leaves parts of the tile without a block; ${error.message}`, "in each dimension the bases are 1, 2, 4, ..., or 0 for copies");
    }
    return found;
  },
  warps(owner, value) {
    const warps = check.sizes(owner, "warps_per_cta", value);
    if (![2, 3].includes(warps.length)) check.fail(owner, `warps_per_cta must have 2 entries, or 3 for a batch, got ${listed(warps)}`);
    return warps;
  },
  // Errors of the algebra under the name of a layout.
  owned(owner, compute) {
    try {
      return compute();
    } catch (error) {
      if (!(error instanceof LayoutError)) throw error;
      return check.fail(owner, error.message, error.hint);
    }
  },
};
