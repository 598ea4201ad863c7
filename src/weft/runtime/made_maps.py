"""Tensor maps that a launch makes of several arguments: of a pointer, sizes and strides (base/made_tensors.py).

A map is kept by the values that it is made of, so that a launch with the same ones looks it up. Where there is none for
some values (a matrix without columns, say), the launch is one of the kernel compiled with `made_tensors=False`, whose
threads load through the pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.base import LaunchError
from weft.base.made_tensors import MadeTensor
from weft.ir.lane import Parameter

KEPT = 1024
"""Maps up to which all are kept. Launches whose arrays are new each time would else keep more and more of them."""


class NoTensor(LaunchError):
    """Arguments describe no tensor that there is a map for."""


class MadeMaps(dict[tuple[int, ...], bytes]):
    """The maps of one parameter, by the values that they are made of, in the order of `numbers`."""

    def __init__(self, encode: Callable[[tuple[int, ...]], tuple[Any, ...]], tensor: MadeTensor) -> None:
        super().__init__()
        self._encode, self._tensor = encode, tensor
        self.numbers = tensor.numbers

    def __missing__(self, values: tuple[int, ...]) -> bytes:
        try:
            made: bytes = self._encode(self._tensor.parts(dict(zip(self.numbers, values, strict=True))))[-1]
        except (ValueError, LaunchError) as why:
            raise NoTensor(str(why)) from None
        if len(self) >= KEPT:
            self.clear()
        self[values] = made
        return made


def made_maps(kernel: Any, map_maker: Callable[..., Callable[[Any], tuple[Any, ...]]]) -> list[MadeMaps]:
    """Those of a kernel; `map_maker` is that of the GPUs' vendor, as for the parts of a descriptor."""
    return [
        MadeMaps(map_maker(name, [(pointee, box, swizzle, (), 0)]), MadeTensor.of_plain(tensor))
        for name, pointee, box, swizzle, tensor in kernel.metadata.made_maps
    ]


def fire_with(
    source: str, names: Sequence[str], lookups: Sequence[str], spaces: dict[str, Any], instead: Callable[[], Any]
) -> Callable[..., None]:
    """A launch (x, y, z, *names) as `source` does it, with maps `m0`, `m1`, ... that are found by `lookups`; of the
    kernel that `instead` gives where there is no map."""
    found: list[Any] = []

    def fire_instead(*values: Any) -> None:
        if not found:
            found.append(instead())
        found[0](*values)

    parameters = "".join(f", {n}" for n in names)
    lines = [f"        m{i} = {lookup}" for i, lookup in enumerate(lookups)]
    text = f"def fire(x, y, z{parameters}):\n    try:\n" + "\n".join(lines)
    text += f"\n    except NoTensor:\n        return instead(x, y, z{parameters})\n    {source}\n"
    exec(text, {**spaces, "NoTensor": NoTensor, "instead": fire_instead}, spaces)
    fire: Callable[..., None] = spaces["fire"]
    return fire


@dataclass
class Described:
    """A tensor made of several arguments, as the simulator takes a descriptor."""

    base: Any
    further: int
    """By how many bytes it begins after the array."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]


def described(parameter: Parameter, values: Sequence[Any]) -> Described:
    """The tensor of a parameter that is a map, from the values of those that are none: arrays and numbers. NoTensor
    where there is none."""
    tensor = parameter.made
    assert tensor is not None
    base = values[tensor.base]
    address = int(base.__array_interface__["data"][0])
    numbers = {n: address if n == tensor.base else int(values[n]) for n in tensor.numbers}
    try:
        parts = tensor.parts(numbers)
    except ValueError as why:
        raise NoTensor(str(why)) from None
    rank = len(tensor.shape)
    return Described(base, parts[0] - address, parts[2 : 2 + rank], parts[2 + rank :], parameter.block)
