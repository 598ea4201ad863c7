"""How many blocks a multiprocessor runs at a time, what is used up first, and what would let one more in."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from weft.base.remarks import Pipelined
from weft.ir.lane import LaneProgram
from weft.machines import Machine

from .record import Occupancy

__all__ = ["occupancy_of"]

LEAST_STAGES = 2


def occupancy_of(
    program: LaneProgram,
    grid: tuple[int, int, int],
    registers: int | None,
    spills: int | None,
    pipelined: Sequence[Pipelined] = (),
) -> Occupancy:
    """The occupancy of a program; without registers, as if a thread had as many as it needs. `pipelined` are its loops
    with stages."""
    machine, threads, shared = program.machine, program.machine.threads(program.warps), program.shared_bytes
    by = _blocks_by(machine, threads, shared, registers)
    if program.most_blocks:
        by["compiler"] = program.most_blocks
    limit = min(by, key=lambda name: by[name])
    blocks = max(1, by[limit])
    programs = prod(grid) * program.blocks
    at_a_time = blocks * machine.multiprocessors
    is_full = blocks * threads >= machine.most_threads
    step = "" if is_full else _next_step(limit, machine, threads, blocks, shared, pipelined)
    room, of_grid = "", 0
    if programs <= machine.multiprocessors * (blocks - 1):
        room, of_grid = limit, ceil(programs / machine.multiprocessors)
        limit, step = "grid", ""
    most = machine.most_threads // machine.lanes
    return Occupancy(
        program.warps, shared, registers, spills, blocks, limit, step, most, machine.multiprocessors,
        programs / at_a_time, room, of_grid,
    )  # fmt: skip


def _blocks_by(machine: Machine, threads: int, shared: int, registers: int | None) -> dict[str, int]:
    """Blocks that there is room for, by what they take."""
    by = {"threads": machine.most_threads // threads, "blocks": machine.most_blocks}
    if shared:
        by["shared memory"] = (machine.shared_bytes + machine.reserved_bytes) // (shared + machine.reserved_bytes)
    if registers:
        by["registers"] = machine.registers // (machine.registers_taken(registers) * threads)
    return by


def _fewer_stages(pipelined: Sequence[Pipelined], much: int) -> int:
    """The stages of the loop with the largest buffers that leave so many bytes to another block; 0 where none do."""
    largest = max(pipelined, key=lambda r: r.shared_bytes, default=None)
    if largest is None or largest.stages <= LEAST_STAGES:
        return 0
    each = largest.shared_bytes / largest.stages
    stages = int(largest.stages - ceil(much / each)) if each else 0
    return stages if stages >= LEAST_STAGES else 0


def _next_step(
    limit: str, machine: Machine, threads: int, blocks: int, shared: int, pipelined: Sequence[Pipelined]
) -> str:
    if limit == "registers":
        room = machine.registers // ((blocks + 1) * threads) // machine.register_step * machine.register_step
        return f"{room} registers of a thread, or fewer" if room >= 16 else ""
    if limit == "shared memory":
        room = (machine.shared_bytes + machine.reserved_bytes) // (blocks + 1) - machine.reserved_bytes
        stages = f" (num_stages={fewer})" if (fewer := _fewer_stages(pipelined, shared - room)) else ""
        return f"{room:,} bytes of shared memory, or fewer{stages}" if room > 0 else ""
    if limit == "threads" and blocks < machine.most_blocks:
        return f"blocks of {machine.most_threads // (blocks + 1) // machine.lanes} warps, or fewer"
    return ""
