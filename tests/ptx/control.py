"""The order of things: blocks one after the other, and in a block the threads that stand furthest behind.

Threads with the least program counter go on together, so that those that a branch parted meet again where their ways
do. An instruction that a warp executes together (`.sync` with all lanes, `mma`, `ldmatrix`) waits until the warp's
other threads are there; a barrier, for as many threads as it says. If all wait and none can go on, that is a `Fault`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import exchange, matrices, memory
from .parsing import Program
from .spaces import Fault, Global, Unknown
from .state import MEANINGS, WARP, Array, PTXError, State, Statement

LONGEST = 400_000
"""Steps after which a block is thought never to end."""
RUNS, MEETS = -1, -2
"""A thread goes on; or waits for the rest of its warp. Other numbers are the barrier that it waits at."""
TOGETHER = {"shfl", "vote", "match", "redux", "elect", "ldmatrix", "stmatrix", "mma"}

__all__ = ["Block", "run"]

assert all((exchange, matrices, memory))  # they fill the table


def run(
    program: Program,
    grid: Sequence[int],
    arrays: Global,
    parameters: Array,
    shared: int,
    apart: bool = False,
) -> None:
    """Every block of a grid: `parameters` are the bytes of the parameter space, `shared` how many bytes a block has.

    With `apart`, one warp goes on until it waits, then the next one: where a barrier is missing, they do not meet by
    chance. Raises Fault and Unknown.
    """
    x, y, z = (*grid, 1, 1)[:3]
    tables = {table.name: arrays.add(table.bytes()) for table in program.tables}
    for number in range(x * y * z):
        block = (number % x, number // x % y, number // (x * y))
        state = Block(program, arrays, parameters, shared, block, (x, y, z))
        state.symbols |= tables
        with np.errstate(all="ignore"):
            state.run(apart)


class Block(State):
    """A block of threads that runs a program."""

    def run(self, apart: bool = False) -> None:
        """To the end of all threads; see `run`."""
        self.at: Array = np.zeros(self.threads, np.int64)
        self.live: Array = np.ones(self.threads, bool)
        self.waits: Array = np.full(self.threads, RUNS)
        self.wanted: dict[int, int] = {}
        steps = 0
        while self.live.any():
            running = self.live & (self.waits == RUNS)
            if not running.any():
                self._release()
                continue
            if apart:
                running &= np.arange(self.threads) // WARP == int(np.flatnonzero(running)[0]) // WARP
            here = int(self.at[running].min())
            group = running & (self.at == here)
            alone = not (running & ~group).any()
            while self.step(here, group):
                here += 1
                steps += 1
                if steps > LONGEST:
                    raise Fault(f"{LONGEST} steps of block, and no end")
                if not alone:
                    break

    def step(self, here: int, group: Array) -> bool:
        """One instruction of threads that all stand at it. Returns whether they all go on with the next."""
        if here >= len(self.program.instructions):
            self.live[group] = False
            return False
        i = self.program.instructions[here]
        base = i.name[0]
        taken = group if i.guard is None else group & self.read(i.guard, "pred")
        self.at[group] = here + 1
        if base == "bra":
            self.at[taken] = self.program.labels[i.operands[0].name]
            return False
        if base in ("ret", "exit"):
            self.live[taken] = False
            return False
        if base in ("bar", "barrier") and "warp" not in i.name:
            self._barrier(i, taken)
            return False
        if i.guard is None and (base in TOGETHER or base == "bar") and not self._met(here, taken):
            return False
        if i.guard is None or taken.any():
            self._execute(i, taken)
        return True

    def _execute(self, i: Statement, taken: Array) -> None:
        if taken is not self.active:
            self.active, self.whole = taken, bool(taken.all())
        try:
            MEANINGS.get(i.name[0], State.compute)(self, i)
        except PTXError as error:
            raise Unknown(f"{error} in {i}") from error
        except (Fault, Unknown) as error:
            error.add_note(f"in: {i}")
            raise

    def _met(self, here: int, group: Array) -> bool:
        """Whether each warp of the group is whole; if not, what there is waits, and is whole when the rest comes."""
        there = group | (self.live & (self.waits == MEETS) & (self.at == here))
        warps = there.reshape(-1, WARP)
        whole = np.repeat(warps.all(1), WARP)
        if (there == group).all() and whole[group].all():
            return True
        self.waits[there] = np.where(whole[there], RUNS, MEETS)
        self.at[there] = here
        return False

    def _barrier(self, i: Statement, taken: Array) -> None:
        """Of the block, or of so many threads ("Parallel Synchronization and Communication Instructions: bar")."""
        if "sync" not in i.name:
            raise Unknown(str(i))
        if taken.any():
            first = int(np.flatnonzero(taken)[0])
            number = int(self.full(i.operands[0], "b32")[first])
            self.wanted[number] = int(self.full(i.operands[1], "b32")[first]) if len(i.operands) > 1 else 0
            self.waits[taken] = number

    def _release(self) -> None:
        """All wait: the threads of a barrier that has enough of them go on."""
        for number in np.unique(self.waits[self.live]):
            there = self.live & (self.waits == number)
            wanted = self.wanted.get(int(number), 0) or int(self.live.sum())
            if number != MEETS and there.sum() >= wanted:
                self.waits[there] = RUNS
                return
        raise Fault(f"no thread can go on: they wait at {sorted({int(n) for n in self.waits[self.live]})}")
