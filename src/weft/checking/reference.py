"""The process of the reference: inputs and what is expected of them, for each seed."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from .files import Unfit, function_of, loaded, returned, told
from .frames import DTYPES, packed, send


def main(settings: dict[str, Any], request: BinaryIO, result: BinaryIO) -> None:
    """Send "inputs" and "expected" of each case: those of the seeds, and "small", the one that is simulated."""
    path = settings["reference"]
    try:
        module = loaded(path)
        inputs, reference = function_of(module, "inputs", "seed"), function_of(module, "reference", "*inputs")
        send(result, "tolerance", {"given": _tolerance(module)})
        cases = [(inputs, seed) for seed in range(settings["seeds"])]
        if hasattr(module, "small_inputs"):
            cases.append((function_of(module, "small_inputs", "seed"), 0))
        for at, (make, seed) in enumerate(cases):
            values = returned(make(seed), f"{make.__name__}({seed})")
            facts, arrays = packed(values)
            small = at == settings["seeds"]
            send(result, "inputs", {"seed": seed, "small": small, "values": facts}, arrays)
            expected = [np.asarray(each) for each in returned(reference(*values), "reference")]
            for number, each in enumerate(expected):
                if each.dtype.name not in DTYPES:
                    raise Unfit(f"output {number + 1} of the reference is an array of {each.dtype}")
            send(result, "expected", {}, expected)
        send(result, "done", {})
    except Exception as error:
        send(result, "error", told(error, [path]))


def _tolerance(module: Any) -> list[float] | None:
    """TOLERANCE of the file: a number, or (rtol, atol)."""
    given = getattr(module, "TOLERANCE", None)
    if given is None:
        return None
    pair = given if isinstance(given, tuple) else (given, given)
    if len(pair) != 2 or not all(isinstance(x, (int, float)) and 0 <= x < 1 for x in pair):
        raise Unfit(f"TOLERANCE is a number below 1, or a pair of them (rtol, atol), got {given!r}")
    return [float(x) for x in pair]
