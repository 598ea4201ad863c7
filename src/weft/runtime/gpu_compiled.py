"""A kernel that was compiled for an NVIDIA GPU, launched by itself: `compiled[grid](x, y, n)`, `compiled.run(...)`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from weft.base import LaunchTypeError
from weft.compiler import devices

from .arrays import is_array
from .binder import REFUSED, grid_of
from .gpu import arrays_of, bind, device_of, launcher_of, map_makers, refuse_host
from .launch import make_fire, plain_value, runtime_leaves
from .streams import handle_of, stream_of

__all__ = ["make_gpu_launcher"]


class _Given(threading.local):
    """The stream that this thread's launch was told to go to."""

    stream: int | None = None


def make_gpu_launcher(kernel: Any) -> Callable[..., None]:
    """(gx, gy, gz, *arguments, stream=None) for a kernel for GPUs: a launch, with or without the constants.

    Without a stream it goes where the library of its arrays launches now.
    """
    signature = getattr(kernel.src, "signature", None)
    types = list(signature.values()) if signature is not None else list(kernel.metadata.params)
    names = list(signature) if signature is not None else [f"{i}" for i in range(len(types))]
    dynamic = [i for i, t in enumerate(types) if t != "constexpr"]
    params = [
        SimpleNamespace(name=n, annotation_type="", do_not_specialize=True, do_not_specialize_on_alignment=True)
        for n in names
    ]
    fires: dict[tuple[Any, ...], Callable[..., None]] = {}
    given = _Given()

    def made(args: list[Any]) -> Callable[..., None]:
        device = device_of([names[i] for i in dynamic], tuple(args))
        index = devices.current_device().index if device is None else device
        key = (index, *map(type, args))
        if key not in fires:
            fires[key] = _fire(kernel, types, names, dynamic, index, args, given)
        return fires[key]

    def launch(gx: Any, gy: Any, gz: Any, *args: Any, stream: int | None = None) -> None:
        if len(args) not in (len(types), len(dynamic)):
            raise LaunchTypeError(f"{kernel.name} takes {len(types)} arguments, {len(args)} were given")
        own = [args[i] for i in dynamic] if len(args) == len(types) else list(args)
        fire = made(own)
        values = [
            _bound(params[i], types[i], value) if _is_memory(types[i]) else plain_value(types[i], names[i], value)
            for i, value in zip(dynamic, own, strict=True)
        ]
        given.stream = None if stream is None else handle_of(stream)
        try:
            fire(*grid_of((gx, gy, gz)), *values)
        finally:
            given.stream = None

    return launch


def _is_memory(kind: Any) -> bool:
    """Whether an argument of this type is an array, or a descriptor of one."""
    return isinstance(kind, str) and kind.startswith(("*", "tensordesc"))


def _bound(param: Any, kind: str, value: Any) -> Any:
    """What is handed to the kernel for an array, or for a descriptor of one; they have to be on a GPU."""
    described = kind.startswith("tensordesc")
    if described != hasattr(value, "block_shape") or not (described or is_array(value)):
        wanted = "a tensor descriptor" if described else "an array"
        raise LaunchTypeError(
            f"argument `{param.name}` was compiled as {kind}, so it must be {wanted}, got a {type(value).__name__}",
            param.name,
        )
    key, found = bind(param, value)
    if key is REFUSED:
        refuse_host(param, value)
    return found


def _fire(
    kernel: Any, types: list[Any], names: list[str], dynamic: list[int], index: int, args: list[Any], given: _Given
) -> Callable[..., None]:
    """What queues a launch on one GPU, from the grid and the values of its arguments."""
    found = runtime_leaves(types)
    of_library = stream_of(arrays_of(args), index)

    def stream() -> int:
        return of_library() if given.stream is None else given.stream

    return make_fire(kernel, found, dynamic, launcher_of(kernel, index, stream), map_makers(kernel, found, names))
