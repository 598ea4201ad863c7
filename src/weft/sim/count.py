"""The counter: what a program will do, read off it without running it.

It walks through the program as `run` does, but follows only what addresses, masks and loops are made of. Of global
memory it is known what arrays hold that were given and are only read, of shared memory what went in (remembered.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.ir.lane import LaneProgram

from .launch import grid_of, launch, scalar
from .machine import Launch
from .memory import GlobalMemory
from .options import Options
from .report import Report
from .sliced import Sliced

__all__ = ["count"]

APART = 1 << 40
"""What arrays are taken to be apart."""


def count(
    program: LaneProgram,
    grid: Sequence[int] | int,
    scalars: Mapping[str, int | float] | None = None,
    *,
    programs: Sequence[int] | None = None,
    steady: bool = False,
    report: Report | None = None,
    sliced: Sliced | None = None,
    data: Mapping[str, NDArray[np.uint8]] | None = None,
    suppose: bool | None = None,
    turns: int | None = None,
) -> Report:
    """Count what `run` would count, without memory: arrays are assumed to be apart, and aligned to their vectors.

    With `programs` only those of the grid with these numbers are counted, the first axis running fastest. With
    `steady` a few iterations of a loop stand for others that count alike (steady.py), and sectors that an access of a
    warp touches by any of its registers are counted once as well (`global_load_distinct`, `global_store_distinct`), and
    lines of the L1 cache, of 128 bytes, as if each access began with one (`global_load_lines`, `global_store_lines`),
    and bytes that bulk tensor copies move (`global_load_boxes`, `global_store_boxes`), and lines of the rows of their
    boxes (`global_load_lines_of_boxes`, `global_store_lines_of_boxes`).
    `report` is the one to count in, `sliced` the program taken apart, if it was before.
    `data` has the bytes of arrays that the program reads and does not write, as far as they are at hand: the indices,
    lengths and tables that addresses, loops and branches depend on. Conditions of branches that are not known all the
    same are taken to be as `suppose` says, and loops whose length is not known turn `turns` times,
    with which masks that are not known hold.
    Programs that go through loops more or less often than others should not be counted together with `steady`: their
    loops are then followed to the end.

    The report is `exact` if all addresses and masks follow from the program, the grid and `scalars`; otherwise bytes,
    sectors and wavefronts of some accesses are missing. Uncountable where a loop without `turns`, or a
    branch without `suppose`, depends on what is not known.

    >>> @weft.jit
    ... def copy(x, out, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(out + i, tl.load(x + i, i < n), i < n)
    >>> x = weft.like((1000,), "fp32")
    >>> program = copy.warmup(x, x, 1000, BLOCK=128, grid=(8,), target="sim:cuda:80").program
    >>> report = weft.sim.count(program, 8, {"n": 1000})
    >>> report["global_load_bytes"], report["global_load_sectors"], report.exact
    (4000, 125, True)
    """
    values_known = dict(scalars or {})
    values, places = {}, {}
    for number, p in enumerate(program.parameters):
        if p.elem == "ptr":
            values[p.name] = scalar("ptr", (number + 1) * APART)
            if data is not None and p.name in data:
                places[(number + 1) * APART] = data[p.name]
        else:
            values[p.name] = scalar(p.elem, values_known.get(p.name, 0))
            values[p.name].known = p.name in values_known
    options = Options(races=False, uninitialized=False, bounds=False)
    report = Report() if report is None else report
    parts = Sliced(program) if sliced is None else sliced
    counted = Launch(
        program, grid_of(grid), GlobalMemory.placed(places), values, options, report,
        counting=True, steady=steady, sliced=parts, patterns=parts.patterns, suppose=suppose, turns=turns,
    )  # fmt: skip
    return launch(counted, programs)
