"""Processors by name: those that LLVM knows, beside the one this runs on.

>>> cpu_named("neoverse-v1").triple, cpu_named("apple-m1").triple
('aarch64-unknown-linux-gnu', 'arm64-apple-macosx11.0.0')

A name is looked for in the family of the processor at hand first, then in the others (`FAMILIES`); the system is this
one where the processor is of this family, else the one that such processors usually run, unless `triple` says it.
"""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache

import llvmlite.binding as llvm

from weft.base import LaunchError
from weft.targets import CPU, DOTPROD

from .host import host_cpu

FAMILIES = ("aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu")
"""Where a processor is looked for that is none of this family."""
APPLE = "arm64-apple-macosx11.0.0"
"""The system of processors whose names begin with "apple-", where it is not this one."""


@lru_cache(maxsize=32)
def cpu_named(name: str = "", features: str = "", triple: str = "") -> CPU:
    """The processor of LLVM's name `name` and features such as "+avx2,-fma"; without a name the one this runs on.

    `triple` is LLVM's name of the system that the code is for, "aarch64-unknown-linux-gnu" say.
    """
    if not name:
        return host_cpu()
    found = _family_of(name, features, triple)
    if not triple and name.startswith("apple-") and "apple" not in found:
        found = APPLE
    enabled = {f[1:] for f in features.split(",") if f.startswith("+")}
    if CPU("", found).arch == "aarch64" and _tried(_QUADRUPLES, name, features, found).returncode == 0:
        enabled.add(DOTPROD)
    return CPU(name, found, tuple(sorted(enabled)), features)


_PROBE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
code, name, features, *triples = sys.argv[1:]
for triple in triples:
    print("triple", triple, file=sys.stderr, flush=True)
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        print("no triple:", error, file=sys.stderr, flush=True)
        continue
    machine = target.create_target_machine(cpu=name, features=features)
    machine.emit_object(llvm.parse_assembly(code))
"""
_NOTHING = "define void @f() { ret void }"
_QUADRUPLES = """
declare <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32>, <16 x i8>, <16 x i8>)
define <4 x i32> @quadruples(<4 x i32> %sums, <16 x i8> %a, <16 x i8> %b) {
  %more = call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32> %sums, <16 x i8> %a, <16 x i8> %b)
  ret <4 x i32> %more
}
"""
"""Where there is no `sdot`, LLVM ends the process."""


def _tried(code: str, name: str, features: str, *triples: str) -> subprocess.CompletedProcess[str]:
    """What LLVM says when it compiles code for a processor, for one system after the other.

    It has no way to be asked: it writes to stderr and goes on, or ends the process.  So it is another process.
    """
    command = [sys.executable, "-c", _PROBE, code, name, features, *triples]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):  # it cannot be tried here
        return subprocess.CompletedProcess(command, 1, "", "".join(f"triple {triple}\n" for triple in triples))


def _family_of(name: str, features: str, triple: str) -> str:
    """The triple under which LLVM knows a processor; LaunchError where it does not know it, or one of the features."""
    here = llvm.get_process_triple()
    triples = [triple] if triple else [here, *(f for f in FAMILIES if CPU("", f).arch != CPU("", here).arch)]
    in_turn = sorted(triples, key=lambda t: CPU("", t).is_x86)  # there a name that is not known ends the process
    done = _tried(_NOTHING, name, features, *in_turn)
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
            return candidate
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
