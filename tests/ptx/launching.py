"""A Weft kernel through the interpreter: compiled for a GPU, and its PTX run on arrays of the host.

launch(kernel, (4,), {"x": x, "out": out, "n": 1000, "BLOCK": 256}, target="cuda:90")   # `out` holds the result
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from weft.backends.nvidia import occupancy
from weft.backends.nvidia.ptxas import MachineCode
from weft.base.grids import blocks_along_x
from weft.runtime import knobs
from weft.sim.nvidia.ptx_text import PTXError

from .control import run
from .parsing import Program
from .spaces import Array, Global, Unknown

TARGETS = ("cuda:80", "cuda:90")

__all__ = ["TARGETS", "launch", "parameters", "without_assembler"]


@contextmanager
def without_assembler() -> Iterator[None]:
    """What is compiled meanwhile has PTX, but no machine code, and stays out of the cache."""
    with knobs.cache.scope():
        knobs.cache.disabled = True
        with mock.patch.object(occupancy, "assemble_for", lambda *args, **limits: MachineCode(b"", "ptxas", 32)):
            yield


def launch(
    kernel: Any,
    grid: Sequence[int],
    values: Mapping[str, Any],
    target: str,
    owners: Sequence[Array] = (),
    apart: bool = False,
    **options: Any,
) -> None:
    """Run the kernel on arguments by name; arrays are changed in place.

    `owners` are arrays that the kernel reaches by addresses that it loads. `apart` is that of `run`. Raises Unknown
    where the PTX has what the interpreter has not, Fault where it does what PTX forbids.
    """
    with without_assembler():
        compiled = kernel.warmup(**values, grid=tuple(grid), target=target, **options)
    facts = compiled.metadata
    if facts.scratch_bytes or facts.num_ctas > 1:
        raise Unknown("scratch memory, or a cluster of blocks")
    try:
        program = Program.parse(compiled.asm["ptx"])
    except PTXError as error:
        raise Unknown(str(error)) from error
    memory = Global()
    for owner in owners:
        memory.add(owner)
    given = [_word(v, memory) for v in _passed(kernel, values)]
    if facts.programs_each > 1:  # as few blocks as may be
        x, y, z = (*grid, 1, 1)[:3]
        given, grid = [*given, x], (blocks_along_x((x, y, z), facts.programs_each, 1), y, z)
    run(program, grid, memory, parameters(program, given), max(16, facts.shared), apart)


def _passed(kernel: Any, values: Mapping[str, Any]) -> list[Any]:
    """The arguments that the kernel takes at run time: a one that is specialized is none."""
    result: list[Any] = []
    for parameter in kernel.params:
        value = values.get(parameter.name, parameter.default)
        if parameter.is_constexpr or value is None:
            continue
        if type(value) is int and value == 1 and not parameter.do_not_specialize and not parameter.annotation:
            continue
        result.append(value)
    return result


def _word(value: Any, memory: Global) -> int:
    """An argument as bits."""
    if isinstance(value, np.ndarray):
        return memory.add(value)
    if isinstance(value, bool | int | np.integer):
        return int(value)
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<f", value), "little")
    raise Unknown(f"an argument of type {type(value).__name__}")


def parameters(program: Program, given: Sequence[int]) -> Array:
    """The bytes of the parameter space; addresses of scratch memory, which come last, are zero."""
    if len(given) > len(program.parameters):
        raise ValueError(f"{len(given)} arguments for {len(program.parameters)} parameters")
    last = program.parameters[-1] if program.parameters else None
    space = np.zeros(last.start + last.size if last else 0, np.uint8)
    for parameter, value in zip(program.parameters, given, strict=False):
        raw = (value % (1 << 8 * parameter.size)).to_bytes(parameter.size, "little")
        space[parameter.start : parameter.start + parameter.size] = np.frombuffer(raw, np.uint8)
    return space
