"""The process of the kernel: the file that is checked, run on copies of the inputs; what it returns and launches.

Everything here may be changed by the file, which runs in the same process. So what is sent is only outputs and
launches, and neither is believed: outputs are compared by `check`, launches are run again by the judge.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from weft import compat
from weft.runtime.recording import Recorded, Recording, span_of_view
from weft.runtime.views import numpy_view

from .files import Unfit, function_of, loaded, returned, told
from .frames import DTYPES, Array, received, send, unpacked


def main(settings: dict[str, Any], request: BinaryIO, result: BinaryIO) -> None:
    """Run the file in this process, in which `import triton` finds Weft from now on."""
    compat.install()
    run_file(settings, request, result)


def run_file(settings: dict[str, Any], request: BinaryIO, result: BinaryIO) -> None:
    """Send "outputs" of each case, and "launch" for each launch before."""
    path = settings["kernel"]
    try:
        module = loaded(path)
        run = function_of(module, "run", "*inputs")
        for case in received(request):
            _run_case(run, case.facts, unpacked(case.facts["values"], case.arrays), settings, result)
        send(result, "done", {})
    except BaseException as error:  # SystemExit included: the file may not end the check
        send(result, "error", told(error, [path]))


def _run_case(run: Any, facts: dict[str, Any], values: list[Any], settings: dict[str, Any], result: BinaryIO) -> None:
    """Run the kernel file on one case, and send what came of it."""
    marks = {"simulated": facts["simulated"], "timed": facts["timed"]}

    def told(launch: Recorded) -> None:
        send(result, "launch", {**launch.to_dict(), **marks}, launch.memory)

    recording = Recording(settings["target"], facts["simulated"], told)
    with recording if any(marks.values()) else _Unwatched(settings["target"]):
        outputs = returned(run(*values), "run")
    views = [_view(each, i, Path(settings["kernel"]).name) for i, each in enumerate(outputs)]
    spans = [span_of_view(view) if view.size else (0, 0) for view in views]
    where = [{"span": s, "at": v.ctypes.data, "strides": v.strides} for s, v in zip(spans, views, strict=True)]
    send(result, "outputs", {"case": facts["case"], "where": where}, views)


class _Unwatched(Recording):
    """Launches done and not recorded: of further seeds, only what they give is looked at."""

    def __init__(self, target: str) -> None:
        super().__init__(target, memory=False)

    def _recorded(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return None


def _view(output: Any, at: int, file: str) -> Array:
    """An output as NumPy's."""
    try:
        view = numpy_view(output, f"output {at + 1}")
    except Exception:
        kind = type(output).__name__
        raise Unfit(f"run of {file} returned a {kind} as output {at + 1}; it is to return arrays") from None
    if view.dtype.name not in DTYPES:
        raise Unfit(f"run of {file} returned an array of {view.dtype} as output {at + 1}")
    return np.asarray(view)
