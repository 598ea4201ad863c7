"""The verdict on a kernel file: what the processes of a check sent, put together; see the room's face."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from weft.base import LaunchError
from weft.explain.costs import calibrated

from .comparing import Compared, compared
from .frames import Array, Message, send
from .process import Ended, Limits, run

__all__ = ["Settings", "Verdict", "check"]


@dataclass(frozen=True)
class Settings:
    """How a file is checked."""

    seeds: int = 3
    target: str = calibrated()[0]
    """The GPU that is simulated, and whose times are predicted."""
    limits: Limits = field(default_factory=Limits)
    readable: tuple[str, ...] = ()
    """Folders beside the installed packages that the kernel file may read and import from."""


@dataclass
class Verdict:
    """Whether a kernel file does what its reference says, and what else is known of it."""

    kind: str
    """"right"; "wrong": other values, a race, an access out of bounds; or the file failed: "error", "timeout",
    "memory", "died"."""
    reasons: list[str]
    """Why it is not right; empty where it is."""
    cpu: list[dict[str, Any]] = field(default_factory=list)
    """Each seed's outputs beside what is expected."""
    simulator: dict[str, Any] = field(default_factory=dict)
    """Launches, errors and outputs of the one that was simulated."""
    predicted: dict[str, Any] = field(default_factory=dict)
    """Time and findings of each launch."""
    process: dict[str, Any] = field(default_factory=dict)
    """How the file's process ended, what it took and was kept from, and what it printed."""

    @property
    def code(self) -> int:
        """The exit code: 0 right, 1 wrong, 3 the file failed."""
        return {"right": 0, "wrong": 1}.get(self.kind, 3)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return dict(vars(self))


@dataclass
class _Case:
    """Inputs of a seed, and what is expected of them."""

    inputs: Message
    expected: list[Array]

    @property
    def name(self) -> str:
        small = "small inputs, " if self.inputs.facts["small"] else ""
        return f"{small}seed {self.inputs.facts['seed']}"


ENDS = {
    "time": ("timeout", "ran longer than {limits.seconds:g} s, and was ended"),
    "memory": ("memory", "took more memory than {limits.memory} bytes, and was ended"),
    "processes": ("died", "started more than {limits.processes} processes, and was ended"),
    "killed": ("died", "ended the process that watches it"),
}


def check(
    kernel: str | os.PathLike[str], reference: str | os.PathLike[str], settings: Settings | None = None
) -> Verdict:
    """Check a kernel file against a reference. LaunchError where the reference itself does not work.

    The files are only run in processes of their own; see the room's face for which, and docs/howto/check.md for what
    they hold.
    """
    settings = settings or Settings()
    kernel, reference = str(Path(kernel).resolve()), str(Path(reference).resolve())
    for path in (kernel, reference):
        if not os.path.isfile(path):
            raise LaunchError(f"there is no file {path}")
    cases, tolerance = _referred(reference, settings)
    known = {"kernel": kernel, "target": settings.target}
    ended = run("candidate", known, _asking(cases), settings.limits, [kernel, *settings.readable])
    verdict = _ended(ended, kernel, settings)
    outputs = [m for m in ended.messages if m.kind == "outputs"]
    for case, message in zip(cases, outputs, strict=False):
        verdict.cpu.append(_compared(case, message.arrays, tolerance, verdict, "on the CPU"))
    if verdict.kind in ("right", "wrong") and len(outputs) != len(cases):
        verdict.kind = "died"
        verdict.reasons.append(f"{Path(kernel).name} ended before it gave outputs for each seed")
    _judge(verdict, ended, cases[0], outputs[0] if outputs else None, tolerance, kernel, settings)
    return verdict


def _referred(reference: str, settings: Settings) -> tuple[list[_Case], tuple[float, float] | None]:
    """The cases of a reference, and the tolerance that it gives."""
    ended = run(
        "reference", {"reference": reference, "seeds": settings.seeds}, lambda file: None, settings.limits, None
    )
    name = Path(reference).name
    for message in ended.messages:
        if message.kind == "error":
            lines = "".join(f"\n  {line}" for line in message.facts["lines"])
            raise LaunchError(f"the reference does not work: {message.facts['text']}{lines}")
    if not ended.messages or ended.messages[-1].kind != "done":
        text = ENDS.get(ended.end, ("", "ended before its end"))[1].format(limits=settings.limits)
        raise LaunchError(f"the reference does not work: {name} {text}", hint=ended.printed)
    given = ended.messages[1].facts["given"]
    sent = [m for m in ended.messages if m.kind in ("inputs", "expected")]
    cases = [_Case(a, b.arrays) for a, b in zip(sent[::2], sent[1::2], strict=True)]
    cases.sort(key=lambda case: not case.inputs.facts["small"])  # the one that is simulated comes first
    return cases, tuple(given) if given is not None else None


def _asking(cases: list[_Case]) -> Callable[[BinaryIO], None]:
    """What writes the request to the process of the kernel; the expected outputs are not in it."""

    def write(file: BinaryIO) -> None:
        for at, case in enumerate(cases):
            facts = {"case": at, "values": case.inputs.facts["values"]}
            timed = at == int(cases[0].inputs.facts["small"])
            send(file, "case", {**facts, "simulated": at == 0, "timed": timed}, case.inputs.arrays)

    return write


