"""Processors by name: those that LLVM knows, beside the one this runs on.

>>> cpu_named("neoverse-v1").triple, cpu_named("apple-m1").triple
('aarch64-unknown-linux-gnu', 'arm64-apple-macosx11.0.0')

A name is looked for in the family of the processor at hand first, then in the others (`FAMILIES`); the system is this
one where the processor is of this family, else the one that such processors usually run, unless `triple` says it.

LLVM does not tell which features a processor has. But it puts the code of one function into another only if the latter
has all features that the former needs: so each feature gets a function, all of which are called by one for the
processor, and those that are still there after optimisation need a feature that it lacks.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import llvmlite.binding as llvm

from weft.base import LaunchError
from weft.targets import CPU, FEATURES, family_of

from .host import host_cpu

FAMILIES = ("aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu")
"""Where a processor is looked for that is none of this family."""
APPLE = "arm64-apple-macosx11.0.0"
"""The system of processors whose names begin with "apple-", where it is not this one."""


@lru_cache(maxsize=32)
def cpu_named(name: str = "", features: str = "", triple: str = "") -> CPU:
    """The processor of LLVM's name `name`; without a name, or by that of "native", the one this runs on.

    `features` such as "+avx2,-fma" add to what LLVM knows that it has, or take from it. `triple` is LLVM's name of the
    system that the code is for, "aarch64-unknown-linux-gnu" say.
    """
    if name in ("", "native"):
        host = host_cpu()
        if not features and triple in ("", host.triple):
            return host
        flags = f"{host.feature_string},{features}".rstrip(",")
        system, enabled = _family_of(host.name, flags, triple or host.triple)
        return replace(host, triple=system, features=enabled, feature_string=flags)
    found, enabled = _family_of(name, features, triple)
    if not triple and name.startswith("apple-") and "apple" not in found:
        found = APPLE
    return CPU(name, found, enabled, features)


_PROBE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()

def code(name, features, asked):
    yield "@g = global i32 0"
    yield f'attributes #0 = {{ "target-cpu"="{name}" "target-features"="{features}" }}'
    yield "define i128 @wide(ptr %p, i128 %x) #0 { %y = atomicrmw xchg ptr %p, i128 %x seq_cst ret i128 %y }"
    yield "define void @whole() #0 {"
    yield from (f'call void @"{feature}"()' for feature in asked)
    yield "ret void }"
    for k, feature in enumerate(asked):
        yield f'define internal void @"{feature}"() #{k + 1} {{ store volatile i32 {k}, ptr @g ret void }}'
        yield f'attributes #{k + 1} = {{ "target-cpu"="{name}" "target-features"="{features},+{feature}" }}'

name, features, *systems = sys.argv[1:]
for triple, asked in zip(systems[::2], systems[1::2]):
    print("triple", triple, file=sys.stderr, flush=True)
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        print("no triple:", error, file=sys.stderr, flush=True)
        continue
    machine = target.create_target_machine(cpu=name, features=features)
    machine.emit_object(llvm.parse_assembly("define void @f() { ret void }"))
    module = llvm.parse_assembly("\\n".join(code(name, features, asked.split())))
    module.triple = triple
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes.getModulePassManager().run(module, passes)
    wide = ["cx16"] if "cmpxchg16b" in machine.emit_assembly(module) else []
    lacking = {function.name for function in module.functions}
    print(triple, *wide, *(feature for feature in asked.split() if feature not in lacking), flush=True)
"""


def _tried(name: str, features: str, triples: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What LLVM says when it compiles for a processor, for one system after the other.

    It has no way to be asked: it writes to stderr and goes on, or ends the process.  So it is another process.
    """
    systems = [word for triple in triples for word in (triple, " ".join(FEATURES.get(family_of(triple), ())))]
    command = [sys.executable, "-c", _PROBE, name, features, *systems]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):  # it cannot be tried here
        return subprocess.CompletedProcess(command, 1, "", "".join(f"triple {triple}\n" for triple in triples))


def _family_of(name: str, features: str, triple: str) -> tuple[str, tuple[str, ...]]:
    """The triple under which LLVM knows a processor, and its features, with those that were named; LaunchError where
    it does not know it, or one of the features.
    """
    here = llvm.get_process_triple()
    triples = [triple] if triple else [here, *(f for f in FAMILIES if family_of(f) != family_of(here))]
    in_turn = sorted(triples, key=lambda t: family_of(t) == "x86_64")  # there a name that is not known ends the process
    done = _tried(name, features, in_turn)
    said: dict[str, list[str]] = {}
    for line in done.stderr.splitlines():
        mark, _, of = line.partition("triple ")
        if not mark and of:
            said[of] = []
        elif said:
            said[list(said)[-1]].append(line)
    refusals = {of: _complaints(lines) for of, lines in said.items()}
    if done.returncode < 0 and not refusals[list(said)[-1]]:
        refusals[list(said)[-1]] = [f"LLVM fails on {name!r} with features {features!r}"]
    for candidate in triples:
        if refusals.get(candidate) == []:
            has = {of: known for of, *known in map(str.split, done.stdout.splitlines())}.get(candidate)
            told = ("cx16", *FEATURES.get(family_of(candidate), ())) if has is not None else ()
            others = (flag[1:] for flag in features.split(",") if flag.startswith("+") and flag[1:] not in told)
            return candidate, tuple(sorted({*others, *(has or ())}))
    known = [of for of in refusals if not any(_UNKNOWN_NAME in line for line in refusals[of])]
    raise _refused(refusals[next(of for of in (*known, *triples) if of in refusals)][0], triple)


_UNKNOWN_NAME = "is not a recognized processor"


def _complaints(lines: list[str]) -> list[str]:
    """What LLVM does not know, in its words."""
    known = [line.partition(" (")[0] for line in lines if "is not a recognized" in line]
    return known + [line.partition("no triple: ")[2] for line in lines if line.startswith("no triple: ")]


def _refused(complaint: str, triple: str) -> LaunchError:
    return LaunchError(
        complaint,
        "triple" if triple and triple in complaint else "cpu",
        hint="names and features are those of LLVM: `weft info` shows this machine's; cpu='x86-64-v3', "
        "features='+avx2,+fma'; of another family: cpu='neoverse-v1', cpu='apple-m1'",
    )
