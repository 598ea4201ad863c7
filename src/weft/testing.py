"""`import weft.testing`: measuring and comparing, as in `weft.runtime.testing`, where it is written.

>>> weft.testing.do_bench(lambda: sum(range(1000)), warmup=0, rep=1) > 0
True
"""

from .runtime.testing import *  # noqa: F403
from .runtime.testing import __all__ as __all__