def _ended(ended: Ended, kernel: str, settings: Settings) -> Verdict:
    """The verdict as far as the end of the kernel's process says it."""
    name = Path(kernel).name
    facts = {"end": ended.end, "code": ended.code, "seconds": round(ended.seconds, 3), "confined": ended.confined}
    verdict = Verdict("right", [], process={**facts, "printed": ended.printed})
    errors = [m.facts for m in ended.messages if m.kind == "error"]
    if ended.end in ENDS:
        verdict.kind, text = ENDS[ended.end]
        verdict.reasons.append(f"{name} {text.format(limits=settings.limits)}")
    elif errors:
        lines = [f"\n  {line}" for line in errors[0].get("lines", [])]
        verdict.kind = "memory" if str(errors[0].get("text")).startswith("MemoryError") else "error"
        verdict.reasons.append(f"{errors[0].get('text')}{''.join(lines)}")
    elif ended.end == "signal" or ended.code or ended.broken or not ended.messages or ended.messages[-1].kind != "done":
        how = f"by signal {ended.code}" if ended.end == "signal" else f"with exit code {ended.code}"
        verdict.kind = "died"
        verdict.reasons.append(f"{name} ended its process {how} before it gave all outputs")
    return verdict


def _compared(
    case: _Case, outputs: list[Array], tolerance: tuple[float, float] | None, verdict: Verdict, where: str
) -> dict[str, Any]:
    """Compare the outputs of a case; what is wrong goes to the verdict."""
    rows: list[Compared] = []
    if len(outputs) != len(case.expected):
        _wrong(verdict, f"{where}, {case.name}: {len(outputs)} outputs, expected {len(case.expected)}")
    for at, (output, expected) in enumerate(zip(outputs, case.expected, strict=False)):
        rows.append(compared(output, expected, tolerance))
        if not rows[-1].ok:
            number = f" {at + 1}" if len(case.expected) > 1 else ""
            _wrong(verdict, f"{where}, {case.name}: output{number}: {rows[-1].text}")
    return {
        "seed": case.inputs.facts["seed"],
        "small": case.inputs.facts["small"],
        "outputs": [r.to_dict() for r in rows],
    }


def _wrong(verdict: Verdict, reason: str) -> None:
    verdict.kind = "wrong" if verdict.kind == "right" else verdict.kind
    verdict.reasons.append(reason)


def _judge(
    verdict: Verdict,
    ended: Ended,
    simulated: _Case,
    outputs: Message | None,
    tolerance: tuple[float, float] | None,
    kernel: str,
    settings: Settings,
) -> None:
    """Have the launches simulated and their times predicted; what is wrong goes to the verdict.

    Of a file that failed as well: what the simulator finds may be why.
    """
    launches = [m for m in ended.messages if m.kind == "launch"]
    if not any(m.facts.get("simulated") for m in launches):
        if outputs is not None:
            _wrong(verdict, f"{Path(kernel).name} launched no kernel")
        return

    def write(file: BinaryIO) -> None:
        for message in launches:
            send(file, "launch", message.facts, message.arrays)
        if outputs is not None:
            send(file, "outputs", outputs.facts)

    judged = run("judge", {"target": settings.target}, write, settings.limits, [kernel])
    if judged.end != "exit" or judged.code or not judged.messages or judged.messages[-1].kind != "written":
        kind, text = ENDS.get(judged.end, ("error", "failed"))
        verdict.kind = kind if verdict.kind in ("right", "wrong") else verdict.kind
        hint = "; give the reference `small_inputs(seed)`" if kind in ("timeout", "memory") else f"\n{judged.printed}"
        verdict.reasons.append(f"the simulation {text.format(limits=settings.limits)}{hint}")
        return
    runs = [m.facts for m in judged.messages if m.kind == "simulated"]
    errors = [{"kernel": r["kernel"], **error} for r in runs for error in r["errors"]]
    written = judged.messages[-1]
    for error in errors:
        if verdict.kind in ("died", "timeout"):  # memory that was overwritten ends a process, or hangs it
            verdict.kind = "wrong"
        _wrong(verdict, f"in the simulator: {error['kernel']}: {error['text']}")
    arrays: list[Array] = []
    for at, (found, array) in enumerate(zip(written.facts["found"], written.arrays, strict=True)):
        try:
            if found and outputs is not None:
                arrays.append(_as_output(array, outputs, at))
                continue
        except (ArithmeticError, LookupError, TypeError, ValueError):  # what the file said of it is not so
            pass
        _wrong(verdict, f"output {at + 1} is no memory that a kernel wrote")
    row: dict[str, Any] = {}
    if outputs is not None and len(arrays) == len(written.arrays):
        row = _compared(simulated, arrays, tolerance, verdict, f"in sim:{settings.target}")
    verdict.simulator = {"target": f"sim:{settings.target}", "launches": len(runs), "errors": errors, **row}
    times = [m.facts for m in judged.messages if m.kind == "predicted"]
    known = [t["microseconds"] for t in times]
    total = sum(known) if known and None not in known else None
    verdict.predicted = {"target": settings.target, "microseconds": total, "launches": times}


def _as_output(memory: Array, outputs: Message, at: int) -> Array:
    """Memory of a launch as the output that lies there."""
    output, where = outputs.arrays[at], outputs.facts["where"][at]
    view: Array = np.ndarray(output.shape, output.dtype, memory.data, where["at"] - where["span"][0], where["strides"])
    return view
