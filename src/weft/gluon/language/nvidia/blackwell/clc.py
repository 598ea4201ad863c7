"""`blackwell.clc`: work taken over from blocks that have not begun (cluster launch control); not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("blackwell.clc", "cuda:100")
clc_result = _missing("clc_result")
clc_result_type = _missing("clc_result_type")
load_result = _missing("load_result")
try_cancel = _missing("try_cancel")

_publish(globals())
