"""One block more at a time, where a few registers are in its way.

    code = assemble_for(ptx, "sm_90a", threads=256, shared=96 << 10)

ptxas takes the registers that it likes best for one block. With 130 of them instead of 128, half as many blocks of 256
threads run on a multiprocessor, and nobody computes while one waits for memory (a convolution on an H200: 0.75 of the
speed). So where at most a fifth of the registers is too much for one block more, ptxas is asked for that block, and
what comes out is taken unless it spills: a word or two outside of the loops is nothing, hundreds of bytes inside of
them cost more than blocks bring (0.37 of the speed); and so does a wgmma that is awaited before the next one is issued,
which ptxas does, and says, where it has too few registers.

Of a block that is alone, in a program without loops, more registers may be too much, and eight words out of them: rows
of 16,385 bf16 times a vector are 1.27 times as fast with two blocks of 512 threads, and 28 bytes of each on the stack.

Not asked for is what brings nothing: a block more where half of the warps that a multiprocessor can have are there, or
where two blocks are that multiply matrices, one of which computes while the other waits (0.91 of the speed with three,
of 168 registers instead of 184). Where only 3 % of the registers are in its way, a third is asked for: gradients of
attention with heads of 64 then take 6.95 ms instead of 7.72 by prediction, of 168 registers instead of 173.

Half of the warps are not enough where blocks of 512 threads wait at barriers, as for the sum of a row: three of them
instead of four compute while one waits: rows scaled to fp8 took 75 us on an H100 with as many blocks as there can be,
and 84 with one less. That has to come without spilled words. A layer norm of a sum of 4,096 columns, whose threads load
32 bytes and store 16, took 98 us with two words of each on the stack and four blocks, and 73 with three: the words of
all threads are 34 MB for memory to write and read, beside 201.

A program that was written to hold little (lower/held.py) says for how many blocks that was; where ptxas has too few
registers for them all the same, it has as many as it likes.

And where ptxas gives a thread few registers and keeps the rest in memory (32, and 7 KB, for exact products of float32),
it is asked for one block, for which it takes as many as there are; that is taken if it spills at most half as much.
Not asked for is what is hopeless: of a tile of 512 x 256 in 128 threads nearly all is on the stack either way, and
ptxas is over it for minutes.

A block of one warp in a loop that loads waits for memory again and again, and ptxas, to have as many blocks as there
may be, moves loads behind what could be done meanwhile. It is asked for one block; where that takes a few registers
more at most, all that an iteration loads is on its way before the iteration computes (a recurrence then waits once an
iteration, not twice).

Larger blocks are the same where a loop carries and loads more words than ptxas gives registers, so that it cannot have
all loads of an iteration on their way: a deviation of rows took 35 us on an H200 with 32 registers, two of four loads
at a time, and 25 us with 46. As many blocks are asked for as leave room for them, where half of the warps stay that a
multiprocessor can have, or four blocks of five.

ptxas writes several iterations of a loop one after the other whose end it knows, and as many loads go first as there
are registers; each of the others is waited for by itself. A Welford reduction of columns had 12 of 28 loads on their
way with 32 registers, and has 17 with 40.

So it is where a program without loops loads about 32 words: a transposition of tiles of 64 x 64 took 2.7 % longer with
38 registers, four of eight loads at a time, than with 48. With 64 words it is the other way about (2 % longer with all
on their way): memory is fastest when a thread asks for no more than 128 bytes at a time.
"""

from __future__ import annotations

import re

from weft.base import CompilerCrash, OutOfResources
from weft.machines import Machine, closest

from .loaded_words import held_in_an_iteration, held_without_loops, held_written_out
from .ptxas import MachineCode, assemble

