"""`blackwell.clc`: work taken over from blocks that have not begun (cluster launch control); not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "clc_result",
    "clc_result_type",
    "load_result",
    "try_cancel",
]

_MISSING = only_on(
    "blackwell.clc",
    [
        "clc_result",
        "clc_result_type",
        "load_result",
        "try_cancel",
    ],
    "cuda:100",
)
clc_result = _MISSING["clc_result"]
clc_result_type = _MISSING["clc_result_type"]
load_result = _MISSING["load_result"]
try_cancel = _MISSING["try_cancel"]
