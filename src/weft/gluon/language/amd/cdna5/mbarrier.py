"""`gl.amd.cdna5.mbarrier`: barriers in shared memory of gfx1250; not supported yet."""

from ....elsewhere import unsupported as _unsupported
from ...layouts import MBarrierLayout as MBarrierLayout

__getattr__ = _unsupported(globals(), "amd.cdna5.mbarrier", "hip:gfx1250", "arrive init wait")