NEAR = 0.8
"""The share of its registers that a thread has to do with for one block more."""
ALONE, LARGE = 0.6, 512
"""The same where a block of so many threads is alone, and its program has no loops."""
NEARLY = 0.97
"""The same where two blocks are that multiply: 168 registers instead of 173 at most."""
SPILLED_BYTES = 16
"""Of stores and loads together."""
SPILLED_ONCE = 64
"""The same where it is a second block, and each thread does them once: an RMS norm of 131,072 f32 columns by 16 warps
reached 0.90 of a copy with 32 bytes and two blocks, and 0.82 with one block and none (H200)."""
SPILLED_BY_TWO = 256
"""The same of a program that was written for two blocks: layer norm of rows of 16,385 is 1.33 times as fast with 120
bytes as alone without any, and with 970 half as fast."""
HOPELESS_FRAME = 8192
"""Eight times what all registers hold: with more on the stack, ptxas is over it for minutes. Of a stack of 7,200 bytes
with 32 registers, 1,432 are left with 255 (gradients of attention by two warps, of which little is loaded)."""
FEW_MORE = 1.25
"""Of registers of a warp alone in its block, where loads may come first."""
SPARE = 12
"""Registers for addresses and counters, beside what an iteration of a loop carries and loads."""
ADDRESSES = 8
"""Registers beside what a program without loops loads, with which ptxas has all loads on their way."""
ON_THE_WAY = range(25, 32 + 1)
"""Words that a thread asks for at a time: more are too many, and fewer have room in the 32 registers of all warps."""
ONE_WARP = 32
SERIALIZED = "instructions are serialized"
"""What ptxas says where products wait for each other."""
ASKED = re.compile(r"^\.minnctapersm \d+\n", re.MULTILINE)
"""What a program says that was written for several blocks (lower/held.py)."""
PRODUCTS = ("wgmma.mma_async", "mma.sync")


def one_more(
    machine: Machine,
    threads: int,
    shared: int,
    registers: int,
    multiplies: bool = False,
    straight: bool = False,
    waits: bool = False,
) -> int:
    """The number of blocks at a time to ask for; 0 where registers are not what limits it, or far too many.

    >>> from weft.machines import machine_of
    >>> hopper = machine_of("cuda:90")
    >>> one_more(hopper, 256, 96 << 10, 130), one_more(hopper, 256, 96 << 10, 200), one_more(hopper, 256, 96 << 10, 96)
    (2, 0, 0)
    >>> one_more(hopper, 128, 64 << 10, 184), one_more(hopper, 128, 64 << 10, 184, multiplies=True)
    (3, 0)
    >>> one_more(hopper, 128, 72 << 10, 169, multiplies=True)
    3
    >>> one_more(hopper, 512, 0, 99), one_more(hopper, 512, 0, 99, straight=True)
    (0, 2)
    >>> one_more(hopper, 512, 0, 37), one_more(hopper, 512, 0, 37, waits=True), one_more(hopper, 512, 0, 41, waits=True)
    (0, 4, 3)
    """
    now = machine.blocks_at_a_time(threads, shared, registers)
    wanted = now + 1
    if not now or wanted > machine.blocks_at_a_time(threads, shared):
        return 0
    if now * threads >= machine.enough_threads and not waits:
        return 0
    fits = machine.registers // (threads * wanted) // machine.register_step * machine.register_step
    share = NEARLY if multiplies and now > 1 else ALONE if straight and now == 1 else NEAR
    return wanted if fits >= share * registers else 0


def fewer(machine: Machine, threads: int, shared: int, registers: int, words: int) -> int:
    """The number of blocks at a time to ask for, so that a thread can hold so many words; 0 where it can, or too few.

    >>> from weft.machines import machine_of
    >>> hopper = machine_of("cuda:90")
    >>> fewer(hopper, 128, 32, 32, 33), fewer(hopper, 128, 32, 46, 33), fewer(hopper, 128, 4096, 96, 115)
    (10, 0, 4)
    >>> fewer(hopper, 128, 0, 128, 129)
    0
    """
    if registers >= words or words + SPARE > machine.thread_registers:
        return 0
    now = machine.blocks_at_a_time(threads, shared, registers)
    wanted = machine.blocks_at_a_time(threads, shared, words + SPARE)
    return wanted if wanted * threads >= machine.enough_threads or wanted >= NEAR * now else 0


