"""`blackwell.clc`: work taken over from blocks that have not begun (cluster launch control); not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(globals(), "blackwell.clc", "cuda:100", "clc_result clc_result_type load_result try_cancel")
