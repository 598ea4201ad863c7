"""Where each process of a check begins: confined before it imports anything large, as threads have to come later."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from weft.base.faces import load

from .confine import confine


def enter(settings: str) -> None:
    """Confine this process, and run its role, as `process.run` says."""
    told: dict[str, Any] = json.loads(settings)
    confined: dict[str, bool] = {}
    if told["readable"] is not None:
        confined = confine(told["readable"], [told["folder"], "/dev/null"])
    result = os.fdopen(told["result"], "wb")
    frames = load("weft.checking.frames")
    frames.send(result, "confined", confined)
    main = {
        "candidate": lambda: load("weft.checking.candidate").main,
        "judge": lambda: load("weft.checking.judge").main,
        "reference": lambda: load("weft.checking.reference").main,
    }[told["role"]]()
    main(told, sys.stdin.buffer, result)
