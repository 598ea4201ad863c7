"""Rows of the table as kernels: one for all rows on the same types, each on every pair of corner values.

kernel = Kernel(("i32", "i32"), [Case(ROWS["arith.addi"], "i32", {}), ...])
kernel.numpy()          # what each row gives for `kernel.operands`, by NumPy
kernel.run("cpu")       # the same from compiled code; "cuda:90" is its PTX, run by the interpreter of tests/ptx
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import ptx.control
import weft
from ptx.launching import parameters, without_assembler
from ptx.parsing import Program
from ptx.spaces import Global
from weft.backends.gpu.approximations import APPROXIMATIONS
from weft.backends.llvm.vecmath import registry
from weft.compiler import IRSource, gpu
from weft.ops import ELEMENTS
from weft.ops.casts import FLOAT_PREDICATES, INTEGER_PREDICATES
from weft.ops.dtypes import DTYPES
from weft.ops.rounding import Array
from weft.ops.row import FUNCTION, Row
from weft.ops.table import ROWS, compute
from weft.sim import run

__all__ = ["COUNT", "INTEGERS", "Kernel", "kernels"]

INTEGERS = ("i1", "i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ")
COUNT = 256
"""Elements of each operand."""
CORNERS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3e38, 65504.0, -7.25, 1e-8),
]


class Case(NamedTuple):
    """A row, the element of its result, and its attributes."""

    row: Row
    result: str
    attrs: Mapping[str, Any]


def corners(elem: str) -> Array:
    """Sixteen values of a type."""
    bits = ELEMENTS[elem].bits
    if elem == "i1":
        return np.array([False, True] * 8)
    if elem[0] == "i":
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        whole = [0, 1, -1, 2, -2, 7, -7, bits - 1, bits, bits + 1, high, high - 1, low, low + 1, high // 3, low // 5]
        return np.array(whole, np.int64).astype(DTYPES[elem])
    with np.errstate(all="ignore"):
        return np.array(CORNERS).astype(DTYPES[elem])


def kernels() -> Iterator[Kernel]:
    """A kernel for all rows of each combination of types that tile IR has, apart from those of pointers."""
    groups: dict[tuple[tuple[str, ...], str], list[Case]] = {}
    for row in ROWS.values():
        if row.is_tile and row.meaning is not None and "pointer" not in row.kind:
            for sources, result in _types(row):
                cases = groups.setdefault((sources, _group(row)), [])
                cases += [Case(row, result, attrs) for attrs in _attributes(row)]
    for (sources, group), cases in groups.items():
        yield Kernel("-".join(sources) + group, sources, cases)


def _group(row: Row) -> str:
    """Rows that are apart from the others: what they need takes longer, or is not known to the interpreter of PTX."""
    if row.name in ("math.sin", "math.cos", "math.tan"):
        return " angles"
    return " functions" if row.cost == FUNCTION else ""


def _types(row: Row) -> Iterator[tuple[tuple[str, ...], str]]:
    kinds = {"int": INTEGERS, "float": FLOATS, "any": (*INTEGERS, *FLOATS), "i1": ("i1",)}
    for source, result in product(kinds[row.kind.source], kinds[row.kind.result]):
        a, b = ELEMENTS[source].bits, ELEMENTS[result].bits
        right = {
            "same": source == result, "halves": source == result and a > 1,
            "wider": a < b, "narrower": a > b, "bits": a == b,
        }.get(row.kind.how, True)  # fmt: skip
        if row.name == "arith.select":
            if source == result:
                yield ("i1", source, source), result
        elif row.name in ("arith.extf", "arith.truncf"):  # of eight bits there is tt.fp_to_fp
            if right and 8 not in (a, b):
                yield (source,), result
        elif row.name == "tt.fp_to_fp":
            if a != b and 8 in (a, b):
                yield (source,), result
        elif row.name in ("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"):
            if source[0:2] != "f8" and result[0:2] != "f8":  # the language goes through f32
                yield (source,), result
        elif row.name == "arith.bitcast" or row.name == "tt.bitcast":
            if right and source != result:
                yield (source,), result
        elif row.name != "arith.index_cast" and right:
            yield (source,) * row.arity, result


def _attributes(row: Row) -> list[dict[str, Any]]:
    if row.name in ("arith.cmpi", "arith.cmpf"):
        names = INTEGER_PREDICATES if row.name == "arith.cmpi" else FLOAT_PREDICATES
        return [{"predicate": name} for name in names]
    if row.name == "tt.clampf":
        return [{"propagateNan": 0}, {"propagateNan": 0xFFFF}]
    return [{}]


@dataclass
class Kernel:
    """Rows on operands of the same types."""

    name: str
    """What a test calls it."""
    sources: tuple[str, ...]
    cases: list[Case]

    @property
    def results(self) -> list[str]:
        """The elements of the results, one for each array."""
        return list(dict.fromkeys(case.result for case in self.cases))

    @cached_property
    def operands(self) -> list[Array]:
        """Every pair of corners; a third operand goes through them too."""
        index = np.arange(COUNT)
        places = (index & 15, index >> 4, (7 * index + (index >> 4)) & 15)
        return [corners(elem)[places[at]] for at, elem in enumerate(self.sources)]

    def numpy(self) -> list[Array]:
        """By the rows' own meaning; of those that give both halves, the upper one."""
        with np.errstate(all="ignore"):
            made = [compute(row.name, self.operands, result, attrs) for row, result, attrs in self.cases]
        return [np.asarray(x[1] if isinstance(x, tuple) else x) for x in made]

    def text(self) -> str:
        """The kernel in tile IR."""
        lines = [f"%r = tt.make_range {{start = 0 : i32, end = {COUNT} : i32}} : {_tile('i32')}"]
        for i, elem in enumerate(self.sources):
            lines += [
                f"%s{i} = tt.splat %p{i} : !tt.ptr<{elem}> -> {_pointers(elem)}",
                f"%q{i} = tt.addptr %s{i}, %r : {_pointers(elem)}, {_tile('i32')}",
                f"%x{i} = tt.load %q{i} : {_pointers(elem)}",
            ]
        lines += [f"%a{e} = tt.splat %o{e} : !tt.ptr<{e}> -> {_pointers(e)}" for e in self.results]
        for k, case in enumerate(self.cases):
            elem = case.result
            lines += [
                self._line(k, case),
                f"%c{k} = arith.constant dense<{COUNT * self._place(k)}> : {_tile('i32')}",
                f"%d{k} = arith.addi %r, %c{k} : {_tile('i32')}",
                f"%t{k} = tt.addptr %a{elem}, %d{k} : {_pointers(elem)}, {_tile('i32')}",
                f"tt.store %t{k}, %v{k} : {_pointers(elem)}",
            ]
        given = [f"%p{i}: !tt.ptr<{e}>" for i, e in enumerate(self.sources)]
        given += [f"%o{e}: !tt.ptr<{e}>" for e in self.results]
        body = "\n".join(lines)
        return f"module {{\ntt.func public @rows({', '.join(given)}) {{\n{body}\ntt.return\n}}\n}}\n"

    def _place(self, k: int) -> int:
        """How many results of its type come before one."""
        return sum(case.result == self.cases[k].result for case in self.cases[:k])

    def _line(self, k: int, case: Case) -> str:
        row, source, result = case.row, _tile(self.sources[0]), _tile(case.result)
        start = f"%v{k} = {row.name}"
        given = ", ".join(f"%x{i}" for i in range(len(self.sources)))
        if row.name == "arith.select":
            return f"{start} {given} : {source}, {result}"
        if row.name in ("arith.cmpi", "arith.cmpf"):
            return f"{start} {case.attrs['predicate']}, {given} : {source}"
        if row.name == "tt.clampf":
            return f"{start} {given}, propagateNan = {'all' if case.attrs['propagateNan'] else 'none'} : {result}"
        if row.name == "tt.fp_to_fp":
            rounding = ", rounding = rtne" if ELEMENTS[case.result].bits < ELEMENTS[self.sources[0]].bits else ""
            return f"{start} {given}{rounding} : {source} -> {result}"
        if row.kind.how == "halves":
            return f"%low{k}, {start} {given} : {source}"
        if row.kind.how == "same":
            return f"{start} {given} : {result}"
        return f"{start} {given} : {source} {'->' if row.name[:3] == 'tt.' else 'to'} {result}"

    def run(self, target: str) -> list[Array]:
        """Compiled for a target and run: on the CPU, in the simulator, or its PTX by the interpreter."""
        counts = Counter(case.result for case in self.cases)
        outs = {e: np.zeros(COUNT * counts[e], DTYPES[e]) for e in self.results}
        arrays = [*(x.copy() for x in self.operands), *outs.values()]
        source = IRSource(self.text(), path=f"{self.name}.ttir")
        options = {"num_warps": 1}
        if target == "cpu":
            weft.compile(source)[(1,)](*arrays)
        elif target.startswith("sim:"):
            program = gpu.lane_program(source, target, options)
            run(program, 1, dict(zip([p.name for p in program.parameters], arrays, strict=True)))
        else:
            with without_assembler(), _everything_inlined():
                text = Program.parse(weft.compile(source, target, options).asm["ptx"])
            memory = Global()
            given = parameters(text, [memory.add(x) for x in arrays])
            ptx.control.run(text, (1,), memory, given, 16, False)
        found = {e: list(out.reshape(-1, COUNT)) for e, out in outs.items()}
        return [found[case.result][self._place(k)] for k, case in enumerate(self.cases)]


def _tile(elem: str) -> str:
    return f"tensor<{COUNT}x{elem}>"


def _pointers(elem: str) -> str:
    return f"tensor<{COUNT}x!tt.ptr<{elem}>>"


def _everything_inlined() -> Any:
    """The interpreter knows no calls; functions that are kept out of line are written in place."""
    assert APPROXIMATIONS  # is loaded, so that they are in the table
    short = {key: replace(found, long=False) for key, found in registry._table.items()}
    return mock.patch.dict(registry._table, short)
