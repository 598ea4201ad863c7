"""Launches done and recorded as plain data: kernels as text of tile IR, arguments, and the memory that they name.

    with Recording("cuda:90", memory=True) as recording:
        main()                                # on the CPU; kernels in Gluon in the simulator
    recording.launches[0].text                # what `weft.compile` takes, anywhere

Of autotuned kernels the first configuration is taken, as nothing is measured.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from weft import compiler
from weft.base import LaunchError

from . import compiling
from .arrays import array_facts, is_array
from .binder import asked_grid, grid_of
from .config import Config
from .descriptor import TensorDescriptor
from .launch import runtime_leaves
from .specialize import leaf_at, signature_of
from .tensors import like
from .views import numpy_view
from .watching import SIMULATED, Watched

__all__ = ["Recorded", "Recording", "span_of_view", "values_of"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Recorded:
    """A launch as plain data.

    A value is {"value": 3}, {"array": 0, "offset": 16, "shape": ..., "strides": ..., "dtype": "float32"} for an array
    in a block of memory, {"like": shape, "dtype": ...} where memory is not kept, or {"descriptor": {...}, ...}.
    """

    name: str
    place: tuple[str, int]
    """File and line of the kernel."""
    text: str
    """Tile IR, of a Gluon kernel layout IR, with places."""
    options: Mapping[str, Any]
    grid: tuple[int, int, int]
    values: Sequence[Mapping[str, Any]]
    arguments: Mapping[str, str]
    """For people: all arguments by name, constants included."""
    addresses: Sequence[int] = ()
    """Where each block of memory was."""
    memory: Sequence[Bytes] = field(default=(), repr=False)
    """What it held before the launch."""

    def to_dict(self) -> dict[str, Any]:
        """All but the memory, for JSON."""
        return {name: value for name, value in vars(self).items() if name != "memory"}


class Recording(Watched):
    """A `with` in which launches are done and noted in `launches`.

    `memory` says whether what they read is kept; `told` is called with each launch before it is done.
    """

    def __init__(self, target: str, memory: bool, told: Callable[[Recorded], None] | None = None) -> None:
        super().__init__("cpu")
        self.told = told
        self.simulated = f"{SIMULATED}{target.removeprefix(SIMULATED)}"
        self.memory = memory
        self.launches: list[Recorded] = []

    def __enter__(self) -> Self:
        super().__enter__()
        self._chooser, compiling.chooser = compiling.chooser, self._first
        return self

    def __exit__(self, *error: Any) -> None:
        compiling.chooser = self._chooser
        super().__exit__(*error)

    @staticmethod
    def _first(tuner: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Config:
        first: Config = tuner.configs[0]
        return first

    def note(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kwargs = {name: value for name, value in kwargs.items() if name != "target" or name in kernel.arg_names}
        watcher, compiling.watcher = compiling.watcher, None
        try:
            recorded = self._recorded(kernel, grid, args, kwargs)
            self.launches.append(recorded)
            if self.told is not None:
                self.told(recorded)
            if kernel.is_gluon():
                compiling.simulator()(kernel, self.simulated, grid, *args, **kwargs)
            else:
                kernel._launch_elsewhere("cpu", grid, *args, **kwargs)
        finally:
            compiling.watcher = watcher

    def _recorded(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recorded:
        bound, given = kernel._bind(*args, **kwargs)
        options = kernel._options(given, bound)
        names = kernel.arg_names
        with compiling.target(self.simulated):
            specialization = kernel._specialization(bound, self.simulated)
            signature, constants, attributes = signature_of(names, specialization, list(bound))
            source = compiler.ASTSource(kernel, signature, constants, attributes)
            text = compiler.source_text(source, self.simulated, options)
        named = dict(zip(names, bound, strict=True))
        sizes = grid_of(asked_grid(grid, named) if callable(grid) else grid)
        leaves = [leaf_at(bound, path) for path, _ in runtime_leaves(list(signature.values()))]
        blocks = _blocks([v.base if hasattr(v, "block_shape") else v for v in leaves]) if self.memory else []
        values = [_described(value, blocks if self.memory else None) for value in leaves]
        plain = {name: value for name, value in options.items() if isinstance(value, (bool, int, float, str))}
        memory = [_bytes_of(*block) for block in blocks]
        place = (kernel.file_name, kernel.starting_line_number)
        told = {name: _told(value) for name, value in named.items()}
        addresses = [low for low, _ in blocks]
        return Recorded(kernel.__name__, place, text, plain, sizes, values, told, addresses, memory)


def _blocks(values: Sequence[Any]) -> list[tuple[int, int]]:
    """Where the arrays among the values are, those that overlap as one: (first byte, end)."""
    spans = []
    for value in values:
        facts = array_facts(value) if is_array(value) else None
        if facts is not None and facts.span[1] > facts.span[0]:
            spans.append((facts.address + facts.span[0], facts.address + facts.span[1]))
    blocks: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if blocks and low < blocks[-1][1]:
            blocks[-1] = blocks[-1][0], max(high, blocks[-1][1])
        else:
            blocks.append((low, high))
    return blocks


def _bytes_of(low: int, high: int) -> Bytes:
    return np.frombuffer(ctypes.string_at(low, high - low), np.uint8)


def _described(value: Any, blocks: Sequence[tuple[int, int]] | None) -> dict[str, Any]:
    if hasattr(value, "block_shape") and hasattr(value, "base"):
        if getattr(value, "images", False):
            raise LaunchError("a descriptor of images cannot be recorded")
        facts = {name: list(getattr(value, name)) for name in ("shape", "strides", "block_shape")}
        return {"descriptor": _described(value.base, blocks), "padding": value.padding, **facts}
    if not is_array(value):
        return {"value": value.item() if isinstance(value, np.generic) else value}
    view = numpy_view(value, "of a launch")
    if blocks is None or not view.size:
        return {"like": list(view.shape), "dtype": view.dtype.name}
    low, _ = span_of_view(view)
    at = next(i for i, block in enumerate(blocks) if block[0] <= low < block[1])
    offset = view.ctypes.data - blocks[at][0]
    where = {"array": at, "offset": offset, "shape": list(view.shape), "strides": list(view.strides)}
    return {**where, "dtype": view.dtype.name}


def span_of_view(view: np.ndarray[Any, Any]) -> tuple[int, int]:
    """The first byte of an array that is not empty, and the end of its last."""
    reach = [(size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True)]
    begin = int(view.ctypes.data)
    return begin + sum(min(0, r) for r in reach), begin + sum(max(0, r) for r in reach) + view.itemsize


def values_of(values: Sequence[Mapping[str, Any]], memory: Sequence[Bytes], dtypes: Mapping[str, Any]) -> list[Any]:
    """The values of a recorded launch, over blocks of memory; where there are none, stand-ins for arrays."""
    return [_value_of(value, memory, dtypes) for value in values]


def _value_of(value: Mapping[str, Any], memory: Sequence[Bytes], dtypes: Mapping[str, Any]) -> Any:
    if "descriptor" in value:
        base = _value_of(value["descriptor"], memory, dtypes)
        shape, strides, block = (list(value[name]) for name in ("shape", "strides", "block_shape"))
        return TensorDescriptor(base, shape, strides, block, str(value["padding"]))
    if "value" in value:
        return value["value"]
    dtype = dtypes[value["dtype"]]
    if "like" in value or not memory:
        return like(value.get("like", value.get("shape")), dtype)
    block = memory[value["array"]]
    return np.ndarray(value["shape"], dtype, block.data, value["offset"], value["strides"])


def _told(value: Any) -> str:
    """An argument for people."""
    value = getattr(value, "value", value)
    shape = getattr(value, "shape", None)
    if shape is None:
        return getattr(value, "__name__", repr(value))[:80]
    return f"{getattr(value, 'dtype', type(value).__name__)}[{'x'.join(map(str, shape))}]"
