"""Launches for targets that take arrays of the host, and move them themselves where they must be elsewhere: OpenCL.

with weft.target("opencl"):
    made = kernel[grid](x, y, n, BLOCK=1024)        # arrays of the host, changed in place
"""

from __future__ import annotations

from typing import Any

from weft.base import LaunchTypeError

from . import compiling, knobs
from .binder import asked_grid, grid_of
from .descriptor import TensorDescriptor
from .launch import refuse_read_only, runtime_leaves
from .specialize import leaf_at
from .views import numpy_view


def launch(kernel: Any, target: str, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Run a JITFunction over a grid, to its end; the kernel, or None where a hook says that there is to be none."""
    bound, options = kernel._bind(*args, **kwargs)
    kernel._run_pre_hooks(*args, **kwargs)
    with compiling.target(target):
        if kernel.refuse_changed_constant():  # a function that it calls is another one now
            kernel.reset()
        made = kernel._compile_for(bound, options, warmup=False)
    if made is None:
        return None
    leaves = runtime_leaves(list(made.src.signature.values()))
    refuse_read_only(made, leaves, kernel.arg_names, bound)
    sizes = grid_of(asked_grid(grid, dict(zip(kernel.arg_names, bound, strict=True))) if callable(grid) else grid)
    values = tuple(leaf_at(bound, path) for path, _ in leaves)

    def fire(x: int, y: int, z: int, *values: Any) -> None:
        if x and y and z:
            made.run_on_host((x, y, z), _arguments(made.metadata.params, values))

    if knobs.runtime.launch_enter_hook or knobs.runtime.launch_exit_hook:
        kernel._launch_with_hooks(made, fire, sizes, bound, values)
    else:
        fire(*sizes, *values)
    return made


def _arguments(params: Any, values: tuple[Any, ...]) -> list[Any]:
    """Values by the kernel's parameters: arrays as NumPy's in the same memory; a descriptor is several."""
    parts: list[Any] = []
    for value in values:
        if isinstance(value, TensorDescriptor):
            parts += [value.base, int(value.padding == "nan"), *value.shape, *value.strides]
        else:
            parts.append(value)
    if len(parts) != len(params):
        raise LaunchTypeError(f"{len(parts)} arguments were given, the kernel takes {len(params)}")
    return [
        numpy_view(value, f"number {i + 1}") if kind.startswith("*") else value
        for i, (kind, value) in enumerate(zip(params, parts, strict=True))
    ]
