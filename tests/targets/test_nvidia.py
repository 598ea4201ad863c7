"""Every entry of the instruction table: its meaning, its layouts, its text."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from weft.layouts import DotOperandLayout, LinearLayout, NVMMADistributedLayout
from weft.targets.instruction import BITS, WORD
from weft.targets.meaning import DTYPES, round_odd, round_to
from weft.targets.nvidia import INSTRUCTIONS, Instruction, MBarrier, MBarrierError, instruction, to_matrix

PRODUCTS = [i for i in INSTRUCTIONS.values() if i.name.startswith("mma.sync")]
MOVES = [i for i in INSTRUCTIONS.values() if "matrix" in i.name]


class Bytes:
    """Plain memory for meanings; every access must be aligned."""

    def __init__(self, size: int = 4096) -> None:
        self.spaces = {"shared": np.zeros(size, np.uint8), "global": np.zeros(size, np.uint8)}

    def _index(self, address: np.ndarray, width: int, active: np.ndarray) -> np.ndarray:
        assert not (address[active] % min(width & -width, 16)).any()
        return address[active][:, None] + np.arange(width)

    def read(self, space: str, address: np.ndarray, width: int, active: np.ndarray) -> np.ndarray:
        data = np.zeros((*address.shape, width), np.uint8)
        data[active] = self.spaces[space][self._index(address, width, active)]
        return data

    def write(self, space: str, address: np.ndarray, data: np.ndarray, active: np.ndarray) -> None:
        self.spaces[space][self._index(address, data.shape[2], active)] = data[active]


def _random(rng: np.random.Generator, elem: str, shape: tuple[int, ...]) -> np.ndarray:
    if elem.startswith("i"):
        info = np.iinfo(DTYPES[elem])
        return rng.integers(info.min, info.max, shape, DTYPES[elem], endpoint=True)
    return rng.integers(-4, 5, shape).astype(np.float32).astype(DTYPES[elem])


def _scattered(matrix: np.ndarray, layout: LinearLayout) -> np.ndarray:
    """A matrix in registers, by the definition: one element after the other."""
    registers = np.zeros((1, layout.in_dims["lane"], layout.in_dims["register"]), matrix.dtype)
    for lane in range(registers.shape[1]):
        for register in range(registers.shape[2]):
            place = layout.apply(register=register, lane=lane)
            registers[0, lane, register] = matrix[place["dim0"], place["dim1"]]
    return registers


@pytest.mark.parametrize("entry", PRODUCTS, ids=lambda i: i.name)
def test_product_is_matmul(entry: Instruction) -> None:
    rng = np.random.default_rng(0)
    m, n, k = entry.shape
    a, b, c = (_random(rng, o.elem, shape) for o, shape in zip(entry.operands, ((m, k), (k, n), (m, n)), strict=True))
    operands = [_scattered(x, o.layout) for x, o in zip((a, b, c), entry.operands, strict=True)]
    (got,) = entry.run(*operands)
    if entry.operands[0].elem == "i8":
        left, right = (x.view(np.uint8) if t == "u8" else x for x, t in zip((a, b), entry.params["types"], strict=True))
        want = (c.astype(np.int64) + left.astype(np.int64) @ right.astype(np.int64)).astype(np.int32)
    else:
        want = (c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)).astype(
            DTYPES[entry.results[0].elem]
        )
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(to_matrix(got, entry.results[0].layout)[0], want)


@pytest.mark.parametrize("entry", PRODUCTS, ids=lambda i: i.name)
def test_product_layouts_are_those_of_the_zoo(entry: Instruction) -> None:
    m, n, k = entry.shape
    parent = NVMMADistributedLayout([2, 0], [1, 1], [m, n])
    width = max(1, 32 // BITS[entry.operands[0].elem])
    want = {"c": parent.to_linear([m, n])}
    if m == 16:  # the zoo's operand is for tiles of 16 rows
        want["a"] = DotOperandLayout(0, parent, width).to_linear([m, k])
    if k >= 8 * width:
        want["b"] = DotOperandLayout(1, parent, width).to_linear([k, n])
    for operand in (*entry.operands, *entry.results):
        assert operand.layout is not None
        expected = want.get(operand.name)
        if expected is None or (operand.name == "a" and k < 8 * width):
            continue
        for dim in ("register", "lane"):
            assert operand.layout.bases[dim] == expected.bases[dim], operand.name
    assert all(o.count == 1 << o.layout.in_log("register") for o in entry.operands if o.layout is not None)


def test_a_fragment_as_the_manual_writes_it() -> None:
    """mma.m16n8k16: row and column of each a_i, b_i, c_i from PTX ISA, "Matrix fragments"."""
    entry = instruction("mma.sync.m16n8k16.f32.f16.f16.f32")
    a, b, c = (o.layout for o in entry.operands)
    for lane in range(32):
        group, inside = lane >> 2, lane % 4
        for i in range(8):
            row = group if i in (0, 1, 4, 5) else group + 8
            column = inside * 2 + (i & 1) + (8 if i >= 4 else 0)
            assert a.apply(register=i, lane=lane) == {"dim0": row, "dim1": column}
        for i in range(4):
            assert b.apply(register=i, lane=lane) == {"dim0": inside * 2 + (i & 1) + 8 * (i >= 2), "dim1": group}
            assert c.apply(register=i, lane=lane) == {"dim0": group + 8 * (i >= 2), "dim1": inside * 2 + (i & 1)}


def test_tf32_ignores_low_bits_and_sums_round_once() -> None:
    entry = instruction("mma.sync.m16n8k8.f32.tf32.tf32.f32")
    one = np.full((1, 32, 4), np.float32(1) + np.float32(2**-20), np.float32)
    b = np.ones((1, 32, 2), np.float32)
    (got,) = entry.run(one, b, np.zeros((1, 32, 4), np.float32))
    assert (got == 8).all()
    half = instruction("mma.sync.m16n8k16.f16.f16.f16.f16")
    (got,) = half.run(*(np.full((1, 32, n), v, np.float16) for n, v in ((8, 256), (4, 16), (4, 0))))
    assert np.isinf(got).all()  # 16 * 4096 = 65536 is more than f16 holds


@pytest.mark.parametrize("entry", MOVES, ids=lambda i: i.name)
def test_matrices_move(entry: Instruction) -> None:
    rng = np.random.default_rng(1)
    memory, count, trans = Bytes(), entry.params["matrices"], entry.params["trans"]
    rows = rng.permutation(4 * 16)[:32] * 16
    address = rows.reshape(1, 32, 1).astype(np.int32)
    matrices = rng.integers(-999, 999, (count, 8, 8)).astype(np.int16)
    fragment = np.zeros((1, 32, 2 * count), np.int16)
    for lane in range(32):
        for j in range(count):
            for i in range(2):
                row, column = lane // 4, lane % 4 * 2 + i
                fragment[0, lane, 2 * j + i] = matrices[j, column, row] if trans else matrices[j, row, column]
    stored = Bytes()
    for i in range(8 * count):
        stored.spaces["shared"][rows[i] : rows[i] + 16] = matrices[i // 8, i % 8].view(np.uint8)
    if entry.stores:
        assert entry.run(address, fragment, memory=memory) == ()
        np.testing.assert_array_equal(memory.spaces["shared"], stored.spaces["shared"])
    else:
        (got,) = entry.run(address, memory=stored)
        np.testing.assert_array_equal(got, fragment)


@pytest.mark.parametrize("kind", ["idx", "bfly", "up", "down"])
def test_shuffles(kind: str) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 1000, (3, 32, 1)).astype(np.int32)
    b = rng.integers(0, 32, (3, 32, 1)).astype(np.int32)
    (got,) = instruction(f"shfl.sync.{kind}").run(a, b)
    for warp in range(3):
        for lane in range(32):
            by = int(b[warp, lane, 0])
            source = {"idx": by, "bfly": lane ^ by, "up": lane - by, "down": lane + by}[kind]
            assert got[warp, lane, 0] == a[warp, source if 0 <= source < 32 else lane, 0]


def test_ballot_prmt_lop3() -> None:
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(-(2**31), 2**31, (2, 32, 1)).astype(np.int32) for _ in range(3))
    (votes,) = instruction("vote.ballot").run(a & 1)
    assert int(votes[1, 7, 0]) & 0xFFFFFFFF == sum(int(a[1, i, 0] & 1) << i for i in range(32))
    (moved,) = instruction("prmt").run(a, b, np.full_like(a, 0x7140))
    at, bt = (x[0, 0, 0].astype(np.int32).tobytes() for x in (a, b))
    assert moved[0, 0, 0].tobytes() == bytes([at[0], bt[0], at[1], bt[3]])
    for table, want in ((0xF0, a), (0xC0, a & b), (0x96, a ^ b ^ c), (0xCA, (a & b) | (~a & c))):
        (got,) = instruction("lop3").run(a, b, c, np.full_like(a, table))
        np.testing.assert_array_equal(got, want)
    (signs,) = instruction("prmt").run(a, b, np.full_like(a, 0xBBBB))
    np.testing.assert_array_equal(signs, np.where(a < 0, -1, 0))


def _neighbours(elem: str) -> np.ndarray:
    """All finite values of a small type, in order, as f32."""
    dtype = DTYPES[elem]
    bits = np.arange(1 << 8 * dtype.itemsize, dtype=np.uint32).astype(f"u{dtype.itemsize}")
    values = bits.view(dtype).astype(np.float32)
    return np.unique(values[np.isfinite(values)])


@pytest.mark.parametrize("entry", [i for i in INSTRUCTIONS.values() if i.name.startswith("cvt.r") and "x2" in i.name])
def test_conversions(entry: Instruction) -> None:
    rng = np.random.default_rng(4)
    source, to = entry.operands[0].elem, entry.results[0].elem
    table = _neighbours(to)
    x = (rng.normal(size=(4, 32, 2)) * 10.0 ** rng.integers(-9, 6, (4, 32, 2))).astype(np.float32)
    with np.errstate(over="ignore"):
        x = x.astype(DTYPES[source])
    (got,) = entry.run(x)
    assert got.dtype == DTYPES[to]
    wide = x.astype(np.float64)
    if ".relu" in entry.name:
        wide = np.maximum(wide, 0)
    largest = float(table[-1])
    for value, result in zip(wide.ravel(), got.astype(np.float64).ravel(), strict=True):
        if np.isnan(value) or abs(value) > largest:
            continue
        below, above = table[table <= value][-1], table[table >= value][0]
        if ".rz" in entry.name:
            assert result == (below if value >= 0 else above)
        else:
            assert abs(result - value) == min(value - below, above - value)
    huge = entry.run(np.full((1, 32, 2), np.inf).astype(DTYPES[source]))[0].astype(np.float32)
    assert (huge == largest).all() if "satfinite" in entry.name else not np.isfinite(huge).any()


def test_tf32_rounds_ties_away() -> None:
    x = np.array([1 + 2**-11, -(1 + 2**-11), 1 + 2**-12, np.inf, 3.0], np.float32).reshape(1, 5, 1)
    (got,) = instruction("cvt.rna.tf32.f32").run(x)
    np.testing.assert_array_equal(got.ravel(), np.array([1 + 2**-10, -(1 + 2**-10), 1, np.inf, 3], np.float32))


@pytest.mark.parametrize("name", [f"cp.async.{n}" for n in ("ca.4", "ca.8", "ca.16", "cg.16")])
def test_copies_fill_with_zeros(name: str) -> None:
    rng = np.random.default_rng(5)
    entry, memory = instruction(name), Bytes()
    memory.spaces["global"][:] = rng.integers(0, 256, 4096)
    memory.spaces["shared"][:] = 77
    source = np.arange(32).reshape(1, 32, 1) * 32
    to = rng.permutation(64)[:32].reshape(1, 32, 1) * 16
    size = np.where(np.arange(32) % 3 == 0, 0, np.where(np.arange(32) % 3 == 1, entry.width, 4)).reshape(1, 32, 1)
    entry.run(to, source, size, memory=memory)
    for lane in range(32):
        got = memory.spaces["shared"][to[0, lane, 0] :][: entry.width]
        want = memory.spaces["global"][source[0, lane, 0] :][: entry.width].copy()
        want[size[0, lane, 0] :] = 0
        np.testing.assert_array_equal(got, want)


def test_mbarrier_phases() -> None:
    barrier = MBarrier.init(2)
    barrier.arrive()
    assert not barrier.try_wait(0)
    barrier.arrive()
    assert barrier.try_wait(0) and not barrier.try_wait(1)
    barrier.expect_tx(64)
    barrier.arrive(2)
    assert not barrier.try_wait(1)
    barrier.complete_tx(64)
    assert barrier.try_wait(1) and barrier.phase == 2
    with pytest.raises(MBarrierError):
        barrier.arrive(3)
    with pytest.raises(MBarrierError):
        MBarrier.init(0)


def test_rounding_once() -> None:
    """f64 to bf16 through f32: the half-way case that two roundings get wrong."""
    x = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, -(1 + 2**-8 + 2**-40), np.nan, np.inf, 0.0])
    got = round_to(x, "bf16").astype(np.float64)
    np.testing.assert_array_equal(got, [1 + 2**-7, 1, -(1 + 2**-7), np.nan, np.inf, 0])
    assert round_odd(np.array([1.0]))[0] == 1 and round_to(np.array([1e9]), "f8E4M3FN") == ml_dtypes.float8_e4m3fn(448)


KINDS = {"r": ".b32", "f": ".f32", "l": ".b64", "d": ".f64", "h": ".b16", "b": ".pred"}


def _kernel(entry: Instruction, number: int) -> str:
    """A kernel that does nothing but this instruction."""
    names: dict[str, list[str]] = {}
    declared = []
    for operand in (*entry.results, *entry.operands):
        if operand.constraint == "n":
            names[operand.name] = ["24" if entry.name.startswith("setmaxnreg") else "0"]
            continue
        names[operand.name] = [f"%{operand.name}{i}" for i in range(operand.words)]
        declared += [f".reg {KINDS[operand.constraint]} {n};" for n in names[operand.name]]
    body = "\n".join([*declared, entry.written(names), "ret;"])
    return f".visible .entry k{number}()\n.maxntid 128, 1, 1\n{{\n// {entry.name}\n{body}\n}}\n"


def _targets() -> dict[str, list[Instruction]]:
    found: dict[str, list[Instruction]] = {}
    for entry in INSTRUCTIONS.values():
        found.setdefault(f"sm_{entry.since}a" if entry.until else f"sm_{max(entry.since, 75)}", []).append(entry)
    return found


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
@pytest.mark.parametrize("target", sorted(_targets()))
def test_text_assembles(target: str, tmp_path: Path) -> None:
    """All that a target is the first to have, in one module."""
    entries = _targets()[target]
    version = max((*(e.version for e in entries), "7.8" if target > "sm_80" else "7.0"), key=float)
    source = tmp_path / "all.ptx"
    kernels = "".join(_kernel(entry, i) for i, entry in enumerate(entries))
    source.write_text(f".version {version}\n.target {target}\n.address_size 64\n{kernels}")
    command = ["ptxas", f"-arch={target}", "-c", str(source), "-o", str(tmp_path / "o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def test_registers_fill_words() -> None:
    for entry in INSTRUCTIONS.values():
        _, constraints = entry.asm()
        outputs = [c for c in constraints.split(",") if c.startswith("=")]
        assert len(outputs) == sum(o.words for o in entry.results)
        for operand in (*entry.operands, *entry.results):
            assert operand.words * WORD[operand.constraint] >= operand.count * BITS[operand.elem], entry.name


def test_unknown_names_say_what_there_is() -> None:
    with pytest.raises(KeyError, match="lop3"):
        instruction("lop3.b64")
