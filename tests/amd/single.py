"""Every instruction of AMD's tables once by itself: one wave loads its operands, executes it, stores the result.

    print(outcome(emulator, INSTRUCTIONS["mfma.f32.16x16x16f16"]))

What comes out is compared with the entry's meaning in `targets/amd`, which is what the simulator computes. Outcomes:

    executed        by the emulator, and the same
    formula only    the emulator has it not or wrong: executed by meanings.py, and the same
    not executed    there is no emulator of its processor
    wrong: ...      everything else
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from weft.machines import machine_of
from weft.ops.dtypes import DTYPES
from weft.targets.instruction import BITS, Instruction, Operand

from .emulate import Emulator

PROCESSORS = ("gfx942", "gfx950", "gfx90a", "gfx1100", "gfx1201")
"""In the order in which one is chosen; gfx1151 and gfx1200 are gfx1100 and gfx1201 to the emulator."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of an entry."""

    name: str
    processor: str
    text: str

    def __str__(self) -> str:
        return f"{self.name:44} {self.processor:8} {self.text}"

    @property
    def is_wrong(self) -> bool:
        """Whether it differs, or does not run."""
        return self.text.startswith("wrong")


def processor_for(entry: Instruction) -> str | None:
    """The processor on which an entry is executed."""
    return next(
        (p for p in PROCESSORS if entry.since <= machine_of(f"hip:{p}").generation
         and not 0 < entry.until <= machine_of(f"hip:{p}").generation), None
    )  # fmt: skip


def object_code(text: str, processor: str) -> bytes:
    """The linked code object of LLVM IR."""
    from weft.backends.amd.hsaco import linked

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    features = "-real-true16" if processor.startswith("gfx11") else ""
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic"
    )
    module = llvm.parse_assembly(text)
    module.verify()
    return linked(machine.emit_object(module))


HEAD = """target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
{declared}
define amdgpu_kernel void @f({parameters}) #0 {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
{body}
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="1,{threads}" "uniform-work-group-size"="true" {without} }}
!llvm.module.flags = !{{!0}}
!0 = !{{i32 1, !"amdhsa_code_object_version", i32 500}}
"""
WITHOUT = " ".join(
    f'"amdgpu-no-{name}"'
    for name in (
        "dispatch-ptr", "queue-ptr", "dispatch-id", "implicitarg-ptr", "workgroup-id-x", "workgroup-id-y",
        "workgroup-id-z", "workitem-id-y", "workitem-id-z", "lds-kernel-id", "heap-ptr", "hostcall-ptr",
    )
)  # fmt: skip


def program(declared: str, pointers: list[str], body: list[str], threads: int) -> str:
    """A kernel whose parameters are these pointers to global memory."""
    parameters = ", ".join(f"ptr addrspace(1) %{name}" for name in pointers)
    return HEAD.format(
        declared=declared, parameters=parameters, body="\n".join(f"  {line}" for line in body), threads=threads,
        without=WITHOUT,
    )  # fmt: skip


def call(entry: Instruction, threads: int) -> str:
    """The program of one entry: an array for each operand and result, lane after lane."""
    kinds = [kind for kind, _ in entry.params["arguments"]]
    loaded = {what: kind for kind, what in entry.params["arguments"] if isinstance(what, str)}
    body = []
    for operand in entry.operands:
        name, kind = operand.name, loaded[operand.name]
        size = BITS[operand.elem] * operand.count // 8  # a vector of 6 words takes 8 in an array
        body.append(f"%{name}.at = getelementptr [{size} x i8], ptr addrspace(1) %of.{name}, i32 %lane")
        if size < 4:  # the other bits of the word say nothing
            body.append(f"%{name}.narrow = load i{8 * size}, ptr addrspace(1) %{name}.at, align {size}")
            body.append(f"%{name}.in = zext i{8 * size} %{name}.narrow to {kind}")
        else:
            body.append(f"%{name}.in = load {kind}, ptr addrspace(1) %{name}.at, align 4")
    given = [f"{k} %{what}.in" if isinstance(what, str) else f"{k} {what}" for k, what in entry.params["arguments"]]
    returns = entry.params["returns"]
    parts = [returns] if isinstance(returns, str) else list(returns)
    whole = parts[0] if len(parts) == 1 else f"{{ {', '.join(parts)} }}"
    body.append(f"%out = call {whole} @{entry.text}({', '.join(given)})")
    for i, (part, result) in enumerate(zip(parts, entry.results, strict=True)):
        value = "%out"
        if len(parts) > 1:
            value = f"%out.{i}"
            body.append(f"{value} = extractvalue {whole} %out, {i}")
        body += [
            f"%{result.name}.at = getelementptr {part}, ptr addrspace(1) %of.{result.name}, i32 %lane",
            f"store {part} {value}, ptr addrspace(1) %{result.name}.at, align 4",
        ]
    names = [f"of.{o.name}" for o in (*entry.operands, *entry.results)]
    return program(f"declare {whole} @{entry.text}({', '.join(kinds)})", names, body, threads)


