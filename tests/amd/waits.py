"""Whether every value that memory delivers is waited for before it is used, on every path of a final assembly text.

An access is asynchronous: `global_load_dword v2, ...` returns at once, and v2 holds the value when a counter says so.
Accesses of one class return in the order in which they began, so `s_waitcnt vmcnt(1)` waits for all of them but the
last; scalar loads return in any order, so that only a wait for 0 of their class says something:

    global_load_dword v2, v[0:1], off         vmcnt: v2 with 0 behind it
    global_load_dword v3, v[4:5], off         vmcnt: v2 with 1 behind it, v3 with 0
    s_waitcnt vmcnt(1)                        v2 had 1 behind it: it is there
    v_add_f32_e32 v6, v2, v3                  a fault: v3 is pending

The state is, for each register, which access delivers into it and the fewest accesses of its class that began since;
where paths meet, the fewest count. It is followed to a fixed point, so loops are walked as often as it takes. LLVM
inserts these waits, and this checks what it made; nothing of its algorithm is used but the counters' meaning, which
AMD publishes. What a wave writes to local memory, direct-to-LDS copies among it, and what others read there, local.py
checks by running the text.

    python -m amd.waits matmul.s              # prints the faults of a file (PYTHONPATH=tests); --weaken: seeds faults
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

from .assembly import Instruction, Kernel, parse

LOCAL_STORES, GLOBAL, STORES = "local stores", "loads and atomics", "stores"
"""What is delivered, and is no register."""
SCALAR, LOCAL, VECTOR, FLAT = "scalar", "local", "vector", "flat"
"""Groups that return in order each; scalar and flat accesses in none."""
UNORDERED = (SCALAR, FLAT)


class Access(NamedTuple):
    """What an instruction begins: a counter that it raises, the group that it returns in order with, destinations."""

    counter: str
    group: str
    registers: frozenset[str]


class Pending(NamedTuple):
    """A register that an access still delivers into."""

    register: str
    counter: str
    group: str
    place: int


State = dict[Pending, int]
"""The fewest accesses of its group that began after each."""


@dataclass(frozen=True)
class Fault:
    """A use of a register that is still pending."""

    kernel: str
    use: Instruction
    access: Instruction
    register: str
    counter: str

    def __str__(self) -> str:
        return (
            f"{self.kernel}: line {self.use.line}: `{self.use.text}` uses {self.register}, which "
            f"line {self.access.line}, `{self.access.text}`, delivers, and nothing on a path between waits for "
            f"{self.counter}"
        )


def generation(processor: str) -> int:
    """9, 10, 11 or 12.

    >>> [generation(p) for p in ("gfx90a", "gfx942", "gfx1100", "gfx1250")]
    [9, 9, 11, 12]
    """
    digits = processor.removeprefix("gfx")
    return int(digits[:-2], 16) if len(digits) == 3 else int(digits[:-2])


def counters(processor: str) -> dict[str, int]:
    """The most that each counter of a processor counts: an access that would raise it further waits."""
    version = generation(processor)
    if version < 12:
        return {"vmcnt": 63, "lgkmcnt": 15 if version < 10 else 63, "vscnt": 63}
    most = {"loadcnt": 63, "storecnt": 63, "dscnt": 63, "kmcnt": 31}
    return most | ({"asynccnt": 63, "tensorcnt": 63} if processor == "gfx1250" else {})


MEMORY = ("global_", "buffer_", "flat_", "scratch_", "image_")
RETURNS = {"glc", "sc0", "th:TH_ATOMIC_RETURN"}


def returns(instruction: Instruction) -> bool:
    """Whether an atomic of global memory delivers what was there: `glc`, `sc0`, or the bit in `th:`."""
    return any(word in RETURNS or ("TH_ATOMIC" in word and "RETURN" in word) for word in instruction.words)


def is_copy_to_local(instruction: Instruction) -> bool:
    """Whether a load delivers into local memory."""
    return "lds" in instruction.words or "_lds_" in instruction.name or instruction.name.endswith("_lds")


def invalidates(name: str) -> bool:
    """Whether what a cache holds becomes unknown: `buffer_inv`, `buffer_wbinvl1_vol`, `global_inv`."""
    return name.startswith(("buffer_", "global_")) and "inv" in name


def uses(instruction: Instruction) -> frozenset[str]:
    """What must have been delivered before an instruction: registers that it names, and what it orders."""
    name = instruction.name
    if name in ("s_barrier", "s_barrier_signal", "s_barrier_signal_isfirst"):
        return frozenset({LOCAL_STORES})
    if invalidates(name):
        return frozenset({GLOBAL})
    return instruction.registers


def accesses(instruction: Instruction, processor: str) -> list[Access]:
    """What an instruction begins.

    >>> accesses(Instruction(1, "ds_read_b32 v0, v2"), "gfx942")
    [Access(counter='lgkmcnt', group='local', registers=frozenset({'v0'}))]
    """
    name, version = instruction.name, generation(processor)
    load, store, local, scalar = (
        ("vmcnt", "vmcnt", "lgkmcnt", "lgkmcnt") if version < 10
        else ("vmcnt", "vscnt", "lgkmcnt", "lgkmcnt") if version < 12
        else ("loadcnt", "storecnt", "dscnt", "kmcnt")
    )  # fmt: skip
    nothing: frozenset[str] = frozenset()
    first = Instruction(0, f"x {instruction.operands[0]}").registers if instruction.operands else nothing
    if name.startswith(("s_load", "s_buffer_load", "s_scratch_load", "s_memtime", "s_memrealtime", "s_atc_probe")):
        return [Access(scalar, SCALAR, first)]
    if name.startswith(("s_dcache", "s_sendmsg")):
        return [Access(scalar, SCALAR, first if "rtn" in name else nothing)]
    if name.startswith("ds_"):
        delivers = any(part in name for part in ("read", "load", "permute", "swizzle", "rtn", "consume", "append"))
        stores = not delivers or "rtn" in name
        return [Access(local, LOCAL, (first if delivers else nothing) | ({LOCAL_STORES} if stores else nothing))]
    if not name.startswith(MEMORY) or "prefetch" in name:
        return []
    if invalidates(name):
        return [Access(load, VECTOR, nothing)] if version >= 12 else []
    if "async" in name or name.startswith("tensor_"):
        return [Access("tensorcnt" if name.startswith("tensor") else "asynccnt", VECTOR, nothing)]
    if "_wb" in name:
        return [Access(store, VECTOR, frozenset({STORES}))]
    if "atomic" in name:
        delivers = returns(instruction)
        kind = Access(load if delivers else store, VECTOR, (first if delivers else nothing) | {GLOBAL})
    elif "store" in name:
        kind = Access(store, VECTOR, frozenset({STORES}))
    else:
        kind = Access(load, VECTOR, (nothing if is_copy_to_local(instruction) else first) | {GLOBAL})
    if name.startswith("flat_"):  # it may be either memory, and on gfx9 comes in no order
        if version < 10:
            return [kind._replace(group=FLAT), Access(local, FLAT, kind.registers)]
        return [kind, Access(local, LOCAL, kind.registers)]
    return [kind]


def waits(instruction: Instruction) -> dict[str, int]:
    """How many of each counter an instruction leaves outstanding at most.

    >>> waits(Instruction(1, "s_waitcnt vmcnt(2) lgkmcnt(0)")), waits(Instruction(1, "s_wait_loadcnt_dscnt 0x301"))
    ({'vmcnt': 2, 'lgkmcnt': 0}, {'loadcnt': 3, 'dscnt': 1})
    """
    name = instruction.name
    if name == "s_waitcnt":
        if re.fullmatch(r"s_waitcnt (0x[\da-f]+|\d+)", instruction.text):
            raise ValueError(f"line {instruction.line}: a wait that names no counter: {instruction.text}")
        return {counter: int(number) for counter, number in re.findall(r"(\w+cnt)\((\d+)\)", instruction.text)}
    if name.startswith("s_waitcnt_") and name != "s_waitcnt_depctr":
        return {name.removeprefix("s_waitcnt_"): int(instruction.operands[-1], 0)}
    match = re.fullmatch(r"s_wait_(\w+cnt)", name)
    if match is None:
        return {}
    number, names = int(instruction.operands[0], 0), re.findall(r"[a-z]+cnt", match[1])
    return dict(zip(names, (number >> 8, number & 0xFF) if len(names) == 2 else (number,)))


def step(state: State, instruction: Instruction, place: int, processor: str, most: dict[str, int]) -> State:
    """The state after an instruction."""
    for counter, number in waits(instruction).items():
        state = {
            pending: behind
            for pending, behind in state.items()
            if pending.counter != counter or (behind < number if pending.group not in UNORDERED else number > 0)
        }
    for counter, group, registers in accesses(instruction, processor):
        later = {}
        for pending, behind in state.items():
            if (pending.counter, pending.group) == (counter, group) and group not in UNORDERED:
                behind += 1
                if behind >= most.get(counter, 63):
                    continue
            later[pending] = behind
        for register in registers:
            later[Pending(register, counter, group, place)] = 0
        state = later
    return state


def states(kernel: Kernel) -> dict[int, State]:
    """The state before each instruction that can be reached.

    The first in the text goes first: ways around a branch have met before what is behind it is looked at.
    """
    most = counters(kernel.processor)
    before: dict[int, State] = {0: {}}
    todo = [0]
    while todo:
        place = heappop(todo)
        after = step(before[place], kernel.instructions[place], place, kernel.processor, most)
        for to in kernel.successors(place):
            known = before.get(to)
            if known is None:
                before[to] = dict(after)
                heappush(todo, to)
            elif any(known.get(pending, behind + 1) > behind for pending, behind in after.items()):
                before[to] = known | {p: min(known.get(p, b), b) for p, b in after.items()}
                heappush(todo, to)
    return before


def faults(kernel: Kernel) -> list[Fault]:
    """The uses of registers that are pending on some path; an empty list says that there is none."""
    found: dict[tuple[int, int], Pending] = {}
    for place, state in states(kernel).items():
        used = _used(state, kernel.instructions[place], kernel.processor)
        for pending in sorted(used, key=lambda p: (len(p.register), p.register), reverse=True):
            found[place, pending.place] = pending  # of several registers of one access the first
    return [
        Fault(kernel.name, kernel.instructions[place], kernel.instructions[p.place], p.register, p.counter)
        for (place, _), p in sorted(found.items())
    ]


def _used(state: State, instruction: Instruction, processor: str) -> Iterator[Pending]:
    """What is pending of an instruction's registers.

    A load into a register that an earlier load of the same group is to fill is no use, for they come in order; of local
    memory it is one where it fills half of the register and keeps the other.
    """
    if not state:
        return
    needed = uses(instruction)
    keeps_a_half = "d16" in instruction.name and instruction.name.startswith("ds_")
    begun = [] if keeps_a_half else accesses(instruction, processor)
    for pending in state:
        if pending.register not in needed:
            continue
        ordered = any(
            pending.register in registers and (counter, group) == (pending.counter, pending.group)
            for counter, group, registers in begun
        )
        if ordered and pending.group not in UNORDERED:
            others = Instruction(0, f"x {', '.join(instruction.operands[1:])}").registers
            if pending.register not in others:
                continue
        yield pending


class Weakened(NamedTuple):
    """A program in which one wait says less: a seeded fault."""

    wait: Instruction
    what: str
    kernel: Kernel
    left: frozenset[str]
    """What only that wait waited for: empty where nothing was pending, so that the wait did nothing."""


def weakened(kernel: Kernel) -> Iterator[Weakened]:
    """Each counter of each wait left out, and left with one more outstanding."""
    before = states(kernel)
    for place, instruction in enumerate(kernel.instructions):
        known = waits(instruction)
        for counter, number in known.items():
            for less in (None, number + 1):
                rest = {c: n for c, n in {**known, counter: less}.items() if n is not None}
                text = "s_waitcnt " + " ".join(f"{c}({n})" for c, n in rest.items()) if rest else "s_nop 0"
                changed = Instruction(instruction.line, text)
                instructions = [*kernel.instructions[:place], changed, *kernel.instructions[place + 1 :]]
                state = before.get(place, {})
                after, before_it = (set(step(state, i, place, kernel.processor, {})) for i in (changed, instruction))
                yield Weakened(
                    instruction, f"{counter} " + ("left out" if less is None else f"left at {less}"),
                    Kernel(kernel.name, kernel.processor, instructions, kernel.labels),
                    frozenset(p.register for p in after - before_it),
                )  # fmt: skip


def check(text: str) -> list[Fault]:
    """The faults of all functions of an assembly text."""
    return [fault for kernel in parse(text).values() for fault in faults(kernel)]


def seeded(text: str) -> Counter[str]:
    """What becomes of each wait of a text that is left out or weakened by one, in words."""
    found: Counter[str] = Counter()
    for kernel in parse(text).values():
        for weak in weakened(kernel):
            if faults(weak.kernel):
                found["found"] += 1
            elif weak.left <= {STORES}:
                found["nothing was waited for but stores"] += 1
            else:
                found["another wait follows before the use"] += 1
    return found


def main(arguments: list[str]) -> int:
    """Print the faults of files; 1 where there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--weaken", action="store_true", help="weaken each wait, and say how often that is found")
    options = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    faulty = False
    for path in options.files:
        text = path.read_text(encoding="utf-8")
        for fault in check(text):
            faulty = True
            print(f"{path}: {fault}")
        if options.weaken:
            total += seeded(text)
    for words, count in total.items():
        print(f"{count} weakened waits: {words}")
    return faulty


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
