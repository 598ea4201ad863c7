"""Whether what one wave puts into local memory is there before another reads it: by running the text.

A copy from global into local memory fills no register, so waits.py has no name for what it delivers; which bytes a
later instruction reads is known when addresses are numbers. So a block is run here: all of its waves, the integer
arithmetic of addresses and loops, exact; what memory delivers is unknown, and so is what is made of it. Of each byte of
local memory it is known who wrote it last, whether the writer has waited for that, and at how many barriers it had been
then:

    copy of wave 0 -> bytes 0 to 1023        on its way
    s_waitcnt vmcnt(0)                       wave 0 knows that it is there, before its barrier 1
    s_barrier                                barrier 1
    ds_read of wave 1 from byte 512          right: wave 1 has been at barrier 1; without either of the two a fault

    run(kernel, text, arguments, waves)      # the faults

The same holds for stores of a wave that another reads, and for bytes that are written while others may still read them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .assembly import Instruction, Kernel, named
from .waits import LOCAL_STORES, UNORDERED, accesses, counters, generation, is_copy_to_local, waits

Array = np.ndarray[Any, Any]
Value = Any
"""An array of words, one for each lane; a number; None where it is not known."""
ARGUMENTS = 1 << 40
"""Where the buffer of arguments is said to be."""
WORD = 0xFFFFFFFF
LIMIT = 2_000_000
"""Instructions of a block."""


class CannotTell(Exception):
    """An address of local memory or the condition of a branch is not known."""


@dataclass
class Event:
    """Something that a wave has begun to write into local memory."""

    wave: int
    instruction: Instruction
    is_copy: bool
    over: int | None = None
    """At how many barriers the wave had been when it had waited for this."""


def _signed(x: Value) -> Value:
    return (x + 0x80000000 & WORD) - 0x80000000


def _bitwise(given: Sequence[Any], table: int) -> Value:
    """Any function of three bits, by its table."""
    total = 0
    for row in range(8):
        if table >> row & 1:
            bits = [x if row >> 2 - i & 1 else ~x for i, x in enumerate(given)]
            total = total | bits[0] & bits[1] & bits[2]
    return total


TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshl": lambda a, b: a << (b & 31), "lshr": lambda a, b: a >> (b & 31),
    "ashr": lambda a, b: _signed(a) >> (b & 31), "subrev": lambda a, b: b - a, "lshlrev": lambda a, b: b << (a & 31),
    "lshrrev": lambda a, b: b >> (a & 31), "ashrrev": lambda a, b: _signed(b) >> (a & 31), "andn2": lambda a, b: a & ~b,
    "and_not1": lambda a, b: a & ~b, "mul_lo": operator.mul, "mul_u24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "mul_hi": lambda a, b: a * b >> 32,
    "bfm": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), "orn2": lambda a, b: a | ~b,
    "min_i": lambda a, b: np.minimum(_signed(a), _signed(b)), "max_i": lambda a, b: np.maximum(_signed(a), _signed(b)),
    "min_u": np.minimum, "max_u": np.maximum, "lshl1_add": lambda a, b: 2 * a + b, "lshl2_add": lambda a, b: 4 * a + b,
    "lshl3_add": lambda a, b: 8 * a + b, "lshl4_add": lambda a, b: 16 * a + b,
}  # fmt: skip
THREE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "lshl_add": lambda a, b, c: (a << (b & 31)) + c, "add_lshl": lambda a, b, c: (a + b & WORD) << (c & 31),
    "lshl_or": lambda a, b, c: a << (b & 31) | c, "and_or": lambda a, b, c: a & b | c,
    "add3": lambda a, b, c: a + b + c,
    "or3": lambda a, b, c: a | b | c, "xad": lambda a, b, c: (a ^ b) + c, "xor3": lambda a, b, c: a ^ b ^ c,
    "bfe_u": lambda a, b, c: a >> (b & 31) & (1 << (c & 31)) - 1,
    "mad_u24": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "bfi": lambda a, b, c: a & b | ~a & c,
}  # fmt: skip
CARRIES = {
    "s_add_u32": (1, False), "s_add_co_u32": (1, False), "s_addc_u32": (1, True), "s_add_co_ci_u32": (1, True),
    "s_sub_u32": (-1, False), "s_sub_co_u32": (-1, False), "s_subb_u32": (-1, True), "s_sub_co_ci_u32": (-1, True),
}  # fmt: skip
"""Whether it adds, and whether it takes the carry of the one before."""
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "lg": operator.ne,
}  # fmt: skip


@dataclass
class Wave:
    """A wave's registers that are known, and what it has begun."""

    number: int
    lanes: int
    scalars: dict[str, Value]
    vectors: dict[str, Value]
    active: Array
    place: int = 0
    condition: bool | None = None
    barriers: int = 0
    done: bool = False
    under_way: list[tuple[str, str, Event | None]] = field(default_factory=list)
    spilled: dict[int, Value] = field(default_factory=dict)


