"""A kernel that was compiled for a GPU, launched by itself: `compiled[grid](x, y, n)`, `compiled.run(...)`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from weft.base import LaunchTypeError

from .arrays import gpu_of_view, is_array, refusal_text
from .binder import MAX_GRID, REFUSED, grid_of
from .compiling import target
from .descriptor import TensorDescriptor, handed_on
from .device import devices
from .gpu import arrays_of, binding, device_of, fire_on_gpu, launcher_of, refuse_host
from .launch import parts_of, plain_value, range_of, refuse_read_only, runtime_leaves
from .streams import handle_of, stream_of

bind = binding().bind
"""What takes arguments: code is compiled already, so that how large arrays are makes no difference."""
FLOATS = ("fp16", "bf16", "fp32", "fp64")


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
    kinds = [types[i] for i in dynamic]
    leaves = runtime_leaves(types)
    fires: dict[tuple[Any, ...], Callable[..., None]] = {}
    ways: dict[tuple[type, ...], Callable[..., bool] | None] = {}
    launch_options, made_for = _Given(), str(kernel.metadata.target)

    def fire_for(args: Sequence[Any], index: int) -> Callable[..., None]:
        key = (index, *map(_class_of, args))
        if key not in fires:
            fires[key] = _fire(kernel, types, names, dynamic, index, list(args), launch_options)
        return fires[key]

    def launch(gx: Any, gy: Any, gz: Any, *args: Any, stream: Any = None) -> None:
        if len(args) not in (len(types), len(dynamic)):
            raise LaunchTypeError(f"{kernel.name} takes {len(types)} arguments, {len(args)} were given")
        changing = args if len(args) == len(dynamic) else [args[i] for i in dynamic]
        launch_options.stream = stream if stream is None or stream.__class__ is int else handle_of(stream)
        try:
            classes = tuple(map(type, changing))
            way: Callable[..., bool] | None = ways.get(classes, _no_way)
            if way is not None and way(gx, gy, gz, *changing):
                return
            with target(made_for):  # whose vendor has the GPU
                device = device_of([names[i] for i in dynamic], tuple(changing))
                index = devices.current_device().index if device is None else device
                fire = fire_for(changing, index)
                values = [_value(params[i], types[i], value) for i, value in zip(dynamic, changing, strict=True)]
                by_place = dict(zip(dynamic, changing, strict=True))
                refuse_read_only(kernel, leaves, names, [by_place.get(i) for i in range(len(types))])
                if way is not None:
                    ways[classes] = _way(kinds, changing, index, fire)
                fire(*grid_of((gx, gy, gz)), *values)
        finally:
            launch_options.stream = None

    return launch


def _class_of(value: Any) -> Any:
    """The class of an argument, of a tuple those of its parts: arrays say by theirs which stream they belong to."""
    return tuple(map(_class_of, value)) if isinstance(value, (tuple, list)) else type(value)


def _no_way(*_: Any) -> bool:
    """The launch with arguments of classes that were not seen yet; None stands for those that have no quick one."""
    return False


def _way(
    kinds: Sequence[Any], args: Sequence[Any], index: int, fire: Callable[..., None]
) -> Callable[..., bool] | None:
    """A launch with arrays on one GPU and plain numbers of these classes; it does nothing, and says so, where one is
    on another GPU, or does not fit its type.

    None for arguments of other classes. It is written for the kernel, because reading arguments one by one from tables
    takes 30 times as long (300 us with 8 arguments).
    """
    names = [f"a{i}" for i in range(len(kinds))]
    checks = [f"{axis}.__class__ is int" for axis in "xyz"]
    checks += [f"0 < {axis} <= {most}" for axis, most in zip("xyz", MAX_GRID, strict=True)]
    values = []
    spaces: dict[str, Any] = {"__name__": __name__, "fire": fire}
    for name, kind, value in zip(names, kinds, args, strict=True):
        reader = _argument(name, kind, value, index, spaces) if isinstance(kind, str) else _numbers(name, kind, value)
        if reader is None:
            return None
        checks += reader[0]
        values.append(reader[1])
    source = f"def way(x, y, z{''.join(', ' + n for n in names)}):\n    try:\n"
    source += f"        if not ({' and '.join(checks)}):\n            return False\n"
    source += f"        values = ({''.join(v + ', ' for v in values)})\n"
    source += "    except Exception:\n        return False\n    fire(x, y, z, *values)\n    return True\n"
    exec(compile(source, "<launch of a compiled kernel>", "exec"), spaces)
    return cast("Callable[..., bool]", spaces["way"])


def _argument(name: str, kind: str, value: Any, index: int, spaces: dict[str, Any]) -> tuple[list[str], str] | None:
    """(what has to hold of an argument of that class, its value), as source; None where it has to be looked at."""
    kind_found = type(value)
    if kind.startswith("*"):
        return ([f"0 <= {name} < {1 << 64}"], name) if kind_found is int else _array(name, value, index, spaces)
    if kind.startswith("tensordesc"):
        return _descriptor(name, value, index, spaces) if isinstance(value, TensorDescriptor) else None
    if kind in ("i1", "u1"):
        return ([], name) if kind_found is bool else None
    if kind[0] in "iu" and kind[1:].isdigit() and (kind_found in (int, bool) or issubclass(kind_found, np.integer)):
        low, high = range_of(kind)
        return [f"{low} <= {name} < {high}"], name if kind_found is int else f"int({name})"
    if kind in FLOATS and (kind_found in (float, int, bool) or issubclass(kind_found, np.floating)):
        return [], f"float({name})" if issubclass(kind_found, np.floating) else name
    return None


def _numbers(name: str, kinds: Any, values: Any) -> tuple[list[str], str] | None:
    """The same of a tuple, of numbers and of what is constant in it: its class does not say what it holds."""
    if not isinstance(values, tuple) or not isinstance(kinds, tuple) or len(values) != len(kinds):
        return None
    checks = [f"len({name}) == {len(kinds)}"]
    for i, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        if kind == "constexpr":
            continue
        of = type(value)
        if not isinstance(kind, str) or of not in (int, float, bool) or kind.startswith("*"):
            return None
        reader = _argument(f"{name}[{i}]", kind, value, 0, {})
        if reader is None:
            return None
        checks += [f"{name}[{i}].__class__ is {of.__name__}", *reader[0]]
    return checks, name


def _array(name: str, value: Any, index: int, spaces: dict[str, Any]) -> tuple[list[str], str] | None:
    """The same of an array: one of PyTorch's, or what has its methods, such as views that libraries make of tensors."""
    if type(value).__module__ in ("torch", "torch.nn.parameter"):
        address = "" if "." in name else f"{name}_at"
        return [f"{name}.get_device() == {index}", f"not ({refusal_text(name, address)})"], address
    if gpu_of_view(value) != index:
        return None
    place = f"d{len(spaces)}"
    spaces[place] = value.device
    return [f"{name}.device == {place}"], f"{name}.data_ptr()"


