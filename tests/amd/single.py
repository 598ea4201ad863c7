"""Every instruction of AMD's tables once by itself: one wave loads its operands, executes it, stores the result.

    for outcome in outcomes(emulator): print(outcome)

What comes out is compared with the entry's meaning in `targets/amd`, which is what the simulator computes. Outcomes:

    executed        by the emulator, and the same
    formula only    the emulator has it not or wrong: executed by meanings.py, and the same
    not executed    there is no emulator of its processor
    wrong: ...      everything else
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from weft.machines import machine_of
from weft.ops.dtypes import DTYPES
from weft.targets.amd import INSTRUCTIONS
from weft.targets.instruction import Instruction

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
    body, given = [], []
    for kind, what in entry.params["arguments"]:
        if isinstance(what, int):
            given.append(f"{kind} {what}")
            continue
        body += [
            f"%{what}.at = getelementptr {kind}, ptr addrspace(1) %{what}, i32 %lane",
            f"%{what}.in = load {kind}, ptr addrspace(1) %{what}.at, align 4",
        ]
        given.append(f"{kind} %{what}.in")
    returns = entry.params["returns"]
    body.append(f"%out = call {returns} @{entry.text}({', '.join(given)})")
    parts = returns.strip("{} ").split(", ") if returns.startswith("{") else [returns]
    for i, (part, result) in enumerate(zip(parts, entry.results, strict=True)):
        value = "%out"
        if len(parts) > 1:
            value = f"%out.{i}"
            body.append(f"{value} = extractvalue {returns} %out, {i}")
        body += [
            f"%{result.name}.at = getelementptr {part}, ptr addrspace(1) %{result.name}, i32 %lane",
            f"store {part} {value}, ptr addrspace(1) %{result.name}.at, align 4",
        ]
    names = [o.name for o in (*entry.operands, *entry.results)]
    return program(f"declare {returns} @{entry.text}({', '.join(kinds)})", names, body, threads)


def drawn(rng: np.random.Generator, entry: Instruction, elem: str, shape: tuple[int, ...]) -> Array:
    """Operands whose products are exact: small numbers for products, any words for exchanges."""
    if entry.products:
        low = 0 if "u8" in entry.params.get("types", ()) and elem == "i8" else -4
        return rng.integers(low, 5, shape).astype(np.float32).astype(DTYPES[elem])
    return rng.integers(-(1 << 31), 1 << 31, shape, np.int64).astype(np.int32).view(DTYPES[elem])


def execute(emulator: Emulator, entry: Instruction, processor: str) -> str:
    """What becomes of an entry on a processor."""
    lanes = machine_of(f"hip:{processor}").lanes
    rng = np.random.default_rng(3)
    operands = [drawn(rng, entry, o.elem, (1, lanes, o.count)) for o in entry.operands]
    if "lane" in entry.params.get("addresses", ()):  # an operand that says another lane
        operands[0] = (rng.permutation(lanes).astype(np.int32) * 4).reshape(1, lanes, 1)
    expected = entry.run(*operands)
    given = [x.copy() for x in operands]
    results = [np.zeros((1, lanes, o.count), DTYPES[o.elem]) for o in entry.results]
    before = set(emulator.own)
    emulator.own.clear()
    try:
        emulator.run(object_code(call(entry, lanes), processor), "f", [*given, *results], (1,), lanes)
    except RuntimeError as error:
        return f"wrong: {str(error).splitlines()[0][:200]}"
    finally:
        used = set(emulator.own)
        emulator.own.update(before)
    for got, want in zip(results, expected, strict=True):
        if not np.array_equal(got.view(np.uint8), np.ascontiguousarray(want).view(np.uint8)):
            where = np.argwhere(got != want)
            return f"wrong: {len(where)} of {got.size} differ, first at lane, register {where[:1, 1:].tolist()}"
    return "formula only" if used else "executed"


def outcomes(emulator: Emulator, only: str = "") -> Iterator[Outcome]:
    """Of all entries whose name has this in it."""
    for name, entry in INSTRUCTIONS.items():
        if only in name and entry.semantics is not None and not entry.touches:
            processor = processor_for(entry)
            if processor is None:
                yield Outcome(name, "", "not executed")
            else:
                yield Outcome(name, processor, execute(emulator, entry, processor))