def assemble_for(ptx: str, arch: str, *, threads: int, shared: int, maxnreg: int | None = None) -> MachineCode:
    """Machine code for blocks of so many threads and bytes of shared memory; raises as `assemble` does."""
    first = assemble(ptx, arch, maxnreg=maxnreg)
    if first.by != "ptxas" or maxnreg or "setmaxnreg" in ptx:
        return first
    machine = _machine(arch)
    if asked := ASKED.search(ptx):
        if first.spilled_bytes <= SPILLED_BY_TWO:
            return first
        alone = assemble(ptx.replace(asked[0], ""), arch)
        return alone if alone.spilled_bytes <= first.spilled_bytes / 2 else first
    kept_back = first.registers < NEAR * min(machine.thread_registers, machine.registers // threads)
    if kept_back and first.stack_bytes > HOPELESS_FRAME:
        return first
    if kept_back and first.spilled_bytes > SPILLED_BYTES:
        freed = _for_blocks(ptx, arch, 1)
        return freed if freed and freed.spilled_bytes <= first.spilled_bytes / 2 else first
    multiplies = any(name in ptx for name in PRODUCTS)
    if threads <= ONE_WARP and not multiplies and _loads_in_a_loop(ptx):
        early = _for_blocks(ptx, arch, 1)
        fits = early is not None and early.registers <= FEW_MORE * first.registers
        return early if early and fits and early.spilled_bytes <= first.spilled_bytes else first
    blocks = 0 if multiplies else _with_room(ptx, machine, threads, shared, first.registers)
    if blocks:
        early = _for_blocks(ptx, arch, blocks)
        return early if early and early.spilled_bytes <= first.spilled_bytes else first
    straight = threads >= LARGE and not multiplies and not _has_loop(ptx)
    waits = threads >= LARGE and not multiplies and "bar.sync" in ptx
    blocks = one_more(machine, threads, shared, first.registers, multiplies, straight, waits)
    if not blocks:
        return first
    second = _for_blocks(ptx, arch, blocks)
    allowed = SPILLED_ONCE if straight and blocks == 2 else SPILLED_BYTES
    if (blocks - 1) * threads >= machine.enough_threads:
        allowed = 0
    if second is None or second.spilled_bytes > first.spilled_bytes + allowed:
        return first
    return first if SERIALIZED in second.log and SERIALIZED not in first.log else second


def _machine(processor: str) -> Machine:
    """The machine that a processor, as ptxas names it, is or is nearest to.

    >>> _machine("sm_90a").name, _machine("sm_110").name
    ('cuda:90', 'cuda:103')
    """
    machine = closest("nvidia", int("".join(x for x in processor if x.isdigit())))
    assert machine is not None, processor
    return machine


def _with_room(ptx: str, machine: Machine, threads: int, shared: int, registers: int) -> int:
    """The number of blocks at a time to ask for, so that loads are on their way together; 0 where they are."""
    if words := held_in_an_iteration(ptx):
        more = fewer(machine, threads, shared, registers, words)
        return more or fewer(machine, threads, shared, registers - SPARE, held_written_out(ptx))
    words = held_without_loops(ptx)
    return fewer(machine, threads, shared, registers - ADDRESSES, words) if words in ON_THE_WAY else 0


def _has_loop(ptx: str) -> bool:
    """Whether a branch goes back.

    >>> _has_loop("$L__BB0_2:\\n @%p1 bra $L__BB0_2;"), _has_loop("@%p1 bra $L__BB0_2;\\n $L__BB0_2:")
    (True, False)
    """
    return any(0 <= ptx.find(f"{jump[1]}:") < jump.start() for jump in re.finditer(r"\bbra(?:\.uni)?\s+(\$\w+)", ptx))


def _loads_in_a_loop(ptx: str) -> bool:
    """Whether a load of global memory is between a label and a branch back to it.

    >>> _loads_in_a_loop("$L__BB0_2:\\n ld.global.b32 %r1, [%rd1];\\n @%p1 bra \\t$L__BB0_2;")
    True
    """
    for back in re.finditer(r"\bbra(?:\.uni)?\s+(\$\w+)", ptx):
        start = ptx.find(f"{back[1]}:", 0, back.start())
        if start >= 0 and ptx.find("ld.global", start, back.start()) >= 0:
            return True
    return False


def _for_blocks(ptx: str, arch: str, blocks: int) -> MachineCode | None:
    """Machine code of which so many blocks run at a time; None by a ptxas that is too old for the option."""
    try:
        return assemble(ptx, arch, options=(f"--minnctapersm={blocks}",))
    except (CompilerCrash, OutOfResources):
        return None
