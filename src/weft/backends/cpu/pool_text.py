"""Pieces of LLVM IR that work on the fields of a pool of workers, for `worker_code` and `job_code`."""

from __future__ import annotations

import itertools

from . import pool_layout as pool

SPIN_NS = 40_000
"""How long a worker that has nothing to do looks for more before it sleeps, and a caller for the end of its workers:
long enough to be awake still when the next launch follows at once, and not so long that others miss the core."""
SPINS = 16
"""Looks between two looks at the clock, each with a pause instruction (15 to 140 cycles)."""


class Text:
    """Pieces of LLVM IR that work on the fields of the pool; names of temporaries count up."""

    def __init__(self, machine: str, windows: bool) -> None:
        self._names = itertools.count()
        self.forever = ", i32 -1, i32 0" if windows else ""  # SleepConditionVariableSRW(cv, lock, INFINITE, 0)
        if machine in ("x86_64", "amd64", "i686", "x86"):
            self.pause, self.declare = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
        elif machine in ("aarch64", "arm64"):
            self.pause, self.declare = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
        else:
            self.pause, self.declare = 'call void asm sideeffect "", ""()', ""

    def call(self, fn: int, *operands: int | str, extra: str = "") -> str:
        """Call the system function whose address stands at offset `fn` of the pool, on places of it by their offset or
        by the name of a value."""
        n = next(self._names)
        lines = [f"%f{n}p = getelementptr i8, ptr %pool, i64 {fn}", f"%f{n} = load ptr, ptr %f{n}p"]
        for k, offset in enumerate(operands):
            lines.append(f"%o{n}_{k} = getelementptr i8, ptr %pool, i64 {offset}")
        arguments = ", ".join(f"ptr %o{n}_{k}" for k in range(len(operands)))
        lines.append(f"call i32 %f{n}({arguments}{extra})")
        return "\n  ".join(lines)

    def at(self, name: str, offset: int, atomic: str = "", kind: str = "i64") -> str:
        """%name = the word at an offset of the pool."""
        order = f" {atomic}, align 8" if atomic else ", align 8"
        return (
            f"%{name}.p = getelementptr i8, ptr %pool, i64 {offset}\n  "
            f"%{name} = load {'atomic ' if atomic else ''}{kind}, ptr %{name}.p{order}"
        )

    def put(self, offset: int, value: str, kind: str = "i64") -> str:
        """Store a value at an offset of the pool."""
        n = next(self._names)
        return f"%s{n} = getelementptr i8, ptr %pool, i64 {offset}\n  store {kind} {value}, ptr %s{n}, align 8"

    def lock(self) -> str:
        """Take the pool's lock."""
        return self.call(pool.LOCK_FN, pool.MUTEX)

    def unlock(self) -> str:
        """Give it back."""
        return self.call(pool.UNLOCK_FN, pool.MUTEX)

    def post(self, index: str) -> str:
        """%post = where the post of a worker is."""
        return (
            f"%line.k = add i64 {index}, 1\n  %line.o = mul i64 %line.k, {pool.LINE}\n  "
            f"%post.o = add i64 %line.o, {pool.LINES + pool.POST}\n  %post = getelementptr i8, ptr %pool, i64 %post.o"
        )

    def condition(self, index: str) -> str:
        """%condition.o = the offset of what a worker sleeps on."""
        return f"%condition.k = mul i64 {index}, {pool.LINE}\n  %condition.o = add i64 %condition.k, {pool.CONDITIONS}"

    def bit(self, index: str) -> str:
        """%word, %bit = where a worker's bit is among those awake."""
        return (
            f"%word.k = lshr i64 {index}, 6\n  %word.o = shl i64 %word.k, 3\n  "
            f"%word.a = add i64 %word.o, {pool.AWAKE}\n  "
            f"%word = getelementptr i8, ptr %pool, i64 %word.a\n  "
            f"%bit.k = and i64 {index}, 63\n  %bit = shl i64 1, %bit.k"
        )
