"""Breakpoints: a launch stops at a line of the kernel, and every variable is there as a NumPy array.

    with weft.sim.debug(line=12) as stops:
        kernel[grid](x, out, n, BLOCK=128)
    stops[0]["mask"]                              # the tile that the kernel calls `mask`, as program (0, 0, 0) has it

A tile is put together from the registers of all threads of the block, by its layout. What means nothing (an element
that a masked load left out, a register nobody wrote, warps that took another branch) is masked: a
numpy.ma.MaskedArray.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.base import load
from weft.ir.lane import Block, LaneOp, LaneProgram, Variable
from weft.layouts import LinearLayout, with_gaps

from .machine import Context
from .values import DTYPES, Array, full

Program = tuple[int, int, int]


class Stop(Mapping[str, Any]):
    """One stop: a mapping from the kernel's names to their values, as they were before the line.

    file, line     where
    program        of which program of the grid
    visit          how many stops of this program at this line there were before

    >>> x = np.ones(32, np.float32)
    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 32)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> with weft.sim.debug("tl.store(x + i") as stops:
    ...     made = double[(1,)](x, target="sim:cuda:80")
    >>> stops[0].program
    (0, 0, 0)
    """

    def __init__(
        self,
        place: tuple[str, int],
        program: Program,
        visit: int,
        values: Mapping[str, Any],
        layouts: Mapping[str, tuple[LinearLayout, int, Sequence[Sequence[int]]]],
    ) -> None:
        (self.file, self.line), self.program, self.visit = place, program, visit
        self._values, self._layouts = dict(values), dict(layouts)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            names = ", ".join(self._values) or "none"
            raise KeyError(f"no variable {name!r} at {self.file}:{self.line}; there are: {names}") from None

    def layout(self, name: str) -> Any:
        """The layout of a tile or buffer, with what shows it on the layout page; a `weft.view.LayoutLink`.

        >>> x = np.ones(32, np.float32)
        >>> @weft.jit
        ... def double(x):
        ...     i = tl.arange(0, 32)
        ...     tl.store(x + i, tl.load(x + i) * 2)
        >>> with weft.sim.debug("tl.store(x + i") as stops:
        ...     made = double[(1,)](x, target="sim:cuda:80")
        >>> stops[0].layout("i").linear.bases["lane"]
        ((1,), (2,), (4,), (8,), (16,))
        """
        self[name]
        if name not in self._layouts:
            raise KeyError(f"{name} is a scalar, and has no layout")
        layout, bits, pads = self._layouts[name]
        return load("weft.view").link_to(layout, tuple(layout.out_dims.values()), bits, name, pads)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        rows = [f"{self.file}:{self.line}, program {self.program}, visit {self.visit}"]
        width = max(map(len, self._values), default=0)
        for name, value in self._values.items():
            shape = f"{value.dtype}{list(value.shape)} " if isinstance(value, np.ndarray) else ""
            with np.printoptions(threshold=8, edgeitems=2):
                shown = str(value).split("\n")
            rows.append(f"  {name:<{width}}  {shape}{shown[0]}{' ...' if len(shown) > 1 else ''}")
        return "\n".join(rows)


class Stops(list[Stop]):
    """The stops of the launches inside of a `with debug(...)`, in the order in which they came.

    >>> x = np.ones(32, np.float32)
    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 32)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> with weft.sim.debug("tl.store(x + i") as stops:
    ...     made = double[(1,)](x, target="sim:cuda:80")
    >>> len(stops)
    1
    """


@dataclass
class Watch:
    """What to stop at: a line (of a file, where several have it), of one program or of all."""

    file: str | None
    line: int | None
    text: str
    program: Program | None
    call: Callable[[Stop], Any] | None
    stops: Stops

    def wants(self, file: str, line: int) -> bool:
        """Whether a place is one to stop at."""
        if self.line is not None and line != self.line:
            return False
        if self.text and self.text not in linecache.getline(file, line):
            return False
        return self.file is None or file == self.file or file.endswith("/" + self.file)


_watch: Watch | None = None


def watching() -> Watch | None:
    """What launches stop at now."""
    return _watch


@contextmanager
def debug(
    line: int | str | None = None,
    *,
    program: Program | None = (0, 0, 0),
    call: Callable[[Stop], Any] | None = None,
) -> Iterator[Stops]:
    """Stop launches inside a `with` each time they reach a line, and look at all variables.

    `line` is a number in the kernel's file, "file.py:12", or text of the line; None is every line. `program` is the
    one to stop, None is all of them. `call` is called with each Stop (it may print, or start a debugger; it cannot
    change values); the `with` returns the list of all stops.

    >>> x = np.ones(32, np.float32)
    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 32)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> with weft.sim.debug("tl.store(x + i") as stops:
    ...     made = double[(1,)](x, target="sim:cuda:80")
    >>> stops[0]["i"][:4]
    array([0, 1, 2, 3], dtype=int32)
    """
    global _watch
    file, text = None, ""
    if isinstance(line, str):
        name, _, number = line.rpartition(":")
        if name and number.isdigit():
            file, line = name, int(number)
        else:
            text, line = line, None
    before, stops = _watch, Stops()
    _watch = Watch(file, line, text, program, call, stops)
    try:
        yield stops
    finally:
        _watch = before


class Names:
    """The kernel's variables while a launch is watched: which value each name has, in each context."""

    def __init__(self, program: LaneProgram, watch: Watch) -> None:
        self.watch = watch
        self.of_value: dict[Any, list[Variable]] = {}
        for variable in program.variables:
            self.of_value.setdefault(variable.value, []).append(variable)
        self.main = next((op.span.file for op in program.body.walk() if op.span is not None), "")
        self.visits: dict[tuple[Program, str, int], int] = {}

    def enter(self, context: Context, block: Block) -> None:
        """The arguments of a region have values."""
        context.place = None
        for value in block.arguments:
            for variable in self.of_value.get(value, ()):
                context.env.names[variable.name] = variable

    def before(self, context: Context, op: LaneOp) -> None:
        """Stop, if the operation is the first of a line that is watched."""
        if op.span is None or op.name == "return":
            return
        place = (op.span.file, op.span.line)
        if place == context.place:
            return
        context.place = place
        if self.watch.wants(*place) and (self.watch.file is not None or place[0] == self.main):
            self._stop(context, place)

    def after(self, context: Context, op: LaneOp) -> None:
        """Results have values."""
        for value in op.results:
            for variable in self.of_value.get(value, ()):
                context.env.names.pop(variable.name, None)  # names stand in the order of their last assignment
                context.env.names[variable.name] = variable

    def _stop(self, context: Context, place: tuple[str, int]) -> None:
        for block, rows in context.by_block():
            program = context.batch.index_of(block)
            if self.watch.program is not None and program != self.watch.program:
                continue
            values = {name: value_of(context, variable, rows) for name, variable in context.env.names.items()}
            visit = self.visits.get((program, *place), 0)
            self.visits[program, *place] = visit + 1
            layouts = {
                name: (variable.layout, 8 * values[name].dtype.itemsize, variable.gaps)
                for name, variable in context.env.names.items()
                if variable.layout is not None
            }
            stop = Stop(place, program, visit, values, layouts)
            self.watch.stops.append(stop)
            if self.watch.call is not None:
                self.watch.call(stop)


