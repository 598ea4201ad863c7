"""The stream that a launch goes to: the current one of the library whose arrays it gets.

PyTorch and CuPy each have a current stream; kernels on their arrays join it, so that they run in the order in which
they were called. With other arrays it is Weft's own: the default stream, or that of `with weft.cuda.stream(handle)`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from weft.base import LaunchTypeError

TORCH_GPUS = ("cuda", "xpu")
"""The modules that PyTorch has for GPUs, called as the type of their devices: NVIDIA's and AMD's, and Intel's."""


class _Own(threading.local):
    """What this thread launches into where the arrays have no stream of their own."""

    stream = 0


_own = _Own()


@contextmanager
def stream(handle: Any) -> Iterator[None]:
    """Launch into a stream inside a `with`, in this thread: its handle, or what gives it as `__cuda_stream__`, or a
    stream of PyTorch or CuPy.
    """
    before, _own.stream = _own.stream, handle_of(handle)
    try:
        yield
    finally:
        _own.stream = before


def handle_of(stream: Any) -> int:
    """The number by which the driver knows a stream."""
    protocol = getattr(stream, "__cuda_stream__", None)
    try:
        if protocol is not None:
            _, handle = protocol() if callable(protocol) else protocol
        else:
            handles = (getattr(stream, name, None) for name in ("cuda_stream", "sycl_queue", "ptr"))
            handle = next((h for h in handles if h is not None), stream)
        if isinstance(handle, (str, bytes, float)):
            raise ValueError(handle)
        return int(handle)
    except (TypeError, ValueError):
        raise LaunchTypeError(
            f"a stream is a handle (an integer), an object with `__cuda_stream__`, or a stream of PyTorch or CuPy; got "
            f"{stream!r}"
        ) from None


def own_stream() -> int:
    """The stream of launches on arrays of no library with streams."""
    return _own.stream


def stream_of(arrays: Iterable[Any], device: int) -> Callable[[], int]:
    """A function that gives the stream for launches with arrays of these kinds on a GPU."""
    libraries = {_library(array) for array in arrays}
    if "torch" in libraries:
        return _torch_stream(device)
    if "cupy" in libraries:
        cupy = sys.modules["cupy"]
        return lambda: int(cupy.cuda.get_current_stream().ptr)
    return own_stream


def _library(array: Any) -> str:
    """The library that an array is of: a view that another makes of a tensor has its type, or the tensor as `base`."""
    package = type(array).__module__.partition(".")[0]
    if package in ("torch", "cupy"):
        return package
    if type(getattr(array, "dtype", None)).__module__ == "torch":
        return "torch"
    base = getattr(array, "base", None)
    return package if base is None else _library(base)


def _torch_stream(device: int) -> Callable[[], int]:
    torch, gpus = sys.modules["torch"], torch_gpus()
    kind = next((kind for kind in TORCH_GPUS if getattr(torch, kind, None) is gpus), "")
    quick = getattr(torch._C, f"_{kind}_getCurrentRawStream", None)
    if quick is not None:
        return partial(quick, device)
    return lambda: handle_of(gpus.current_stream(device))


def torch_gpus() -> Any:
    """`torch.cuda`, or whatever else PyTorch has for GPUs, if it is loaded and can use one; else None."""
    torch = sys.modules.get("torch")
    modules = (getattr(torch, kind, None) for kind in TORCH_GPUS)
    return next((module for module in modules if module is not None and module.is_available()), None)


def may_use_gpu() -> bool:
    """Whether a library is loaded that can use a GPU here; cheap, and right when it says no."""
    if "weft.compiler.devices" in sys.modules or "cupy" in sys.modules:
        return True
    return torch_gpus() is not None
