"""Launches on arrays of the host which the CPU's code does not do: for simulated targets (simulate.py), and for those
that move arrays themselves where they must be elsewhere, which is OpenCL.

with weft.target("opencl"):
    made = kernel[grid](x, y, n, BLOCK=1024)        # arrays of the host, changed in place
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from weft.base import LaunchTypeError

from . import compiling, knobs
from .binder import asked_grid, grid_of
from .descriptor import TensorDescriptor
from .launch import Leaf, refuse_read_only, runtime_leaves
from .specialize import leaf_at
from .views import numpy_view

Fire: TypeAlias = Callable[[Any, tuple[int, int, int], tuple[Any, ...]], None]
"""What runs a compiled kernel over a grid, on the values of its parameters."""


def launched(kernel: Any, target: str, grid: Any, run: Fire, args: Any, kwargs: Any) -> Any:
    """Compile a JITFunction for a target and run it; the kernel, or None where a hook says that there is to be none."""
    bound, options = kernel._bind(*args, **kwargs)
    kernel._run_pre_hooks(*args, **kwargs)
    with compiling.target(target):
        if kernel.refuse_changed_constant():  # a function that it calls is another one now
            kernel.reset()
        made = kernel._compile_for(bound, options, warmup=False)
    if made is None:
        return None
    leaves = runtime_leaves(list(made.src.signature.values()))
    named = dict(zip(kernel.arg_names, bound, strict=True))
    sizes = grid_of(asked_grid(grid, named) if callable(grid) else grid)

    def fire(x: int, y: int, z: int, *values: Any) -> None:
        run(made, (x, y, z), values)

    values = tuple(leaf_at(bound, path) for path, _ in leaves)
    if knobs.runtime.launch_enter_hook or knobs.runtime.launch_exit_hook:
        kernel._launch_with_hooks(made, fire, sizes, bound, values)
    else:
        fire(*sizes, *values)
    return made


def launch(kernel: Any, target: str, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Run a JITFunction over a grid, to its end; the kernel, or None where a hook says that there is to be none."""
    return launched(kernel, target, grid, _run, args, kwargs)


def launcher_of(kernel: Any) -> Callable[..., None]:
    """What launches a compiled kernel: (x, y, z, *values of its parameters)."""

    def launch(x: int, y: int, z: int, *values: Any, stream: Any = None) -> None:
        if stream is not None:
            raise LaunchTypeError("a launch that returns when it has ended has no stream", "stream")
        _run(kernel, (x, y, z), values)

    return launch


def _run(made: Any, sizes: tuple[int, int, int], values: tuple[Any, ...]) -> None:
    leaves = runtime_leaves(list(made.src.signature.values()))
    if len(values) != len(leaves):
        raise LaunchTypeError(f"{len(values)} arguments were given, the kernel takes {len(leaves)}")
    refuse_read_only(made, leaves, list(made.src.signature), _by_path(leaves, values))
    if all(sizes):
        parts = flattened(values)
        pairs = enumerate(zip(made.metadata.params, parts, strict=True))
        made.run_on_host(sizes, [numpy_view(v, f"number {i + 1}") if k[0] == "*" else v for i, (k, v) in pairs])


def _by_path(leaves: Sequence[Leaf], values: tuple[Any, ...]) -> Any:
    """Values where the parameters have them, in tuples or not: {0: x, 1: {0: y, 1: z}}."""
    root: dict[int, Any] = {}
    for (path, _), value in zip(leaves, values, strict=True):
        place = root
        for i in path[:-1]:
            place = place.setdefault(i, {})
        place[path[-1]] = value
    return root


def flattened(values: Iterable[Any], has_map: Callable[[int], bool] = lambda place: False) -> list[Any]:
    """Values by the kernel's parameters: a descriptor is several, and itself where there `has_map`, a tensor map."""
    parts: list[Any] = []
    for value in values:
        if not isinstance(value, TensorDescriptor):
            parts.append(value)
        elif has_map(len(parts)):
            parts += [value, *value.shape, *value.strides]
        else:
            parts += [value.base, int(value.padding == "nan"), *value.shape, *value.strides]
            while has_map(len(parts)):  # for the loads of it that the copy engine does
                parts.append(value)
    return parts
