"""`TensorDescriptor`: an array of the host, for kernels that copy blocks of it to shared memory; and one of images.

from weft.gluon.nvidia.hopper import TensorDescriptor

layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
desc = TensorDescriptor.from_tensor(x, [64, 64], layout)        # x: anything that shows its memory
kernel[grid](desc)
"""

from __future__ import annotations

from typing import Any

from weft.base import load

__all__ = ["TensorDescriptor", "TensorDescriptorIm2Col"]

TensorDescriptor: Any
TensorDescriptorIm2Col: Any


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Arrays are known to the runtime, a room below this one: found when it is first asked for.
    value = globals()[name] = getattr(load("weft.runtime.gluon"), name)
    return value
