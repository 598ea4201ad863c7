"""`TensorDescriptor`: an array of the host, for kernels that copy blocks of it to shared memory.

from weft.gluon.nvidia.hopper import TensorDescriptor

layout = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
desc = TensorDescriptor.from_tensor(x, [64, 64], layout)        # x: anything that shows its memory
kernel[grid](desc)
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["TensorDescriptor"]

TensorDescriptor: Any


def __getattr__(name: str) -> Any:
    if name != "TensorDescriptor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Arrays are known to the runtime, a room below this one: found when it is first asked for.
    value = globals()[name] = importlib.import_module("weft.runtime.gluon").TensorDescriptor
    return value