def _descriptor(
    name: str, descriptor: TensorDescriptor, index: int, spaces: dict[str, Any]
) -> tuple[list[str], str] | None:
    """The same of a descriptor: as long as its array is of the class that this one's is of."""
    base = _array(f"{name}.base", descriptor.base, index, spaces)
    if base is None:
        return None
    spaces[f"c{name}"] = type(descriptor.base)
    return [f"{name}.base.__class__ is c{name}", *base[0]], handed_on(name, descriptor)


def _is_memory(kind: Any) -> bool:
    """Whether an argument of this type is an array, or a descriptor of one."""
    return isinstance(kind, str) and kind.startswith(("*", "tensordesc"))


def _value(param: Any, kind: Any, value: Any) -> Any:
    """What is handed to the kernel for an argument of a known type, or for a part of a tuple."""
    if not isinstance(kind, str):
        return tuple(_value(param, k, v) for k, v in parts_of(kind, param.name, value))
    return _bound(param, kind, value) if _is_memory(kind) else plain_value(kind, param.name, value)


def _bound(param: Any, kind: str, value: Any) -> Any:
    """What is handed to the kernel for an array, or for a descriptor of one; they have to be on a GPU.

    An integer is taken as an address there, which its caller has to know.
    """
    described = kind.startswith("tensordesc")
    if value.__class__ is int and not described and 0 <= value < 1 << 64:
        return value
    if described != hasattr(value, "block_shape") or not (described or is_array(value)):
        wanted = "a tensor descriptor" if described else "an array"
        raise LaunchTypeError(
            f"argument `{param.name}` was compiled as {kind}, so it must be {wanted}, got a {type(value).__name__}",
            param.name,
        )
    key, facts = bind(param, value)
    if key is REFUSED:
        refuse_host(param, value)
    return facts


def _fire(
    kernel: Any, types: list[Any], names: list[str], dynamic: list[int], index: int, args: list[Any], options: _Given
) -> Callable[..., None]:
    """What queues a launch on one GPU, from the grid and the values of its arguments."""
    leaves = runtime_leaves(types)
    of_library = stream_of(arrays_of(args), index)

    def stream() -> int:
        return of_library() if options.stream is None else options.stream

    return fire_on_gpu(kernel, leaves, dynamic, names, lambda made: launcher_of(made, index, stream))
