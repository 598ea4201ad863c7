"""triton._C.libtriton.gsan_testing: of what GSan is tested with, the scopes of atomic operations; Weft has no GSan."""

from weft.ir.enums import MemSyncScope as _MemSyncScope

AtomicScope = _MemSyncScope