def value_of(context: Context, variable: Variable, rows: Array) -> Any:
    """A variable as one program has it: an array of the tile's shape, or a number."""
    if variable.memory:
        return _buffer(context, variable, rows)
    fragment = context.env[variable.value]
    lanes, count = context.batch.lanes, context.count
    data = full(fragment.data, count, lanes)[rows]
    undefined = None if fragment.undefined is None else full(fragment.undefined, count, lanes)[rows]
    if variable.layout is None:
        if undefined is None:
            return data[0, 0, 0]
        defined = data[undefined == 0]
        return defined[0] if len(defined) else np.ma.masked
    warps = context.warps[rows] % context.batch.program.warps
    return assembled(variable.layout, data, undefined, warps)


def _buffer(context: Context, variable: Variable, rows: Array) -> Any:
    """A buffer in shared memory as it is now; what was never written is masked."""
    layout, batch = variable.layout, context.batch
    assert layout is not None
    dtype = DTYPES[variable.memory]
    base = int(full(context.env[variable.value].data, context.count, batch.lanes)[rows[0], 0, 0])
    base += int(context.warps[rows[0]]) // batch.program.warps * batch.stride
    tile, size = tuple(layout.out_dims.values()), layout.in_dims["offset"]
    count = int(np.prod(variable.shape)) // int(np.prod(tile))
    start = with_gaps(np.arange(count * size), variable.gaps)[:, None]
    at = base + start * dtype.itemsize + np.arange(dtype.itemsize)
    data = np.ascontiguousarray(batch.shared[at]).view(np.uint8 if dtype == np.bool_ else dtype).reshape(count, size)
    is_known = (batch.state[at] == 1).all(axis=1).reshape(count, size)
    offset = np.arange(size)
    place = [_spread(layout.sublayout(layout.in_dims, [d]).in_columns("offset"), offset) for d in layout.out_dims]
    flat = np.ravel_multi_index(tuple(place), tile)
    values, missing = np.zeros((count, size), data.dtype), np.ones((count, size), np.bool_)
    values[:, flat], missing[:, flat] = data, ~is_known
    values, missing = values.reshape(variable.shape), missing.reshape(variable.shape)
    return np.ma.masked_array(values, missing) if missing.any() else values


def _spread(columns: Sequence[int], index: Array) -> Array:
    """The sum of the columns whose bits are set."""
    mixed = np.zeros(index.shape, np.int64)
    for i, column in enumerate(columns):
        mixed ^= (index >> i & 1) * column
    return mixed


def assembled(layout: LinearLayout, data: Array, undefined: Array | None, warps: Array) -> Array:
    """The tile from [warp, lane, register]; elements that nobody has, or that mean nothing, are masked.

    Of those who have an element one has to have it defined: the others may have left out to load it.
    """
    shape = tuple(layout.out_dims.values())
    index = [_coordinate(layout, dim, warps) for dim in layout.out_dims]
    tile = np.zeros(shape, data.dtype)
    missing = np.ones(shape, np.bool_)
    values = np.broadcast_to(data, index[0].shape)
    if undefined is not None:
        defined = np.broadcast_to(undefined == 0, index[0].shape)
        index, values = [x[defined] for x in index], values[defined]
    tile[tuple(index)] = values
    missing[tuple(index)] = False
    return np.ma.masked_array(tile, missing) if missing.any() else tile


def _coordinate(layout: LinearLayout, dim: str, warps: Array) -> Array:
    """The coordinate along one dimension that each place [warp, lane, register] holds."""
    part = layout.sublayout(layout.in_dims, [dim])
    register = _spread(part.in_columns("register"), np.arange(layout.in_dims["register"]))
    lane = _spread(part.in_columns("lane"), np.arange(layout.in_dims["lane"]))
    warp = _spread(part.in_columns("warp"), warps)
    return warp[:, None, None] ^ lane[None, :, None] ^ register[None, None, :]
