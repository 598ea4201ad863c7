"""`TensorDescriptor`: an array of the host, for kernels of gfx1250 that copy blocks of it by the tensor data mover.

from weft.gluon.amd.gfx1250 import TensorDescriptor

desc = TensorDescriptor.from_tensor(x, [64, 64], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
kernel[grid](desc)                  # in it: tdm.async_load(desc, [row, column], memory)
"""

from __future__ import annotations

from typing import Any

from weft.base import load

__all__ = ["TensorDescriptor"]

TensorDescriptor: Any


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Arrays are known to the runtime, a room below this one: found when it is first asked for.
    value = globals()[name] = getattr(load("weft.runtime.amd.descriptors"), name)
    return value