class Block:
    """A block that is run. `arguments` is the buffer of the kernel's arguments."""

    def __init__(self, kernel: Kernel, text: str, arguments: bytes, waves: int) -> None:
        self.kernel, self.arguments = kernel, arguments
        self.lanes = 64 if generation(kernel.processor) < 10 else 32
        self.most = counters(kernel.processor)
        self.faults: list[str] = []
        self.writer: Array = np.full(1 << 18, -1, np.int32)
        self.readers: Array = np.full((waves, 1 << 18), -1, np.int32)
        """By wave and byte, at how many barriers the wave had been when it last read there."""
        self.events: list[Event] = []
        self.waves = [self._wave(number, text) for number in range(waves)]

    def _wave(self, number: int, text: str) -> Wave:
        def directive(name: str) -> int:
            match = re.search(rf"\.amdhsa_{name} (\d+)", text)
            return int(match[1]) if match else 0

        at = 4 * directive("user_sgpr_private_segment_buffer")
        at += sum(2 * directive(f"user_sgpr_{n}_ptr") for n in ("dispatch", "queue"))
        scalars: dict[str, Value] = {f"s{i}": 0 for i in range(106)}  # a block's number is 0
        scalars |= {f"ttmp{i}": 0 for i in range(16)} | {"null": 0, "m0": 0}
        scalars |= {f"s{at}": ARGUMENTS & WORD, f"s{at + 1}": ARGUMENTS >> 32}
        thread = np.arange(self.lanes, dtype=np.int64) + number * self.lanes
        return Wave(number, self.lanes, scalars, {"v0": thread}, np.ones(self.lanes, bool))

    # -- operands ----------------------------------------------------------------------------------------------------

    def value(self, wave: Wave, text: str, wide: bool = False) -> Value:
        """What an operand is; of 64 bits with `wide`."""
        text = text.split()[0] if text else text
        if re.fullmatch(r"-?(0x[\da-f]+|\d+)", text):
            return int(text, 0) & (WORD | WORD << 32 if wide else WORD)
        registers = list(named(text)) or ([text] if text == "null" else [])
        parts = [self._register(wave, register) for register in registers]
        if not parts or any(part is None for part in parts):
            return None
        return parts[0] | parts[1] << 32 if wide and len(parts) > 1 else parts[0]

    def _register(self, wave: Wave, name: str) -> Value:
        if name.startswith("exec"):
            bits = sum(1 << lane for lane in np.flatnonzero(wave.active).tolist())
            return bits >> 32 if name.endswith("_hi") else bits & WORD
        if name[0] == "v" and name[1].isdigit():
            return wave.vectors.get(name)
        return wave.scalars.get(name)

    def write(self, wave: Wave, text: str, value: Value) -> None:
        """Set a destination of one or two words, or make it unknown."""
        for i, name in enumerate(named(text)):
            part = None if value is None else value >> 32 * i & WORD
            if name.startswith("exec"):
                self._set_active(wave, name, part)
            elif name[0] in "v" and name[1].isdigit():
                if part is not None:
                    part = np.broadcast_to(np.asarray(part, np.int64), (self.lanes,))
                    before = wave.vectors.get(name)
                    part = np.where(wave.active, part, 0 if before is None else before)
                elif not wave.active.any():
                    continue
                wave.vectors[name] = part
            elif name[0] != "a":
                wave.scalars[name] = part

    def _set_active(self, wave: Wave, name: str, part: Value) -> None:
        if part is None:
            raise CannotTell(f"{self.kernel.name}: which lanes take part")
        lanes = np.array([int(part) >> i & 1 for i in range(32)], bool)
        begin = 32 if name.endswith("_hi") else 0
        wave.active = wave.active.copy()
        wave.active[begin : begin + 32] = lanes[: len(wave.active[begin : begin + 32])]

    # -- running -----------------------------------------------------------------------------------------------------

    def run(self) -> list[str]:
        """All faults; CannotTell where an address or a branch is not known."""
        left = LIMIT
        while not all(wave.done for wave in self.waves):
            for wave in self.waves:
                while not wave.done and left:
                    left -= 1
                    if self._step(wave):
                        break
            if not left:
                raise CannotTell(f"{self.kernel.name} has not ended after {LIMIT} instructions")
        return self.faults

    def _step(self, wave: Wave) -> bool:
        """One instruction; whether the wave is at a barrier."""
        instruction = self.kernel.instructions[wave.place]
        self._wait(wave, waits(instruction))
        begun = accesses(instruction, self.kernel.processor)
        self._wait(wave, {counter: self.most[counter] - 1 for counter, _, _ in begun})
        event = self._memory(wave, instruction)
        for counter, group, registers in begun:
            wave.under_way.append((counter, group, event if LOCAL_STORES in registers or is_copy(event) else None))
        if instruction.ends:
            wave.done = True
            return False
        wave.place = self._next(wave, instruction)
        if instruction.name in ("s_barrier", "s_barrier_wait"):
            wave.barriers += 1
            return True
        return False

    def _wait(self, wave: Wave, numbers: dict[str, int]) -> None:
        for counter, number in numbers.items():
            ordered = [a for a in wave.under_way if a[0] == counter and a[1] not in UNORDERED]
            gone = ordered[: max(0, len(ordered) - number)]
            for entry in gone:
                if entry[2] is not None and entry[2].over is None:
                    entry[2].over = wave.barriers
            over = {id(entry) for entry in gone}
            wave.under_way = [
                a
                for a in wave.under_way
                if id(a) not in over and not (a[0] == counter and a[1] in UNORDERED and not number)
            ]

    def _next(self, wave: Wave, instruction: Instruction) -> int:
        name, following = instruction.name, wave.place + 1
        if not name.startswith(("s_branch", "s_cbranch")):
            self._compute(wave, instruction)
            return following
        if name == "s_branch":
            return self.kernel.labels[str(instruction.target)]
        kind = name.removeprefix("s_cbranch_")
        if kind.startswith("exec"):
            is_zero: bool | None = not wave.active.any()
        elif kind.startswith("scc"):
            is_zero = None if wave.condition is None else not wave.condition
        else:
            bits = self.value(wave, "vcc" if self.lanes == 64 else "vcc_lo", wide=True)
            is_zero = None if bits is None else not bits
        if is_zero is None:
            raise CannotTell(f"line {instruction.line}: {instruction.text}: its condition is not known")
        wants_zero = kind.endswith(("z", "0")) and not kind.endswith("nz")
        return self.kernel.labels[str(instruction.target)] if is_zero == wants_zero else following

    def _memory(self, wave: Wave, instruction: Instruction) -> Event | None:
        """What an access does with local memory."""
        name, operands = instruction.name, instruction.operands
        if is_copy_to_local(instruction):
            base = self.value(wave, "m0")
            size = bytes_of(instruction)
            if base is None:
                raise CannotTell(f"line {instruction.line}: {instruction.text}: M0 is not known")
            lanes = np.arange(self.lanes) if wave.active.any() else np.arange(0)
            event = Event(wave.number, instruction, True)
            self._written(wave, event, base + instruction.modifier("offset") + size * lanes, size)
            return event
        if not name.startswith("ds_") or "permute" in name or "swizzle" in name or name == "ds_nop":
            return None
        reads = "read" in name or "load" in name
        if not wave.active.any():
            return None if reads else Event(wave.number, instruction, False)
        at = self.value(wave, operands[1 if reads or "rtn" in name else 0])
        if at is None:
            raise CannotTell(f"line {instruction.line}: {instruction.text}: its address is not known")
        at = np.asarray(at)[wave.active]
        size = bytes_of(instruction)
        pieces = [(instruction.modifier("offset"), size)]
        if re.search(r"(read|write)2|_2addr", name):
            step = size // 2 * (64 if "st64" in name or "stride64" in name else 1)
            pieces = [(instruction.modifier(f"offset{i}") * step, size // 2) for i in (0, 1)]
        event = None if reads else Event(wave.number, instruction, False)
        for offset, length in pieces:
            if event is None:
                self._read(wave, instruction, at + offset, length)
            else:
                self._written(wave, event, at + offset, length)
        return event

    def _places(self, at: Array, size: int) -> Array:
        return np.unique((at[:, None] + np.arange(size)).ravel())

    def _written(self, wave: Wave, event: Event, at: Array, size: int) -> None:
        places = self._places(at, size)
        for reader in np.flatnonzero((self.readers[:, places] >= wave.barriers).any(axis=1)).tolist():
            if reader != wave.number:
                self._fault(event.instruction, f"wave {wave.number} writes what wave {reader} may still read")
        self.writer[places] = len(self.events)
        self.events.append(event)

    def _read(self, wave: Wave, instruction: Instruction, at: Array, size: int) -> None:
        places = self._places(at, size)
        for number in np.unique(self.writer[places]).tolist():
            if number < 0:
                continue
            event = self.events[number]
            if event.wave == wave.number:
                missing = event.is_copy and event.over is None
            else:
                missing = event.over is None or event.over >= wave.barriers
            if missing:
                whose = "its own" if event.wave == wave.number else f"wave {event.wave}'s"
                wanted = "a wait" if event.over is None else "a barrier"
                text = (
                    f"wave {wave.number} reads what {whose} `{event.instruction.text}` (line {event.instruction.line})"
                )
                self._fault(instruction, f"{text} writes, without {wanted} between")
        self.readers[wave.number, places] = wave.barriers

    def _fault(self, instruction: Instruction, text: str) -> None:
        whole = f"line {instruction.line}: `{instruction.text}`: {text}"
        if whole not in self.faults:
            self.faults.append(whole)

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def _compute(self, wave: Wave, instruction: Instruction) -> None:
        """The integer arithmetic of addresses, masks and loops; of everything else the results become unknown."""
        for part in instruction.text.split(" :: "):
            self._compute_one(wave, Instruction(instruction.line, part.strip().replace("v_dual_", "v_")))

    def _compute_one(self, wave: Wave, instruction: Instruction) -> None:
        name, operands = instruction.name, instruction.operands
        if not operands or name.startswith(("s_wait", "s_barrier", "s_nop", "s_set", "s_sched", "s_delay", "s_clause")):
            return
        if name.startswith(("s_load", "s_buffer_load")):
            self._load_arguments(wave, instruction)
        elif "saveexec" in name:
            self._save_active(wave, name, operands)
        elif name.startswith("s_cmp"):
            self._compare_scalars(wave, name, operands)
        elif name.startswith("v_cmp"):
            self._compare_vectors(wave, name, operands)
        elif name.startswith("scratch_"):
            self._spill(wave, instruction)
        elif name.startswith(("ds_", "global_", "buffer_", "flat_")):
            if not is_copy_to_local(instruction) and any(
                w in name for w in ("read", "load", "permute", "swizzle", "rtn")
            ):
                self.write(wave, operands[0], None)
        elif "_dpp" in name or "sdwa" in name:
            self.write(wave, operands[0], None)
        else:
            self.write(wave, operands[0], self._result(wave, name, operands))
            if re.match(r"v_(add|sub|subrev|addc|subb)_co|v_(addc|subb|add_co_ci)|v_div_scale|v_mad_[ui]64", name):
                self.write(wave, operands[1], None)

    def _result(self, wave: Wave, name: str, operands: Sequence[str]) -> Value:
        wide = bool(re.search(r"_[biu]64(_e\d+)?$", name))
        if wide and name[0] == "v":
            return None
        given = [self.value(wave, text, wide) for text in operands[1:]]
        kind = re.sub(r"_(e32|e64)$", "", name)
        if re.match(r"s_(mov|cmov)k?_|v_mov_b32|v_readfirstlane", kind):
            value = given[0]
            if kind.startswith("v_readfirstlane") and value is not None:
                first = np.flatnonzero(wave.active)[:1]
                value = int(np.broadcast_to(value, (self.lanes,))[first[0] if len(first) else 0])
            return value
        if kind.startswith("s_cselect"):
            return None if wave.condition is None else given[0 if wave.condition else 1]
        if kind.startswith("v_cndmask") and all(value is not None for value in given):
            mask = given[2] if len(given) > 2 else self.value(wave, "vcc_lo")
            full = self.value(wave, operands[3] if len(given) > 2 else ("vcc" if self.lanes == 64 else "vcc_lo"), True)
            if mask is None or full is None:
                return None
            chosen = np.array([int(full) >> lane & 1 for lane in range(self.lanes)], bool)
            return np.where(chosen, given[1], given[0])
        if kind == "v_bitop3_b32" and all(value is not None for value in given):
            return _bitwise(given, int(operands[-1].partition("bitop3:")[2] or "0", 0))
        if kind in CARRIES and all(value is not None for value in given):
            sign, takes = CARRIES[kind]
            if takes and wave.condition is None:
                return None
            value = given[0] + sign * (given[1] + (int(wave.condition or 0) if takes else 0))
            wave.condition = not 0 <= value <= WORD
            return value & WORD
        if kind in ("s_addk_i32", "s_addk_co_i32", "s_mulk_i32"):
            given = [self.value(wave, operands[0]), given[0]]
            kind = "s_mul_i32" if "mul" in kind else "s_add_i32"
        short = re.sub(r"^[sv]_|_(nc|co)(?=_)", "", kind)
        short = re.sub(r"^(min|max)_([iu])32$", r"\1_\2", short)
        short = re.sub(r"^bfe_u32$", "bfe_u", short)
        short = re.sub(r"_(u32_u24|i32_i24)$", "_u24", short)
        base = re.sub(r"_[biu](32|64)$", "", short)
        if kind.endswith("mul_hi_i32") and all(value is not None for value in given):
            given = [_signed(value) for value in given]
        function = TWO.get(base) if len(given) == 2 else THREE.get(base) if len(given) == 3 else None
        if function is None and base in ("not", "brev", "bfrev") and given and given[0] is not None and base == "not":
            return ~given[0]
        if function is None or any(value is None for value in given):
            wave.condition = None if name[0] == "s" else wave.condition
            return None
        value = function(*given)
        value = value & (WORD | WORD << 32 if wide else WORD)
        if name[0] == "s":
            value = int(value)
            if base in ("mul", "mul_hi"):
                return value  # leaves the condition alone
            wave.condition = bool(value) if base not in ("add", "sub", "addc", "min_i", "max_i") else None
        return value

    def _load_arguments(self, wave: Wave, instruction: Instruction) -> None:
        base = self.value(wave, instruction.operands[1], wide=True)
        offset = self.value(wave, instruction.operands[2])
        for i, register in enumerate(named(instruction.operands[0])):
            place = None if base is None or offset is None else base + offset + 4 * i - ARGUMENTS
            known = place is not None and 0 <= place < len(self.arguments)
            wave.scalars[register] = int.from_bytes(self.arguments[place : place + 4], "little") if known else None

    def _spill(self, wave: Wave, instruction: Instruction) -> None:
        """A lane's own memory, for registers that there are too few of: at constant places they are known again."""
        stores = "store" in instruction.name
        registers = list(named(instruction.operands[1 if stores else 0]))
        place, constant = instruction.modifier("offset"), "off" in instruction.operands[0 if stores else 1].split()
        constant = constant and instruction.operands[2].split()[0] == "off"
        for i, register in enumerate(registers):
            if stores and constant:
                wave.spilled[place + 4 * i] = wave.vectors.get(register)
            elif not stores:
                wave.vectors[register] = wave.spilled.get(place + 4 * i) if constant else None

    def _save_active(self, wave: Wave, name: str, operands: Sequence[str]) -> None:
        both = "exec" if self.lanes == 64 else "exec_lo"
        before, other = self.value(wave, both, wide=True), self.value(wave, operands[1], wide=True)
        self.write(wave, operands[0], before)
        if other is None:
            raise CannotTell(f"{name} {', '.join(operands)}: which lanes take part is not known")
        what = {"and": before & other, "or": before | other, "xor": before ^ other}
        kind = name[2:].partition("_saveexec")[0]
        after = other & ~before if kind in ("andn2", "and_not1") else what[kind]
        self.write(wave, both, after)
        wave.condition = bool(after)

    def _compare_scalars(self, wave: Wave, name: str, operands: Sequence[str]) -> None:
        match = re.fullmatch(r"s_cmpk?_(\w\w)_([iu])(32|64)", name)
        values = [self.value(wave, text, bool(match) and match[3] == "64") for text in operands] if match else [None]
        if match is None or any(value is None for value in values):
            wave.condition = None
            return
        a, b = map(_signed, values) if match[2] == "i" else values
        wave.condition = bool(COMPARED[match[1]](a, b))

    def _compare_vectors(self, wave: Wave, name: str, operands: Sequence[str]) -> None:
        match = re.match(r"v_cmpx?_(\w\w)_([iu])32", name)
        values = [self.value(wave, text) for text in operands[-2:]]
        result: int | None = None
        if match and all(value is not None for value in values):
            a, b = map(_signed, values) if match[2] == "i" else values
            chosen = np.broadcast_to(COMPARED[match[1]](np.asarray(a), np.asarray(b)), (self.lanes,)) & wave.active
            result = sum(1 << lane for lane in np.flatnonzero(chosen).tolist())
        both = "exec" if self.lanes == 64 else "exec_lo"
        self.write(wave, both if name.startswith("v_cmpx") else operands[0], result)


def is_copy(event: Event | None) -> bool:
    """Whether it is a copy from global memory."""
    return event is not None and event.is_copy


def bytes_of(instruction: Instruction) -> int:
    """How many bytes of a lane an access of local memory, or a copy into it, moves."""
    name = instruction.name
    times = 2 if re.search(r"(read|write)2|_2addr", name) else 1
    if match := re.search(r"dword(?:x(\d))?", name):
        return times * 4 * int(match[1] or 1)
    match = re.search(r"_[buif]+(8|16|32|64|96|128)(?=_|$)", name)
    return times * int(match[1]) // 8 if match else 4


def run(kernel: Kernel, text: str, arguments: bytes, waves: int) -> list[str]:
    """The faults of a block of so many waves with these bytes of arguments; `text` has the kernel's directives."""
    return Block(kernel, text, arguments, waves).run()