def drawn(rng: np.random.Generator, entry: Instruction, operand: Operand, lanes: int) -> Array:
    """An operand: small numbers for products, so that they are exact; any words for exchanges, and lanes that exist."""
    shape = (1, lanes, operand.count)
    if operand.name.startswith("scale"):  # exponents, with 127 for 1
        return rng.integers(125, 130, shape).astype(np.uint8).view(np.int8)
    if "scaled" in entry.params and operand.elem in ("i8", "i32"):  # elements of 4 and 6 bits, of which any is a number
        raw = rng.integers(0, 256, (*shape, BITS[operand.elem] // 8)).astype(np.uint8)
        return raw.view(DTYPES[operand.elem])[..., 0]
    if entry.products:
        low = 0 if "u8" in entry.params.get("types", ()) and operand.elem == "i8" else -4
        return rng.integers(low, 5, shape).astype(np.float32).astype(DTYPES[operand.elem])
    if operand.name == "address":
        return (4 * rng.integers(0, lanes, shape)).astype(np.int32)
    if operand.name == "lane":
        return rng.integers(0, lanes, shape).astype(np.int32)
    return rng.integers(-(1 << 31), 1 << 31, shape, np.int64).astype(np.int32).view(DTYPES[operand.elem])


def stands_alone(entry: Instruction) -> bool:
    """Whether an entry is a call of an intrinsic on registers: those without a text are none, and without results
    there is nothing to compare (a wave's priority, say).

    >>> from weft.targets.amd import INSTRUCTIONS
    >>> [stands_alone(INSTRUCTIONS[name]) for name in ("held", "setprio.1", "readlane")]
    [False, False, True]
    """
    if not entry.text or not entry.results:
        return False
    return entry.semantics is not None and not entry.touches and "arguments" in entry.params


def ran(emulator: Emulator, text: str, processor: str, arrays: list[Array]) -> str:
    """Run a program of one wave; empty, or what went wrong."""
    emulator.own.clear()
    lanes = machine_of(f"hip:{processor}").lanes
    try:
        emulator.run(object_code(text, processor), "f", arrays, (1,), lanes)
    except RuntimeError as error:
        return f"wrong: {str(error).splitlines()[0][:200]}"
    return ""


def verdict(emulator: Emulator, got: list[Array], expected: list[Array]) -> str:
    """What a run was that left these results."""
    for have, want in zip(got, expected, strict=True):
        if not np.array_equal(have.view(np.uint8), np.ascontiguousarray(want).view(np.uint8)):
            return f"wrong: {int((have != want.reshape(have.shape)).sum())} of {have.size} differ"
    return f"formula only ({', '.join(sorted(emulator.own))})" if emulator.own else "executed"


def outcome(emulator: Emulator, entry: Instruction) -> Outcome:
    """What becomes of an entry."""
    processor = processor_for(entry)
    if processor is None:
        return Outcome(entry.name, "", "not executed")
    lanes = machine_of(f"hip:{processor}").lanes
    rng = np.random.default_rng(3)
    operands = [drawn(rng, entry, o, lanes) for o in entry.operands]
    expected = entry.run(*operands)
    results = [np.zeros((1, lanes, o.count), DTYPES[o.elem]) for o in entry.results]
    wrong = ran(emulator, call(entry, lanes), processor, [*(x.copy() for x in operands), *results])
    return Outcome(entry.name, processor, wrong or verdict(emulator, results, list(expected)))


# Accesses of local memory -----------------------------------------------------------------------------------------

SHARED = "@shared = internal unnamed_addr addrspace(3) global [8192 x i8] poison, align 16"
LOAD_LDS = "llvm.amdgcn.global.load.lds"
BARRIER = "declare void @llvm.amdgcn.s.barrier()\n"
MEET = [
    'fence syncscope("workgroup") release',
    "call void @llvm.amdgcn.s.barrier()",
    'fence syncscope("workgroup") acquire',
]
ACCESSES = {
    "local memory by i8": ("i8", 1), "local memory by i16": ("i16", 2), "local memory by i32": ("i32", 4),
    "local memory by i64": ("i64", 8), "local memory by 3 x i32": ("<3 x i32>", 16),
    "local memory by 4 x i32": ("<4 x i32>", 16),
    "atomics of local memory": ("atomic", 4), "halves of local memory": ("halves", 4),
    "two places of local memory": ("pair", 8), "global into local memory": ("direct", 4),
}  # fmt: skip
"""By name: LLVM's type, and how far two lanes are apart."""


def _through(kind: str, apart: int) -> list[str]:
    """What a lane stores, the lane beside the opposite one reads."""
    return [
        "%from = getelementptr i8, ptr addrspace(1) %x, i32 %own",
        f"%in = load {kind}, ptr addrspace(1) %from, align {min(apart, 4)}",
        f"store {kind} %in, ptr addrspace(3) %mine, align {apart}",
        *MEET,
        f"%out = load {kind}, ptr addrspace(3) %theirs, align {apart}",
        "%to = getelementptr i8, ptr addrspace(1) %y, i32 %own",
        f"store {kind} %out, ptr addrspace(1) %to, align {min(apart, 4)}",
    ]


def _access_body(kind: str, apart: int) -> tuple[str, list[str]]:
    at = [
        f"%own = mul i32 %lane, {apart}",
        "%across = xor i32 %lane, 21",
        f"%other = mul i32 %across, {apart}",
        "%mine = getelementptr i8, ptr addrspace(3) @shared, i32 %own",
        "%theirs = getelementptr i8, ptr addrspace(3) @shared, i32 %other",
    ]
    load = [
        "%from = getelementptr i8, ptr addrspace(1) %x, i32 %own",
        "%in = load i32, ptr addrspace(1) %from, align 4",
    ]
    store = ["%to = getelementptr i8, ptr addrspace(1) %y, i32 %own", "store i32 %out, ptr addrspace(1) %to, align 4"]
    if kind == "atomic":
        body = [
            "store i32 %lane, ptr addrspace(3) %mine", *MEET,
            '%old = atomicrmw add ptr addrspace(3) %theirs, i32 %in syncscope("workgroup") monotonic', *MEET,
            "%now = load i32, ptr addrspace(3) %mine", "%twice = mul i32 %old, 3", "%out = add i32 %now, %twice",
        ]  # fmt: skip
        return SHARED, [*at, *load, *body, *store]
    if kind == "halves":
        body = [
            "store i32 %in, ptr addrspace(3) %mine", *MEET,
            "%upper = getelementptr i8, ptr addrspace(3) %theirs, i32 2",
            "%low = load half, ptr addrspace(3) %upper", "%high = load half, ptr addrspace(3) %mine",
            "%one = insertelement <2 x half> poison, half %low, i32 0",
            "%both = insertelement <2 x half> %one, half %high, i32 1", "%out = bitcast <2 x half> %both to i32",
        ]  # fmt: skip
        return SHARED, [*at, *load, *body, *store]
    if kind == "pair":
        body = [
            "store i64 %wide, ptr addrspace(3) %mine", *MEET,
            "%far = getelementptr i8, ptr addrspace(3) %theirs, i32 1024", "%p = load i64, ptr addrspace(3) %theirs",
            "store i64 %p, ptr addrspace(3) %far", *MEET, "%again = getelementptr i8, ptr addrspace(3) %mine, i32 1024",
            "%q = load i64, ptr addrspace(3) %again", "%r = load i64, ptr addrspace(3) %mine", "%s = mul i64 %q, 5",
            "%out64 = add i64 %r, %s",
        ]  # fmt: skip
        wide = ["%from = getelementptr i8, ptr addrspace(1) %x, i32 %own", "%wide = load i64, ptr addrspace(1) %from"]
        last = ["%to = getelementptr i8, ptr addrspace(1) %y, i32 %own", "store i64 %out64, ptr addrspace(1) %to"]
        return SHARED, [*at, *wide, *body, *last]
    if kind == "direct":
        copy = f"declare void @{LOAD_LDS}(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)"
        body = [
            f"call void @{LOAD_LDS}(ptr addrspace(1) %from, ptr addrspace(3) @shared, i32 4, i32 0, i32 0)",
            "call void @llvm.amdgcn.s.waitcnt(i32 0)", *MEET, "%out = load i32, ptr addrspace(3) %theirs",
        ]  # fmt: skip
        declared = f"{copy}\ndeclare void @llvm.amdgcn.s.waitcnt(i32)\n{SHARED}"
        return declared, [*at, load[0], *body, *store]
    return SHARED, [*at, *_through(kind, apart)]


def access(emulator: Emulator, name: str, processor: str) -> Outcome:
    """What becomes of an access of local memory."""
    kind, apart = ACCESSES[name]
    if kind == "direct" and not processor.startswith("gfx9"):
        return Outcome(name, processor, "not executed: the processor has none")
    lanes = machine_of(f"hip:{processor}").lanes
    declared, body = _access_body(kind, apart)
    x = np.random.default_rng(4).integers(0, 256, (lanes, apart)).astype(np.uint8)
    y = np.zeros_like(x)
    across = np.arange(lanes) ^ 21
    want = x[across].copy()
    words = x.view(np.uint32)[:, 0] if apart == 4 else None
    if kind == "atomic" and words is not None:
        lane = np.arange(lanes).astype(np.uint32)
        want = (lane + words[across] + 3 * lane[across]).astype(np.uint32)[:, None].view(np.uint8)
    elif kind == "halves" and words is not None:
        want = (words[across] >> 16 | (words & 0xFFFF) << 16)[:, None].astype(np.uint32).view(np.uint8)
    elif kind == "pair":
        wide = x.view(np.uint64)[:, 0]
        want = (wide + 5 * wide).astype(np.uint64)[:, None].view(np.uint8)
    elif kind == "<3 x i32>":
        want[:, 12:] = 0
    wrong = ran(emulator, program(BARRIER + declared, ["x", "y"], body, lanes), processor, [x, y])
    return Outcome(name, processor, wrong or verdict(emulator, [y], [want]))
