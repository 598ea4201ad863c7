"""Running a lane program over a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.base import LaunchError, progress, told
from weft.ir.lane import LaneOp, LaneProgram, Value
from weft.targets.table import instruction

from .between import Between, can_check
from .clusters import check_ends
from .control import start
from .debugger import Names, watching
from .errors import ScheduleError
from .machine import Batch, Launch
from .maps import SCRATCH, aligned, base_of
from .memory import GlobalMemory
from .options import Options, current_options
from .report import Report
from .values import DTYPES, Array, Fragment
from .vendor import meaning_of

ADDRESSES = ("ptr", "tensormap")


def run(
    program: LaneProgram,
    grid: Sequence[int] | int,
    arguments: Mapping[str, Any],
    options: Options | None = None,
) -> Report:
    """Run a program for every index of the grid; arrays among the arguments are its memory and change in place.

    The first SimulationError is raised, or with `Options(raise_first=False)` all are in the report's `errors`.

    >>> from weft.ir.lane import Block, Builder, LaneProgram, Parameter, Value
    >>> body = Block((Value("i64", 1),))
    >>> build = Builder(body)
    >>> place = build.op("arith.muli", [build.linear((0,), lane=(1, 2, 4, 8, 16)), build.constant("i32", 4)], "i32")
    >>> address = build.op("arith.addi", [body.arguments[0], build.op("arith.extsi", [place], "i64")], "i64")
    >>> x = build.load("global", address, "f32")
    >>> build.store("global", address, build.op("arith.addf", [x, x], "f32"))
    >>> data = np.arange(32, dtype=np.float32)
    >>> from weft.machines import DEFAULT
    >>> report = run(LaneProgram("double", DEFAULT, (Parameter("x", "ptr", "f32"),), body, warps=1), 1, {"x": data})
    >>> data[3], report["global_load_sectors"]
    (np.float32(6.0), 4)
    """
    options = options or current_options()
    single = options.schedules()
    if len(single) > 1:
        return _run_all(program, grid, arguments, single)
    return _run_once(program, grid_of(grid), arguments, options)


def _run_once(
    program: LaneProgram, shape: tuple[int, int, int], arguments: Mapping[str, Any], options: Options
) -> Report:
    arrays = {p.name: np.asarray(arguments[p.name]) for p in program.parameters if p.elem == "ptr"}
    described = {p.name: arguments[p.name] for p in program.parameters if p.elem == "tensormap"}
    arrays |= {base_of(name): np.asarray(d.base) for name, d in described.items()}
    arrays |= {name: aligned(128) for name in described}
    if program.scratch:
        arrays[SCRATCH] = aligned(program.scratch * int(np.prod(shape)) * program.blocks)
    memory, vendor = GlobalMemory(arrays, options.reached), meaning_of(program.machine)
    for p in program.parameters:
        if p.elem == "tensormap":
            begin = memory.addresses[base_of(p.name)] + getattr(described[p.name], "further", 0)
            arrays[p.name][:] = vendor.tensor_map(p, described[p.name], begin)
    values = {
        p.name: scalar(p.elem, memory.addresses[p.name] if p.elem in ADDRESSES else arguments[p.name])
        for p in program.parameters
    }
    global _last
    _last = Report(options.describe())
    watch = watching()
    names = Names(program, watch) if watch is not None else None
    with progress(f"simulating {program.name}, programs", int(np.prod(shape))) as told:
        between = Between(memory, program) if options.between_programs and can_check(program) else None
        return launch(Launch(program, shape, memory, values, options, _last, names, told=told, between=between))


def _arrays(arguments: Mapping[str, Any]) -> dict[str, Array]:
    """The memory of a launch, by parameter."""
    return {n: np.asarray(getattr(v, "base", v) if hasattr(v, "block_shape") else v) for n, v in arguments.items()}


def _run_all(
    program: LaneProgram, grid: Sequence[int] | int, arguments: Mapping[str, Any], schedules: Sequence[Options]
) -> Report:
    """Run every schedule from the same memory. ScheduleError where one leaves other results than the first."""
    arrays = {n: a for n, a in (_arrays(arguments) | dict(schedules[0].reached)).items() if a.ndim}
    before = {n: a.copy() for n, a in arrays.items()}
    first: dict[str, Array] = {}
    for options in schedules:
        for n, a in arrays.items():
            if a.flags.writeable:
                a[...] = before[n]
        report = _run_once(program, grid_of(grid), arguments, options)
        if not first:
            first = {n: a.copy() for n, a in arrays.items()}
            continue
        for n, a in arrays.items():
            _compare(n, first[n], a, schedules[0], options, report)
    return report


def _compare(name: str, first: Array, now: Array, base: Options, other: Options, report: Report) -> None:
    """Bit by bit."""
    bits = f"V{first.dtype.itemsize}"
    wrong = np.ascontiguousarray(first).view(bits) != np.ascontiguousarray(now).view(bits)
    if not wrong.any():
        return
    at = tuple(int(x[0]) for x in np.nonzero(wrong))
    index = at[0] if len(at) == 1 else at
    error = ScheduleError(f"`{name}[{index}]` is {first[at]} if {base.describe()}, and {now[at]} if {other.describe()}")
    report.errors.append(error)
    if other.raise_first:
        raise error


_last: Report | None = None


def last_run() -> Report:
    """The report of the last launch, even if it failed. LookupError if there was none.

    >>> x = np.ones(32, np.float32)
    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 32)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> made = double[(1,)](x, target="sim:cuda:80")
    >>> weft.sim.last_run()["global_load_bytes"]
    512
    """
    if _last is None:
        raise told(LookupError("nothing has been simulated yet"))
    return _last


def grid_of(grid: Sequence[int] | int) -> tuple[int, int, int]:
    """The sizes of a grid, three of them."""
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    if not 1 <= len(sizes) <= 3 or any(s < 0 for s in sizes):
        raise LaunchError(f"a grid has one to three sizes that are not negative, got {grid}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def scalar(elem: str, value: Any) -> Fragment:
    """A number as an argument of a program; integers wrap."""
    dtype = np.dtype(np.int64) if elem in ADDRESSES else DTYPES[elem]
    if dtype.kind == "i":
        bits = 8 * dtype.itemsize
        data = np.array(int(value) & ((1 << bits) - 1), f"u{dtype.itemsize}").view(dtype)
    else:
        with np.errstate(over="ignore"):  # a float that is too large becomes infinite
            data = np.asarray(value).astype(dtype)
    return Fragment(data.reshape(1, 1, 1))


def launch(run: Launch, programs: Sequence[int] | None = None) -> Report:
    """All blocks of the grid, as many at once as the options allow; or those of some programs, by number."""
    program = run.program
    _, y, z = run.grid
    blocks = np.arange(run.blocks_along_x * y * z * program.blocks)
    if programs is not None:
        blocks = blocks.reshape(-1, program.blocks)[list(programs)].reshape(-1)
    together, granule = _together(run), _granule(program)
    apart = _may_wait(program) and not run.counting  # who counts waits for nobody
    for first in range(0, len(blocks), together):
        run.told(first // program.blocks)
        numbers = blocks[first : first + together]
        if run.options.order == "backward":
            numbers = numbers[::-1].copy()
        batch = Batch(run, numbers, granule)
        batch.run(start, apart)
        batch.adds.finish(batch)
        check_ends(batch)
    return run.report


def _values(program: LaneProgram) -> list[Value]:
    return [v for op in program.body.walk() for v in op.results]


def _together(launch: Launch) -> int:
    """How many blocks run at once: as many as the options' bound on registers and on shared memory allows."""
    program = launch.program
    widest = max((v.count for v in _values(program)), default=1)
    if launch.counting:  # shared memory has no shadow
        each = max(program.warps * program.lanes * widest, program.shared_bytes)
    else:
        each = program.warps * max(program.lanes * widest, program.shared_bytes)
    return max(1, launch.options.together // (each * program.blocks)) * program.blocks


def _may_wait(program: LaneProgram) -> bool:
    """Whether blocks may wait for each other: in a loop that ends when something happens, by way of atomics."""
    names, vendor = {op.name for op in program.body.walk()}, meaning_of(program.machine)
    written = any(op.name == "assembly" and vendor.touches_memory(op) for op in program.body.walk())
    return "while" in names and (written or bool(names & {"atomic", "compare_and_swap"}))


def _width(op: LaneOp) -> int | None:
    """The bytes that each address of an access to shared memory gives."""
    if op.name == "copy_async":
        return int(op.attrs["bytes"])
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        return entry.width or None if entry.touches in ("shared", "barrier", "bulk") else None
    if op.attrs.get("space") not in ("shared", "cluster"):
        return None
    value = op.results[0] if op.name == "load" else op.operands[1]
    return DTYPES[value.elem].itemsize * int(op.attrs.get("vector", 1))


def _granule(program: LaneProgram) -> int:
    """The unit in which races are looked for: the smallest access to shared memory there is."""
    widths = [w for op in program.body.walk() if (w := _width(op)) is not None]
    return min(widths, default=16)
