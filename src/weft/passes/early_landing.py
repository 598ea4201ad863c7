"""Whether a loop of products waits for the copies of the next iteration before it begins those of a later one.

    late                                         early
    wait for copies of i; barrier
    begin products of i                          begin products of i
    wait for products of i - 1; barrier          wait for products of i - 1, and for copies of i + 1; barrier
    begin copies of i + stages - 1               begin copies of i + stages - 1

Waiting early saves a barrier in each iteration, but copies have only `stages - 2` iterations to arrive, not `stages -
1`. An iteration of all blocks of a multiprocessor takes at least as long as L2 needs for their copies, plus the time in
which the warps issue their instructions:

    blocks * (bytes / Machine.cached_bytes + instructions * warps / Machine.schedulers)

of 64 x 64 x 32 in 16 bits, 6 blocks of 4 warps: 6 * (8192 / 64 + 70) = 1188 cycles, and 1183 on an H200. While all
multiprocessors load, copies take `Machine.copy_latency`. So the loop waits early if `stages - 2` iterations take
longer. On an H200, with four stages, products of 64 x 64 x 32 take 426 us instead of 446, and of 128 x 128 x 32 (two
blocks) 236 instead of 227; with three, of 64 x 64 x 32 (eight blocks) 400 instead of 452, and of 128 x 128 x 32 392
instead of 250. The number of blocks follows from their shared memory, which is known, and their registers, which are
estimated.
"""

from __future__ import annotations

from weft.machines import Machine

COPY_BYTES = 16
INSTRUCTIONS, OF_A_COPY = 50, 5
"""Instructions of an iteration, and those for one copy of a thread, as this compiler writes them for every machine."""
REGISTERS, REGISTERS_OF_A_COPY = 16, 4
"""Registers of a thread besides results of products, and those for one copy (two addresses)."""


def warps_by_registers(machine: Machine, bytes: int, warps: int, words: int) -> int:
    """How many warps of a loop of products a multiprocessor has registers for, as far as can be said before they are
    assigned: blocks of so many warps copy so many bytes an iteration, and threads have so many words of results."""
    threads = machine.threads(warps)
    registers = words + REGISTERS + REGISTERS_OF_A_COPY * _copies(bytes, threads)
    return machine.blocks_at_a_time(threads, 0, registers) * warps


def lands_early(machine: Machine, stages: int, bytes: int, warps: int, at_a_time: int) -> bool:
    """Whether copies of so many bytes an iteration are awaited early, in a loop of that many stages; a multiprocessor
    runs `at_a_time` warps, of blocks of so many warps."""
    instructions = INSTRUCTIONS + OF_A_COPY * _copies(bytes, machine.threads(warps))
    cycles = at_a_time / warps * bytes / machine.cached_bytes + at_a_time * instructions / machine.schedulers
    return (stages - 2) * cycles > machine.copy_latency


def _copies(bytes: int, threads: int) -> int:
    """The copies of a thread."""
    return -(-bytes // (COPY_BYTES * threads))
