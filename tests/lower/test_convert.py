"""Every kind of conversion through the real lowering and the simulator, against what the layouts say."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from layouts.plans import filled, random_conversion
from weft.ir.lane import Block, LaneProgram, Parameter, Value, verify
from weft.layouts import BlockedLayout, LinearLayout
from weft.layouts.plan import Machine, machine_of, plan_conversion
from weft.layouts.plan.conversion import normalised
from weft.lower import finish
from weft.lower.context import Context
from weft.lower.convert import convert
from weft.sim import Options, UninitializedError, run

DIMS = ("block", "warp", "lane", "register")


def numbers(c: Context, layout: LinearLayout) -> Value:
    """The flattened number of the element in each register."""
    flat = layout.flatten_outs()
    return c.coordinates(flat, next(iter(flat.out_dims)))


def program_of(
    src: LinearLayout, dst: LinearLayout, bits: int, target: str, machine: Machine | None = None, group: Any = None
) -> LaneProgram:
    """Numbers in one layout, converted, and stored in the order (warp, lane, register)."""
    elem = f"i{bits}"
    body = Block((Value("i64", 1),))
    warps = src.in_dims["warp"]
    program = LaneProgram("convert", machine or machine_of(target), (Parameter("out", "ptr", elem),), body, warps)
    c = Context(program)
    value = numbers(c, src)
    if elem != "i32":
        value = c.build.op("arith.trunci" if bits < 32 else "arith.extsi", [value], elem)
    result = convert(c, value, src, dst, group)
    count, size = dst.in_dims["register"], bits // 8
    lane = [count * size << i for i in range(5)]
    warp = [count * size << 5 + i for i in range(warps.bit_length() - 1)]
    offsets = c.build.op("arith.extsi", [c.build.linear([r * size for r in range(count)], lane, warp)], "i64")
    c.build.store("global", c.build.op("arith.addi", [body.arguments[0], offsets], "i64"), result)
    finish(program)
    verify(program)
    return program


def conversions() -> list[int]:
    """Seeds whose conversion stays within a block and fits 8, 16, 32 or 64 bits."""
    found = []
    for seed in range(900):
        src, _, bits, _ = random_conversion(seed)
        if src.in_dims["block"] == 1 and bits >= 8 and src.total_in_log <= 12:
            found.append(seed)
    return found[:240]


@pytest.mark.parametrize("seed", conversions())
@pytest.mark.thinned(3)
def test_conversion(seed: int) -> None:
    src, dst, bits, target = random_conversion(seed)
    program = program_of(src, dst, bits, target)
    shape = tuple(dst.in_dims[d] for d in DIMS)
    out = np.zeros(int(np.prod(shape)), f"i{bits // 8}")
    order = random.Random(seed).choice(["forward", "backward"])
    report = run(program, 1, {"out": out}, Options(order=order))
    assert np.array_equal(out.reshape(shape), filled(dst).astype(out.dtype))
    passes = report["shared_load_wavefronts"] + report["shared_store_wavefronts"]
    assert passes == report["shared_ideal"], "bank conflicts"


@pytest.mark.parametrize("seed", conversions()[::3])
@pytest.mark.parametrize("matrix", [False, True])
@pytest.mark.thinned(3)
def test_conversion_in_little_memory(seed: int, matrix: bool) -> None:
    """Rounds in which only some lanes and warps take part, as the elements of no register are of one round."""
    src, dst, bits, target = random_conversion(seed)
    whole = (bits // 8) << src.total_out_log
    for log in (1, 3):
        size, larger = max(64, whole >> log), machine_of("cuda:90")
        loads, stores = "ldmatrix" * matrix, "stmatrix" * matrix
        machine = replace(larger, name="small", matrix_loads=loads, matrix_stores=stores, shared_bytes=size)
        program = program_of(src, dst, bits, target, machine)
        assert program.shared_bytes <= machine.shared_bytes
        shape = tuple(dst.in_dims[d] for d in DIMS)
        out = np.zeros(int(np.prod(shape)), f"i{bits // 8}")
        run(program, 1, {"out": out}, Options(order=random.Random(seed).choice(["forward", "backward"])))
        assert np.array_equal(out.reshape(shape), filled(dst).astype(out.dtype))


# -- packing -----------------------------------------------------------------------------------------------------------


def layout(register: list[int], lane: list[int]) -> LinearLayout:
    bases = {"register": register, "lane": lane, "warp": [], "block": []}
    return LinearLayout.from_bases({d: [(c,) for c in cs] for d, cs in bases.items()}, {"dim0": 256})


EXCHANGE = (
    layout([1, 2, 4], [8, 16, 32, 64, 128]),
    layout([1, 2, 8], [4, 16, 32, 64, 128]),
)
"""One register bit and one lane bit change places."""


@pytest.mark.parametrize(("bits", "shuffles"), [(32, 4), (16, 2), (8, 1)])
def test_small_elements_are_shuffled_together(bits: int, shuffles: int) -> None:
    program = program_of(*EXCHANGE, bits, "cuda:80")
    out = np.zeros(256, f"i{bits // 8}")
    report = run(program, 1, {"out": out})
    assert np.array_equal(out, filled(EXCHANGE[1]).ravel().astype(out.dtype))
    assert report.kinds["shuffle"] == shuffles
    assert ("pack" in report.kinds) == (bits < 32)


TRANSPOSED = {
    8: (BlockedLayout([1, 8], [4, 8], [2, 1], [1, 0]), BlockedLayout([8, 1], [8, 4], [1, 2], [0, 1])),
    16: (BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0]), BlockedLayout([8, 1], [16, 2], [1, 4], [0, 1])),
}
"""By bits of an element; no register of one side is one of the other."""


@pytest.mark.parametrize(("bits", "target"), [(8, "cuda:75"), (8, "cuda:90"), (16, "cuda:80")])
@pytest.mark.parametrize("back", [False, True])
def test_small_elements_change_places_within_words(bits: int, target: str, back: bool) -> None:
    shape = (64, 64)
    one, other = (normalised(x, shape, "source") for x in TRANSPOSED[bits])
    src, dst = (other, one) if back else (one, other)
    planned = plan_conversion(src, dst, shape, bits, target).cost.instructions
    out = np.zeros(1 << dst.total_in_log, f"i{bits // 8}")
    report = run(program_of(src, dst, bits, target), 1, {"out": out})
    assert np.array_equal(out, filled(dst).ravel().astype(out.dtype))
    assert planned["permute"] > 0
    for kind in ("permute", "shuffle"):
        assert report.kinds[kind] == planned[kind] * src.in_dims["warp"]
    passes = report["shared_load_wavefronts"] + report["shared_store_wavefronts"]
    assert passes == report["shared_ideal"], "bank conflicts"


KINDS = ("shuffle", "select", "pack", "unpack", "permute")


def within_warps() -> list[int]:
    """Seeds of conversions by shuffles, of elements that are no larger than a register."""
    found = []
    for seed in range(1500):
        src, dst, bits, target = random_conversion(seed)
        if src.in_dims["block"] == 1 and 8 <= bits <= 32 and src.total_in_log <= 12:
            plan = plan_conversion(src, dst, tuple(src.out_dims.values()), bits, target)
            if plan.kind in ("shuffles", "hybrid"):
                found.append(seed)
    return found[:150]


def test_what_is_counted_is_what_was_planned() -> None:
    packed = 0
    for seed in within_warps():
        src, dst, bits, target = random_conversion(seed)
        planned = plan_conversion(src, dst, tuple(src.out_dims.values()), bits, target).cost.instructions
        counted = run(
            program_of(src, dst, bits, target), 1, {"out": np.zeros(1 << dst.total_in_log, f"i{bits // 8}")}
        ).kinds
        warps = src.in_dims["warp"]
        stores = planned.get("pack", 0) if any("matrix" in k for k in planned) else None
        for kind in KINDS:
            if stores is None or kind in (
                "shuffle",
                "select",
                "permute",
            ):  # matrix instructions of bytes pack on their own
                assert counted.get(kind, 0) == planned.get(kind, 0) * warps, (seed, kind)
        packed += "pack" in planned
    assert packed > 20


def test_an_undefined_element_does_not_spoil_its_neighbour_in_a_word() -> None:
    """Loaded under a mask that cuts words in two, converted, stored under the same mask."""
    src, dst = EXCHANGE
    body = Block((Value("i64", 1), Value("i64", 1)))
    parameters = (Parameter("x", "ptr", "i16"), Parameter("out", "ptr", "i16"))
    program = LaneProgram("convert", machine_of("cuda:80"), parameters, body, 1)
    c = Context(program)

    def place(base: Value, layout: LinearLayout) -> tuple[Value, Value]:
        index = numbers(c, layout)
        limit = c.build.op("arith.cmpi", [index, c.build.constant("i32", 77)], "i1", predicate=2)
        offset = c.build.op("arith.muli", [index, c.build.constant("i32", 2)], "i32")
        return c.build.op("arith.addi", [base, c.build.op("arith.extsi", [offset], "i64")], "i64"), limit

    address, inside = place(body.arguments[0], src)
    value = convert(c, c.build.load("global", address, "i16", mask=inside), src, dst)
    address, inside = place(body.arguments[1], dst)
    c.build.store("global", address, value, mask=inside)
    verify(program)
    assert any(op.name == "pack" for op in body.walk())
    x, out = np.arange(77, dtype=np.int16), np.zeros(77, np.int16)
    run(program, 1, {"x": x, "out": out})
    assert np.array_equal(out, x)
    c.build.store("global", address, value)  # without the mask what is undefined is stored
    with pytest.raises(UninitializedError, match="undefined"):
        run(program, 1, {"x": x, "out": np.zeros(256, np.int16)})
