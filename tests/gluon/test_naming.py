"""The named layouts of what operations on shapes give: the right maps, and Triton's names."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import pytest

from weft.ir.gpu import naming
from weft.layouts import (
    BlockedLayout,
    Layout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    infer,
)

from .triton_gluon import Inference

Case = tuple[str, Any, list[int], list[Any]]


def _parts(draw: random.Random, log: int, rank: int) -> list[int]:
    """2 ** log as a product of `rank` powers of two."""
    found = [1] * rank
    for _ in range(log):
        found[draw.randrange(rank)] *= 2
    return found


def _blocked(draw: random.Random, rank: int) -> BlockedLayout:
    order = list(range(rank))
    draw.shuffle(order)
    return BlockedLayout(_parts(draw, draw.randrange(4), rank), _parts(draw, 5, rank), _parts(draw, 2, rank), order)


def tiles(seed: int, count: int) -> list[Case]:
    """Random operations on random layouts."""
    draw = random.Random(seed)
    cases: list[Case] = []
    for _ in range(count):
        rank = draw.choice([1, 2, 2, 3])
        layout: Any = _blocked(draw, rank + 1)
        layout = draw.choice([_blocked(draw, rank), SliceLayout(draw.randrange(rank + 1), layout)])
        if rank == 2 and draw.random() < 0.2:
            layout = NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
        shape = _parts(draw, draw.randrange(3, 11), rank)
        op = draw.choice(["reshape", "reshape", "trans", "join"])
        if op == "reshape":
            log = prod(shape).bit_length() - 1
            cases.append((op, layout, shape, [_parts(draw, log, draw.choice([1, 2, 3, 4]))]))
        elif op == "trans":
            cases.append((op, layout, shape, [draw.sample(range(rank), rank)]))
        else:
            cases.append((op, layout, shape, []))
    return cases


NAMED = {"reshape": naming.reshaped, "trans": naming.transposed, "join": naming.joined}
MAPS = {"reshape": infer.reshape_result, "trans": infer.trans_result, "join": infer.join_result}


def _shape(op: str, shape: list[int], args: list[Any]) -> list[int]:
    return args[0] if op == "reshape" else [shape[d] for d in args[0]] if op == "trans" else [*shape, 2]


@pytest.mark.parametrize("op,layout,shape,args", tiles(1, 300))
@pytest.mark.thinned(4)
def test_the_map_is_right(op: str, layout: Any, shape: list[int], args: list[Any]) -> None:
    named = NAMED[op](layout, shape, *args)  # type: ignore[operator]
    found, source = named.to_linear(_shape(op, shape, args)), layout.to_linear(shape)
    if op == "join" and isinstance(layout, SliceLayout):  # what it is a slice of, which may count registers otherwise
        assert infer.split_result(found) == source
    else:
        assert found == MAPS[op](source, *args)  # type: ignore[operator]


def _as_triton(layout: Layout) -> str:
    """The name as Triton's class prints itself."""
    from triton.experimental.gluon import language as gl

    return _plain(str(eval(repr(layout), vars(gl))))


def _plain(text: str) -> str:
    """Pairs as lists."""
    return text.replace("[(", "[[").replace(")]", "]]")


def test_names_are_tritons() -> None:
    pytest.importorskip("triton", reason="compares with Triton")
    triton = Inference()
    for op, layout, shape, args in tiles(2, 300):
        theirs = triton.tile(op, layout, shape, *args, *([False] if op == "reshape" else []))
        ours = NAMED[op](layout, shape, *args)  # type: ignore[operator]
        assert _as_triton(ours) == theirs, (op, layout, shape, args)


MEMORY: list[Case] = [
    ("trans", SwizzledSharedLayout(8, 1, 8, [1, 0]), [64, 32], [[1, 0]]),
    ("trans", SwizzledSharedLayout(8, 1, 8, [2, 1, 0]), [8, 64, 32], [[2, 0, 1]]),
    ("trans", NVMMASharedLayout(32, 16), [64, 64], [[1, 0]]),
    ("trans", NVMMASharedLayout(128, 16, transposed=True), [64, 64], [[1, 0]]),
    ("trans", NVMMASharedLayout(64, 16, 3), [4, 64, 64], [[0, 2, 1]]),
    ("trans", PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0]), [64, 64], [[1, 0]]),
    ("trans", SharedLinearLayout([[0, 1], [0, 2], [1, 1], [2, 2]], alignment=64), [4, 4], [[1, 0]]),
    ("reshape", SwizzledSharedLayout(8, 1, 8, [1, 0]), [64, 32], [[2048]]),
    ("reshape", SwizzledSharedLayout(1, 1, 1, [0]), [64], [[8, 8]]),
    ("reshape", NVMMASharedLayout(128, 16), [64, 64], [[1, 64, 64]]),
    ("reshape", NVMMASharedLayout(128, 16), [64, 64], [[8, 8, 64]]),
    ("reshape", NVMMASharedLayout(128, 16), [64, 128], [[64, 2, 64]]),
    ("reshape", NVMMASharedLayout(128, 16), [64, 64], [[4096]]),
    ("reshape", NVMMASharedLayout(0, 16), [64, 64], [[4096]]),
    ("reshape", NVMMASharedLayout(64, 16, transposed=True), [64, 64], [[2, 32, 64]]),
    ("reshape", PaddedSharedLayout.with_identity_for([[64, 8]], [64, 64], [1, 0]), [64, 64], [[64, 2, 32]]),
]
NAMED_MEMORY = {"reshape": naming.memory_reshaped, "trans": naming.memory_transposed}


@pytest.mark.parametrize("op,layout,shape,args", [*MEMORY, ("trans", NVMMASharedLayout(0, 16), [64, 64], [[1, 0]])])
def test_the_map_of_memory_is_right(op: str, layout: Any, shape: list[int], args: list[Any]) -> None:
    named = NAMED_MEMORY[op](layout, shape, *args)  # type: ignore[operator]
    assert named.to_linear(_shape(op, shape, args)) == MAPS[op](layout.to_linear(shape), *args)  # type: ignore[operator]


def test_names_of_memory_are_tritons() -> None:
    pytest.importorskip("triton", reason="compares with Triton")
    triton = Inference()
    for op, layout, shape, args in MEMORY:
        ours = NAMED_MEMORY[op](layout, shape, *args)  # type: ignore[operator]
        assert _as_triton(ours) == _plain(triton.memory(op, layout, shape, *args)), (op, layout, shape, args)


@pytest.mark.parametrize(
    "layout,shape", [(SwizzledSharedLayout(1, 1, 1, [1, 0]), [1, 1]), (NVMMASharedLayout(0, 16, 1), [1])]
)
def test_memory_of_one_element_in_another_shape(layout: Any, shape: list[int]) -> None:
    for to in ([1], [1, 1, 1]):
        reshaped = naming.memory_reshaped(layout, shape, to)
        assert reshaped.to_linear(to) == infer.reshape_result(layout.to_linear(shape), to)
