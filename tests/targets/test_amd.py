"""Every entry of AMD's table: layouts by the formulas of documents, meaning, the call of LLVM's intrinsic."""

from __future__ import annotations

import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from children import environment
from weft.layouts import LinearLayout
from weft.machines.amd import ROWS
from weft.ops.dtypes import DTYPES
from weft.targets.amd import INSTRUCTIONS
from weft.targets.instruction import BITS, Instruction
from weft.targets.meaning import from_matrix, tf32, to_matrix
from weft.targets.table import available, products

from .test_nvidia import _random

PRODUCTS = [i for i in INSTRUCTIONS.values() if i.products and "scaled" not in i.params]
SCALED = [i for i in INSTRUCTIONS.values() if "scaled" in i.params]
NARROW = {
    "e2m3": (6, ml_dtypes.float6_e2m3fn), "e3m2": (6, ml_dtypes.float6_e3m2fn), "e2m1": (4, ml_dtypes.float4_e2m1fn)
}  # fmt: skip
"""Bits and type of elements of less than 8 bits."""


def place_of_operand(entry: Instruction, lane: np.ndarray, register: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row of A or column of B, k) by AMD's documents."""
    size, width = entry.shape[0], entry.params["k_width"]
    if entry.name.startswith("mfma") and "f8f6f4" not in entry.name:
        assert width == entry.shape[2] * size // 64
    if entry.name.startswith("mfma"):
        return lane % size, register // width * (width * 64 // size) + lane // size * width + register % width
    if entry.since == 0x1100:
        return lane % 16, register
    return lane % 16, register // width * 2 * width + lane // 16 * width + register % width


