"""Kernels for one operation on tiles in any layout, written as text: loaded row by row, and stored so."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from layouts.plans import random_columns
from weft.ir import parse_module
from weft.ir.lane import LaneProgram
from weft.layouts import LinearLayout
from weft.lower import lower
from weft.sim import Options, Report, run

WARPS = 4
PLAIN = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
TYPES = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64"}  # fmt: skip  # noqa: E501


def random_layout(rng: random.Random, shape: Sequence[int]) -> LinearLayout:
    """A layout of a tile: each place has an element, or a copy of one."""
    size = prod(shape).bit_length() - 1
    columns = random_columns(rng, size, 5 + WARPS.bit_length() - 1)
    warp_log = WARPS.bit_length() - 1
    at = len(columns) - warp_log - 5
    parts = {"register": columns[:at], "lane": columns[at : at + 5], "warp": columns[at + 5 :], "block": []}
    bases = {d: [(c,) for c in own] for d, own in parts.items()}
    names = {f"dim{d}": s for d, s in enumerate(shape)}
    flat = LinearLayout.from_bases(bases, {"x": 1 << size})
    return flat.reshape_outs(dict(reversed(names.items()))).transpose_outs(list(names))


def text_of(layout: LinearLayout) -> str:
    """A layout as Triton writes it."""
    bases = ", ".join(f"{d} = {[list(b) for b in layout.bases[d]]}" for d in ("register", "lane", "warp", "block"))
    return f"#ttg.linear<{{{bases}}}>"


def tile(shape: Sequence[int], elem: str, layout: str) -> str:
    """The type of a tile."""
    return f"tensor<{'x'.join(map(str, shape))}x{elem}, {layout}>"


def loaded(name: str, argument: str, shape: Sequence[int], elem: str, layout: str) -> str:
    """The lines that load a tile from an array, row by row."""
    n = prod(shape)
    flat, at = f"tensor<{n}x{elem}, #plain>", f"tensor<{n}x!tt.ptr<{elem}>, #plain>"
    return f"""
    %{name}_r = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, #plain>
    %{name}_s = tt.splat %{argument} : !tt.ptr<{elem}> -> {at}
    %{name}_p = tt.addptr %{name}_s, %{name}_r : {at}, tensor<{n}xi32, #plain>
    %{name}_f = tt.load %{name}_p : {at}
    %{name} = tt.reshape %{name}_f : {flat} -> {tile(shape, elem, layout)}"""


def stored(name: str, argument: str, shape: Sequence[int], elem: str, layout: str) -> str:
    """The lines that store a tile to an array, row by row."""
    n = prod(shape)
    flat, at = f"tensor<{n}x{elem}, #plain>", f"tensor<{n}x!tt.ptr<{elem}>, #plain>"
    return f"""
    %{name}_flat = tt.reshape %{name} : {tile(shape, elem, layout)} -> {flat}
    %{name}_or = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, #plain>
    %{name}_os = tt.splat %{argument} : !tt.ptr<{elem}> -> {at}
    %{name}_op = tt.addptr %{name}_os, %{name}_or : {at}, tensor<{n}xi32, #plain>
    tt.store %{name}_op, %{name}_flat : {at}"""


def program_of(layouts: dict[str, str], arguments: Sequence[tuple[str, str]], body: str, target: str = "cuda:80") -> LaneProgram:  # fmt: skip  # noqa: E501
    """The lane program of a kernel: named layouts, (name, element type) of its arrays, and what it does."""
    aliases = "\n".join(f"#{k} = {v}" for k, v in {"plain": PLAIN, **layouts}.items())
    parameters = ", ".join(f"%{n}: !tt.ptr<{e}> {{tt.divisibility = 16 : i32}}" for n, e in arguments)
    attributes = f'"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {WARPS} : i32, ttg.target = "{target}"'
    text = f"""{aliases}
module attributes {{{attributes}, "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @kernel({parameters}) {{{body}
    tt.return
  }}
}}
"""
    return lower(parse_module(text, "kernel.ttgir"))


def launched(program: LaneProgram, seed: int = 0, **arrays: np.ndarray[Any, Any]) -> Report:
    """One program of the grid, with every checker on."""
    order = random.Random(seed).choice(["forward", "backward"])
    return run(program, 1, arrays, Options(order=order))
