"""The process of the judge: the kernels that a file launched, from their text, in the simulator; their times, findings.

It imports nothing that is checked. Launches come as data: whoever forges them has another kernel judged in the place of
theirs, and the outputs of that one are compared.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from weft import compiler, runtime, sim
from weft.base import WeftError
from weft.explain.costs import calibrated
from weft.runtime.explaining import explained
from weft.runtime.recording import values_of

from .frames import DTYPES, Array, Message, aligned, received, send


def main(settings: dict[str, Any], request: BinaryIO, result: BinaryIO) -> None:
    """Send "simulated" for each launch with memory, "predicted" for each one without, and "written" at the end.

    A launch with memory whose sizes are those of the time as well is both.
    """
    outputs, memories, judge = [], [], _Judge(settings["target"])
    for message in received(request):
        if message.kind == "outputs":
            outputs = message.facts["where"]
            continue
        facts = message.facts
        made = judge.compiled(facts)
        if facts["simulated"]:
            memories.append(_simulated(made, message, result))
        if facts["timed"]:
            send(result, "predicted", judge.predicted(made, facts))
    arrays, found = _written(outputs, memories)
    send(result, "written", {"found": found}, arrays)


class _Judge:
    """Kernels compiled once, predicted once for the same sizes."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._made: dict[str, Any] = {}
        self._predicted: dict[str, dict[str, Any]] = {}

    def compiled(self, facts: dict[str, Any]) -> Any:
        """The kernel of a launch for the simulated target; the text of why there is none."""
        key = repr((facts["text"], sorted(facts["options"].items())))
        if key not in self._made:
            source = compiler.IRSource(facts["text"], path=facts["place"][0])
            try:
                self._made[key] = runtime.compile(source, f"sim:{self.target}", facts["options"])
            except WeftError as error:
                self._made[key] = str(error)
        return self._made[key]

    def predicted(self, made: Any, facts: dict[str, Any]) -> dict[str, Any]:
        """The time and the findings of a launch."""
        name, grid = facts["name"], facts["grid"]
        if isinstance(made, str):
            return {"kernel": name, "grid": grid, "microseconds": None, "note": made, "findings": []}
        key = repr((id(made), grid, facts["values"]))
        if key not in self._predicted:
            values = values_of(facts["values"], [], DTYPES)
            with runtime.target(f"sim:{self.target}"):
                e = explained(made, self.target, tuple(grid), values, facts["arguments"])
            time = e.time
            self._predicted[key] = {
                "kernel": name,
                "grid": grid,
                "microseconds": time.microseconds if time else None,
                "low": time.low if time else None,
                "high": time.high if time else None,
                "bound": time.bound if time else None,
                "note": e.counts.note if time else f"times are predicted for {', '.join(calibrated())}",
                "findings": [
                    {"code": f.code, "place": str(f.span) if f.span else None, "what": f.what, "why": f.why}
                    | {"fix": f.fix, "microseconds": f.microseconds}
                    for f in e.findings
                ],
            }
        return self._predicted[key]


def _simulated(made: Any, message: Message, result: BinaryIO) -> tuple[list[int], set[int], list[Array]]:
    """Run a launch in the simulator; where its memory was, which blocks of it are written, and what they hold now."""
    facts, written = message.facts, set()
    pairs = zip(message.arrays, facts["addresses"], strict=True)
    memory = [aligned(block, 256, address % 256) for block, address in pairs]
    told: dict[str, Any] = {"kernel": facts["name"], "grid": facts["grid"], "errors": []}
    if isinstance(made, str):
        told["errors"].append({"kind": "CompilationError", "text": made, "place": None})
    else:
        values = values_of(facts["values"], memory, DTYPES)
        try:
            with sim.options(raise_first=False, copies="both", between_programs=True):
                report = made[tuple(facts["grid"])](*values).report
            errors: list[Any] = list(report.errors)
            written = _blocks_written(made, facts)
        except WeftError as error:
            errors = [error]
        for each in errors[:20]:
            place = getattr(each, "span", None)
            row = {"kind": type(each).__name__, "text": str(each), "place": str(place) if place else None}
            told["errors"].append(row)
    send(result, "simulated", told)
    return facts["addresses"], written, memory


def _blocks_written(made: Any, facts: dict[str, Any]) -> set[int]:
    """The blocks of memory that a kernel stores through its parameters; of layout IR all, as its stores are many."""
    blocks: list[int | None] = []  # of each parameter of the tile IR: a descriptor has its shape and strides behind it
    for value in facts["values"]:
        blocks.append(value.get("descriptor", value).get("array"))
        if "descriptor" in value:
            blocks += [None] * (2 * len(value["shape"]))
    stored = range(len(blocks)) if "ttg.num-warps" in facts["text"] else made.metadata.stored_params
    return {block for at in stored if (block := blocks[at]) is not None}


def _written(outputs: list[dict[str, Any]], memories: list[Any]) -> tuple[list[Array], list[bool]]:
    """Each output as the last launch that was given its memory left it; False where no launch wrote it."""
    arrays: list[Array] = []
    found = []
    for output in outputs:
        low, high = output["span"]
        array, written = np.empty(0, np.uint8), False
        for addresses, blocks, memory in memories:
            for at, (address, block) in enumerate(zip(addresses, memory, strict=True)):
                if address <= low < high <= address + len(block):
                    array, written = block[low - address : high - address], written or at in blocks
        arrays.append(array)
        found.append(written)
    return arrays, found