def place_of_result(entry: Instruction, lane: np.ndarray, register: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of the result, by AMD's documents."""
    if entry.shape[0] == 32:
        return 8 * (register // 4) + 4 * (lane // 32) + register % 4, lane % 32
    if entry.name.startswith("mfma"):
        row = 4 * register + lane // 16 if entry.results[0].elem == "f64" else 4 * (lane // 16) + register
    elif entry.since == 0x1100:
        row = 2 * register + lane // 16
    else:
        row = 8 * (lane // 16) + register
    return row, lane % 16


def places(layout: LinearLayout) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(lane, register, dim0, dim1) of every place of an operand or result."""
    lane, register = np.indices((layout.in_dims["lane"], layout.in_dims["register"])).reshape(2, -1)
    at = layout.apply({"lane": lane, "register": register})
    return lane, register, at["dim0"], at["dim1"]


@pytest.mark.parametrize("entry", PRODUCTS, ids=lambda i: i.name)
def test_layouts_are_those_of_the_documents(entry: Instruction) -> None:
    a, b, c = (o.layout for o in entry.operands)
    assert a is not None and b is not None and c is not None and entry.results[0].layout == c
    assert a.in_dims["lane"] == (64 if entry.name.startswith("mfma") else 32)
    for layout, swapped in ((a, False), (b, True)):
        lane, register, *at = places(layout)
        other, k = place_of_operand(entry, lane, register)
        np.testing.assert_array_equal(at[::-1] if swapped else at, [other, k])
    lane, register, *at = places(c)
    np.testing.assert_array_equal(
        at[::-1] if entry.params["transposed"] else at, place_of_result(entry, lane, register)
    )
    m, n, k = entry.shape
    for layout, shape in ((a, (m, k)), (b, (k, n)), (c, (m, n))):
        _, _, *at = places(layout)
        assert {*zip(*at, strict=True)} == {*np.ndindex(*shape)}
    assert all(o.count == 1 << o.layout.in_log("register") for o in entry.operands if o.layout is not None)


@pytest.mark.parametrize("entry", PRODUCTS, ids=lambda i: i.name)
def test_a_product_is_that_of_matrices(entry: Instruction) -> None:
    rng = np.random.default_rng(0)
    m, n, k = entry.shape
    a, b, c = (_random(rng, o.elem, shape) for o, shape in zip(entry.operands, ((m, k), (k, n), (m, n)), strict=True))
    (result,) = entry.run(*(from_matrix(x[None], o.layout) for x, o in zip((a, b, c), entry.operands, strict=True)))
    kinds = entry.params["types"]
    left, right = (x.view(np.uint8) if t == "u8" else x for x, t in zip((a, b), kinds, strict=True))
    wide = np.int64 if entry.params["accumulator"] == "i32" else np.float64
    want = c.astype(wide) + left.astype(wide) @ right.astype(wide)
    assert entry.results[0].layout is not None
    np.testing.assert_array_equal(
        to_matrix(result, entry.results[0].layout)[0], want.astype(DTYPES[entry.results[0].elem])
    )


def scaled_side(
    rng: np.random.Generator, entry: Instruction, index: int, size: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """An operand of a scaled product as registers, and its values, [row or column, k]."""
    kind, layout = entry.params["types"][index], entry.operands[index].layout
    if kind in NARROW:
        bits, type = NARROW[kind]
        codes = rng.integers(0, 1 << bits, (size, k)).astype(np.uint8)
        values = codes.view(type).astype(np.float64)
        if bits == 6:  # 32 in a row in each lane, in 6 words
            lane = np.arange(64)
            rows = codes.reshape(size, k // 32, 32)[lane % size, lane // size]
            stream = np.unpackbits(rows[..., None], axis=-1, count=6, bitorder="little").reshape(64, -1)
            return np.packbits(stream, axis=1, bitorder="little").view(np.int32)[None], values
        matrix = (codes[:, ::2] | codes[:, 1::2] << 4).view(np.int8)
    else:
        matrix = _random(rng, kind, (size, k))
        values = matrix.astype(np.float64)
    assert layout is not None
    return from_matrix(np.ascontiguousarray(matrix.T if index else matrix)[None], layout), values


@pytest.mark.parametrize("entry", SCALED, ids=lambda i: i.name)
def test_a_scaled_product_is_that_of_scaled_matrices(entry: Instruction) -> None:
    """Element by element; a scale is that of its row or column and of 32 elements along k, and 255 is no number."""
    rng = np.random.default_rng(1)
    m, n, k = entry.shape
    c = rng.integers(-4, 5, (m, n)).astype(np.float32)
    scales = [rng.integers(124, 131, (size, k // 32)).astype(np.uint8) for size in (m, n)]
    scales[0][1, 0] = 255
    (a, left), (b, right) = (scaled_side(rng, entry, index, size, k) for index, size in enumerate((m, n)))
    operands = zip((c, *(s.view(np.int8) for s in scales)), entry.operands[2:], strict=True)
    (result,) = entry.run(a, b, *(from_matrix(x[None], o.layout) for x, o in operands))
    factors = (np.repeat(np.where(s == 255, np.nan, 2.0 ** (s.astype(float) - 127)), 32, axis=1) for s in scales)
    left, right = (x * f for x, f in zip((left, right), factors, strict=True))
    assert entry.results[0].layout is not None
    want = (c + left @ right.T).astype(np.float32)
    assert np.isnan(want[1]).all() and not np.isnan(want[2:]).any()
    np.testing.assert_array_equal(to_matrix(result, entry.results[0].layout)[0], want)


def test_the_two_kinds_of_f32() -> None:
    """xf32 leaves out low bits, f32 does not; only the second multiplies in full precision."""
    for name, exact in (("mfma.f32.16x16x8.xf32", False), ("mfma.f32.16x16x4f32", True)):
        entry = INSTRUCTIONS[name]
        x = np.full((1, 64, entry.operands[0].count), np.float32(1) + np.float32(2**-20), np.float32)
        one, zero = np.ones_like(x), np.zeros((1, 64, 4), np.float32)
        k = entry.shape[2]
        want = np.float32(k * (float(x[0, 0, 0]) if exact else 1.0))
        assert (entry.run(x, one, zero)[0] == want).all()
        assert entry.is_coarse is not exact
    assert tf32(np.float32([1 + 2**-20]))[0] == 1
    machine = next(row for row in ROWS if row.name.endswith("942"))
    assert {e.is_coarse for e in products(machine, "f32", "f32", "f32", precise=True)} == {False}
    assert {e.is_coarse for e in products(machine, "f32", "f32", "f32")} == {True, False}


def test_each_processor_has_the_products_that_it_should() -> None:
    kinds = {
        (left, total): {row.name.removeprefix("hip:gfx") for row in ROWS if products(row, left, left, total)}
        for left, total in (
            ("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("f64", "f64"), ("i8", "i32"), ("u8", "i32"),
            ("f8E4M3FN", "f32"), ("f8E4M3FNUZ", "f32"), ("f16", "f16"),
        )
    }  # fmt: skip
    cdna, rdna = {"90a", "942", "950"}, {"1100", "1151", "1200", "1201", "1250"}
    assert kinds == {
        ("f16", "f32"): cdna | rdna,
        ("bf16", "f32"): cdna | rdna,
        ("f32", "f32"): cdna | {"1250"},
        ("f64", "f64"): cdna,
        ("i8", "i32"): cdna | rdna,
        ("u8", "i32"): rdna,
        ("f8E4M3FN", "f32"): {"950", "1200", "1201", "1250"},
        ("f8E4M3FNUZ", "f32"): {"942"},
        ("f16", "f16"): {"1200", "1201", "1250"},
    }


def bits_of(kind: str) -> int:
    """Of one of LLVM's types."""
    if kind == "ptr addrspace(3)":
        return 32
    count, elem = re.fullmatch(r"(?:<(\d+) x )?(\w+)>?", kind).groups()  # type: ignore[union-attr]
    floats = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
    return int(count or 1) * (floats[elem] if elem in floats else int(elem[1:]))


def test_operands_fill_the_arguments_of_the_intrinsic() -> None:
    for entry in INSTRUCTIONS.values():
        operands = {o.name: o for o in entry.operands}
        named = {what for _, what in entry.params["arguments"] if isinstance(what, str)}
        assert named == operands.keys() - {"to", "barrier"}  # of a copy of a tile: in groups of words too
        for kind, what in entry.params["arguments"]:
            if isinstance(what, str):
                bits = operands[what].count * BITS[operands[what].elem]
                short = (what.startswith("scale") and bits == 8) or operands[what].constraint == "n"
                assert bits_of(kind) == bits or short, entry.name
        returns = entry.params["returns"]
        kinds = [returns] if isinstance(returns, str) else returns
        assert [bits_of(kind) for kind in kinds] == [o.count * BITS[o.elem] for o in entry.results], entry.name


ASSEMBLE = """
import sys
from llvmlite import binding
from weft.machines import machine_of
from weft.targets.table import available
binding.initialize_all_targets()
binding.initialize_all_asmprinters()
machine = machine_of("hip:" + sys.argv[1])
target = binding.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu=sys.argv[1], opt=1)
functions, declared = [], set()
chosen = [e for e in available(machine) if e.text and ("quad_perm" not in e.name or e.name[-1] == e.name[-2])]
for number, entry in enumerate(chosen):
    kinds = [kind for kind, _ in entry.params["arguments"]]
    loads, arguments = [], []
    numbers = [o.name for o in entry.operands if o.constraint == "n"]
    for i, (kind, what) in enumerate(entry.params["arguments"]):
        if isinstance(what, int) or what in numbers:
            arguments.append(f"{kind} {0 if what in numbers else what}")
        else:
            loads.append(f"  %x{i} = load {kind}, ptr addrspace(1) %p, align 4")
            arguments.append(f"{kind} %x{i}")
    returns = entry.params["returns"]
    returns = returns if isinstance(returns, str) else "{ " + ", ".join(returns) + " }" if returns else "void"
    declared.add(f"declare {returns} @{entry.text}({', '.join(kinds)})")
    call = f"call {returns} @{entry.text}({', '.join(arguments)})"
    if returns != "void":
        call = f"%r = {call}\\n  store {returns} %r, ptr addrspace(1) %p, align 4"
    begin = f"define amdgpu_kernel void @k{number}(ptr addrspace(1) %p) {{\\n"
    functions.append(begin + "\\n".join(loads) + f"\\n  {call}\\n  ret void\\n}}")
text = 'target triple = "amdgcn-amd-amdhsa"\\n' + "\\n".join([*sorted(declared), *functions])
module = binding.parse_assembly(text)
module.verify()
print(target.emit_assembly(module))
"""


ALWAYS = ("hip:gfx950", "hip:gfx1201")
"""One of each kind: what the others have is selected in the longer tests."""


@pytest.mark.parametrize(
    "row", [pytest.param(r, marks=() if r.name in ALWAYS else pytest.mark.slow, id=r.name) for r in ROWS]
)
def test_llvm_selects_the_intrinsics_of_each_processor(row) -> None:  # type: ignore[no-untyped-def]
    """In a process of its own: LLVM ends the process where it selects nothing."""
    names = [e.name for e in available(row) if e.text and ("quad_perm" not in e.name or e.name[-1] == e.name[-2])]
    command = [sys.executable, "-c", ASSEMBLE, row.name.removeprefix("hip:")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr[-2000:]
    text = done.stdout
    assert len(re.findall(r"^k\d+:", text, re.MULTILINE)) == len(names)
    assert len(re.findall(r"v_\w*mma?c?\w*_\w+|v_mfma_\w+", text)) >= sum(1 for e in available(row) if e.products)
