"""Launches on GPUs: for each kernel, what the binder calls back when its arrays are in a GPU's memory.

It is the CPU's way of launching (see `jit`), with other answers: an array has to be on a GPU, all on the same one; code
is compiled for that GPU; a launch goes into the current stream of the arrays' library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from weft import compiler
from weft.base import LaunchError, NoDevice
from weft.base.locks import renewed
from weft.compiler.devices import driver_of_cupy, vendor_of

from . import compiling, gpu_arrays, knobs
from .allocation import get_allocator, has_allocator
from .arrays import ArrayFacts, array_facts, other_vendor, reader_of
from .binder import (
    MAX_GRID,
    NO_OPTIONS,
    REFUSED,
    Handler,
    bind_slowly as bind_on_host,
    grid_of,
    handler_for,
    handlers,
    int_key,
    make_binder,
)
from .compiled_forms import key_of_specialization
from .descriptor import TensorDescriptor
from .device import devices
from .extents import is_within
from .futures import FutureKernel, unless_failed
from .launch import MapMaker, descriptor_rank, make_fire, refuse_read_only, runtime_leaves
from .made_maps import made_maps
from .parameters import Arguments, Parameters, parameters_of
from .prepared import NoPlan, Prepared, supported
from .prepared_gpu import PlanOnGPU
from .protocols import named
from .quick import Last, chain, make_quick
from .specialize import FINE, check_annotated, specialize_param
from .streams import stream_of


def arrays_of(values: Iterable[Any]) -> Iterator[Any]:
    """The arrays among arguments, those of descriptors and within tuples too."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from arrays_of(value)
        elif hasattr(value, "block_shape") and hasattr(value, "base"):
            yield from arrays_of((value.base,))
        elif reader_of(value) is not None:
            yield value


def _gpu_of(array: Any) -> int | None:
    """The number of the GPU whose memory an array is in; None for one in the host's."""
    if type(array).__module__.startswith("torch") and hasattr(array, "is_cpu"):  # it says so without further ado
        if array.is_cpu:
            return None
        if array.device.type in devices.memory_kinds:
            return int(array.get_device())
    facts = array_facts(array)
    if facts is None or facts.device is None:
        return None
    its = array.driver if isinstance(array, gpu_arrays.DeviceArray) else driver_of_cupy(array)
    if its not in (None, devices.driver()):
        raise other_vendor(named(array), *map(vendor_of, (its, devices.driver())))
    return facts.device


def on_gpu(value: Any) -> bool:
    """Whether an argument is an array in a GPU's memory, or a descriptor or tuple of such arrays."""
    return bool(_gpus_of(value))


def _gpus_of(value: Any, name: str | None = None) -> list[int]:
    """The numbers of the GPUs whose memory an argument's arrays are in. LaunchError for an array that has no memory."""
    try:
        return [gpu for array in arrays_of((value,)) if (gpu := _gpu_of(array)) is not None]
    except LaunchError as error:
        raise (error if name is None else error.of_argument(name)) from None


def device_facts(value: Any) -> ArrayFacts | None:
    """Where an array in a GPU's memory is. LaunchError for one in the host's."""
    facts = array_facts(value)
    if facts is not None and facts.device is None:
        raise _lives_on_the_host(value, facts)
    return facts


def _lives_on_the_host(value: Any, facts: ArrayFacts) -> LaunchError:
    module, number = type(value).__module__.partition(".")[0], getattr(value, "ndim", 1) == 0
    hint = "copy it first: weft.cuda.to_device(x), x.cuda() in PyTorch, cupy.asarray(x)"
    return LaunchError(
        f"a {module}.{type(value).__name__} lives in host memory, but the kernel runs on a GPU",
        hint=f"{hint}; or pass its number, x.item()" if number else hint,
    )


def refuse_host(param: Any, value: Any) -> None:
    """Raise LaunchError for an array, or a descriptor or a tuple of such, that is in host memory, or has none."""
    try:
        for array in arrays_of((value,)):
            device_facts(array)
    except LaunchError as error:
        raise error.of_argument(param.name) from None


def device_of(names: list[str], args: tuple[Any, ...]) -> int | None:
    """The number of the GPU that the arrays among the arguments are on. LaunchError where they are on several."""
    devices_found: dict[int, str] = {}
    for name, value in zip(names, args, strict=True):
        for device in _gpus_of(value, name):
            devices_found.setdefault(device, name)
    if len(devices_found) > 1:
        (first, first_name), (second, other) = list(devices_found.items())[:2]
        raise LaunchError(
            f"argument `{first_name}` is on GPU {first}, argument `{other}` on GPU {second}; a launch runs on one",
            other,
            hint=f"copy it there: {other}.to({first_name}.device) in PyTorch",
        )
    return next(iter(devices_found), None)


# --------------------------------------------------------------------------------------------------------------------
# What the binder takes from arguments


def _torch(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    device = value.get_device()
    try:
        address = value.data_ptr()
    except RuntimeError:  # no memory at all
        return REFUSED, None
    if device < 0 or value.is_neg() or value.is_nested or (not address and value.numel()):
        return REFUSED, None
    return (value.dtype, specialise and align and address & 15 == 0, device), address


def _array(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    facts = array_facts(value)
    if facts is None or facts.device is None:
        return REFUSED, None
    key = (type(value), facts.element, facts.device, facts.writeable)
    return (*key, align and facts.address % 16 == 0) if specialise else key, facts.address


def _descriptor(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    signature, device, slots = value.bound()
    return (REFUSED, None) if device is None else ((signature, value.known, device, type(value.base)), slots)


def _with_layout(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    """A descriptor for the copy engine: its tensor map is made when it is known for which boxes."""
    signature, device, slots = value.bound()
    return (REFUSED, None) if device is None else ((signature, device, type(value.base)), (value, slots[0]))


def _int(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
    return int_key(int(value), specialise, align, FINE), int(value)


class Binding:
    """How a vendor's launches take arguments of classes that the generated code does not know.

    Arrays of up to `small` bytes have code of their own, unless that is 0.
    """

    def __init__(self, small: int = 0) -> None:
        self.small = small
        kept = (type(None), float, bool)
        self.quick: dict[type, Handler] = {kind: handler for kind, handler in handlers.items() if kind in kept}
        self._torch, self._array = self._sized(_torch), self._sized(_array)

    def _sized(self, handler: Handler) -> Handler:
        """A handler whose key says as well whether an array is small."""
        small = self.small
        if not small:
            return handler

        def sized(value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
            key, address = handler(value, specialise, align)
            return ((*key, is_within(value, small)) if specialise and key is not REFUSED else key), address

        return sized

    def _tuple(self, value: Any, specialise: bool, align: bool) -> tuple[Any, Any]:
        """Always in full, as `specialize` does."""
        parts = [(self._handler_for(item) or handler_for(item))(item, True, True) for item in value]
        if any(key is REFUSED for key, _ in parts):
            return REFUSED, None
        return (type(value), *(key for key, _ in parts)), tuple(values for _, values in parts)

    def _handler_for(self, value: Any) -> Handler | None:
        """What binds an array, a descriptor, a tuple or an integer; None for what is bound as on the host."""
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return _int
        if isinstance(value, TensorDescriptor):
            return _with_layout if hasattr(value, "layout") else _descriptor
        if isinstance(value, tuple):
            return self._tuple
        return None if reader_of(value) is None else self._array

    def bind(self, param: Any, value: Any, params: Any = (), options: Any = NO_OPTIONS) -> tuple[Any, Any]:
        """(key, value) of an argument."""
        kind = value.__class__
        handler = self._handler_for(value)
        if handler is None:
            return bind_on_host(param, value, params, options)
        if kind.__module__ in ("torch", "torch.nn.parameter"):
            self.quick[kind] = self._torch
        specialise, align = not param.do_not_specialize, not param.do_not_specialize_on_alignment
        try:
            if isinstance(value, (tuple, int, np.integer)) and param.annotation_type:
                check_annotated(param, value)
            return handler(value, specialise, align)
        except LaunchError as error:
            raise error.of_argument(param.name) from None


@lru_cache(maxsize=4)
def binding(small: int = 0) -> Binding:
    """That of all launches with this limit."""
    return Binding(small)


def map_makers(kernel: Any, leaves: Sequence[Any], names: Sequence[str]) -> list[MapMaker | None]:
    """What makes the tensor maps of a kernel, for each of its descriptors in order; nothing where it takes none."""
    maps = kernel.metadata.tensor_maps
    makers: list[MapMaker | None] = []
    for path, kind in leaves if maps else ():
        if kind.startswith("tensordesc"):
            number = len(makers)
            instead = maps[0][-1] < 0  # of a Gluon kernel, each of whose descriptors is a map
            of_it = [maps[number]] if instead else [facts for facts in maps if facts[-1] == number]
            numbers = "q" * (2 * descriptor_rank(kind))
            codes = "128s" + numbers if instead else f"Qq{numbers}" + "128s" * len(of_it)
            makers.append((devices.map_maker(names[path[0]], of_it), codes) if of_it else None)
    return makers


def fire_on_gpu(
    kernel: Any,
    leaves: Sequence[Any],
    numbers: Sequence[int],
    names: Sequence[str],
    launcher: Callable[[Any], Callable[[str], Callable[..., None]]],
) -> Callable[..., None]:
    """`make_fire` with the kernel's tensor maps; `launcher` makes what takes the codes of the slots, for a kernel."""
    maps = map_makers(kernel, leaves, names)
    if not kernel.metadata.made_maps:
        return make_fire(kernel, leaves, numbers, launcher(kernel), maps)

    def instead() -> Callable[..., None]:
        """The launch of the same kernel whose threads load what it has maps for, for arguments that have none."""
        options = {**kernel.given_options, "made_tensors": False}
        plain = compiling.compile(kernel.src, kernel.metadata.target, options)
        if plain.metadata.made_maps:  # of a Gluon kernel, whose author made them
            raise LaunchError("the kernel copies blocks of a tensor, and its arguments describe none")
        return fire_on_gpu(plain, leaves, numbers, names, launcher)

    return make_fire(kernel, leaves, numbers, launcher(kernel), maps, made_maps(kernel, devices.map_maker), instead)


class Scratch:
    """Global memory that a kernel's programs have for themselves while they run: one piece for each stream.

    A piece that has become too small stays, and its successor has at least twice its size.
    """

    def __init__(self, size: int, index: int, stream: Callable[[], int]) -> None:
        self._size, self._index, self._stream = size, index, stream
        driver: Any = devices.driver()
        self._array = gpu_arrays.array_of(driver)
        self._pieces: dict[int, Any] = {}
        self._outgrown: list[Any] = []

    def __call__(self, programs: int) -> int:
        """The address of memory for so many programs; from `weft.set_allocator` where one was set."""
        stream, wanted = self._stream(), self._size * programs
        if has_allocator():
            piece = self._pieces[stream] = get_allocator()(wanted, 128, stream)
            return int(piece.data_ptr())
        piece = self._pieces.get(stream)
        if piece is None or piece.nbytes < wanted:
            if piece is not None:  # a graph may have captured launches that use it
                self._outgrown.append(piece)
            piece = self._pieces[stream] = self._array(1 << max(0, wanted - 1).bit_length(), "u1", self._index)
        return int(piece.address)


def _blocks(programs: int, each: int) -> int:
    """The blocks along a grid's first axis, where a program is a cluster of `each`. LaunchError where too many."""
    if programs * each > MAX_GRID[0]:
        raise LaunchError(
            f"grid size {programs} on axis 0 exceeds {MAX_GRID[0] // each}, the most with clusters of {each} blocks",
            hint="put some of it on another axis, or launch with a smaller num_ctas",
        )
    return programs * each


def launcher_of(kernel: Any, index: int, stream: Callable[[], int]) -> Callable[[str], Callable[..., None]]:
    """From the codes of the slots what queues a launch on one GPU; its grid counts programs, the driver's blocks."""
    size, blocks = kernel.metadata.global_scratch_size, kernel.metadata.num_ctas
    gpu = devices.device(index)

    def launcher(codes: str) -> Callable[..., None]:
        with devices.entered(gpu):
            on_this = kernel.load().launcher(codes + "Q" * bool(size), stream)
        launch: Callable[..., None] = devices.on(gpu, on_this)
        if blocks == 1 and not size:
            return launch
        scratch = Scratch(size, index, stream)

        def whole(x: int, y: int, z: int, *slots: Any) -> None:
            count = _blocks(x, blocks)
            launch(count, y, z, *slots, *((scratch(count * y * z),) if size else ()))

        return whole

    return launcher


class _NoArray:
    """Takes the place of NumPy's arrays in the launcher: none of them can be launched on."""


def _nothing() -> None:
    """The launch of a grid without programs."""


REWRITTEN = 64
"""Kinds of arguments up to which a launcher is written anew for the last of them: that takes half a millisecond."""


PATTERNS = 8
"""Of the classes of arguments a kernel is called with, such as None or a tensor for a bias, which have a quick way."""


@lru_cache(maxsize=16)
def _target_of(device: int) -> str:
    return devices.device(device).target


class GPULaunches:
    """The launches of one kernel on GPUs; `target` is what was asked for, or None for the arrays' own GPU."""

    def __init__(self, kernel: Any, target: str | None = None) -> None:
        self.kernel, self.target = kernel, target
        self.small = compiling.small_arrays(target)
        self._binding = binding(self.small)
        self._entries: dict[Any, Any] = {}
        self._quick: dict[tuple[type, ...], dict[Any, Any]] = {}
        self._launchers: dict[tuple[Any, int, tuple[type, ...]], Any] = {}
        self._ways: dict[tuple[type, ...], Callable[..., Any]] = {}
        self._lock = renewed(threading.RLock())
        self.watched = False
        self._general = self.quickest = make_binder(
            kernel.__name__,
            kernel.params,
            {
                "_w_self": self,
                "_w_cache": self._entries,
                "_w_rt": knobs.runtime,
                "_w_pre_hooks": kernel.pre_run_hooks,
                "_w_run_pre_hooks": kernel._run_pre_hooks,
                "_w_miss": self._miss,
                "_w_recheck": self._recheck,
                "_w_fallback": self._miss,
                "_w_hooked": kernel._launch_with_hooks,
                "_w_elsewhere": kernel._launch_elsewhere,
                "_w_quick": self._binding.quick,
                "_w_bind": self._binding.bind,
                "_w_ndarray": _NoArray,
                "_w_divisors": FINE,
            },
        )
        self._prepared: Prepared | None = None
        """What launches natively, and else the quickest way in Python; None where it never does."""
        self.launch = self._general
        if supported():
            self._prepared = Prepared(self._general, self._plan, self._launch_by)
            self.launch = self._prepared.launch

    def _plan(self, compiled: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The plan of a launch, as the caller wrote it."""
        values = self.kernel.bound(args, kwargs)
        index = self._index(values)
        entries = [*self._launchers.items()]  # at once: other threads may add some
        entry = next((entry for (made, at, _), entry in entries if made is compiled and at == index), None)
        if entry is None or self.small:
            raise NoPlan
        parameters = self._parameters(compiled, entry[2])
        stream = stream_of(arrays_of(values), index)
        return PlanOnGPU(self.kernel, entry, self.watched, index, stream, parameters).plan(args, kwargs)

    def _parameters(self, compiled: Any, fire: Callable[..., None]) -> Parameters:
        """What native code hands a kernel, which `fire` launches in Python."""
        leaves = runtime_leaves(list(compiled.src.signature.values()))
        makers, made = map_makers(compiled, leaves, self.kernel.arg_names), made_maps(compiled, devices.map_maker)
        if made and any(len(path) > 1 for path, _ in leaves):
            raise NoPlan
        arguments = Arguments(leaves, [p.num for p in self.kernel.params if not p.is_constexpr])
        parameters = parameters_of(leaves, makers, made, lambda grid, slots: fire(*grid, *arguments.of(slots)))
        if parameters is None:
            raise NoPlan
        return parameters

    def _launch_by(self, before: Callable[..., Any], now: Callable[..., Any]) -> None:
        """Take another launching function in the place of one: in native code, or in Python for good."""
        if self._prepared is not None and now is self._prepared.general:
            self._prepared = None
        self.launch = now
        self.kernel.relaunch(before, now)

    def _go_by(self, way: Callable[..., Any]) -> None:
        """Launch by another function in Python, the quickest there is."""
        self.quickest = way
        if self._prepared is not None:
            self._prepared.general = way
        else:
            self._launch_by(self.launch, way)

    def _miss(self, key: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Make the entry of a key: (compiled kernel, no guard, what fires it)."""
        if self.target is None and not self.kernel.is_for_gpu(args):
            kernel = self.kernel._compile_for(args, options, warmup=False)
            return self.kernel._move(kernel, self.kernel._make_launcher(), args, options)
        index = self._index(args)
        with self._lock:
            kernel = self.compiled(args, options)
            if kernel is None:
                return None
            leaves = runtime_leaves(list(kernel.src.signature.values()))
            refuse_read_only(kernel, leaves, self.kernel.arg_names, args)
            values = [p.num for p in self.kernel.params if not p.is_constexpr]
            stream = stream_of(arrays_of(args), index)
            names = self.kernel.arg_names
            fire = fire_on_gpu(kernel, leaves, values, names, lambda made: launcher_of(made, index, stream))
            entry = (kernel, None, fire)
            self._launchers[kernel, index, tuple(map(type, args))] = entry
            self._quicken(args)
            with suppress(TypeError):  # an option that cannot be hashed
                self._entries[key] = entry
            return entry

    def frozen(self, args: tuple[Any, ...], options: Mapping[str, Any], grid: Any) -> Callable[[], None]:
        """A function without arguments that queues the same launch each time."""
        index = self._index(args)
        kernel = self.compiled(args, options)
        gpu, blocks = devices.device(index), kernel.metadata.num_ctas
        leaves = runtime_leaves(list(kernel.src.signature.values()))
        refuse_read_only(kernel, leaves, self.kernel.arg_names, args)
        stream = stream_of(arrays_of(args), index)
        bind = self._binding.bind
        values = [bind(p, a)[1] for p, a in zip(self.kernel.params, args, strict=True) if not p.is_constexpr]
        numbers = [p.num for p in self.kernel.params if not p.is_constexpr]
        launches: list[Callable[[], None]] = []

        def freezer(made: Any) -> Callable[[str], Callable[..., None]]:
            with devices.entered(gpu):
                loaded = made.load()

            def freeze(codes: str) -> Callable[..., None]:
                def add(x: int, y: int, z: int, *slots: Any) -> None:
                    with devices.entered(gpu):
                        launch = loaded.frozen(codes, stream, (_blocks(x, blocks), y, z), slots)
                    launches.append(devices.on(gpu, launch))

                return lambda x, y, z, *slots: add(x, y, z, *slots) if x and y and z else launches.append(_nothing)

            return freeze

        if kernel.metadata.global_scratch_size:
            raise LaunchError(
                f"{kernel.name} needs memory of its own for each launch, so that it cannot be frozen",
                hint="launch it with kernel[grid](...); or make its descriptors on the host, weft.TensorDescriptor",
            )
        fire_on_gpu(kernel, leaves, numbers, self.kernel.arg_names, freezer)(*grid_of(grid), *values)
        return launches[0]

    def wanted(self, args: tuple[Any, ...]) -> bool:
        """Whether the arguments say that a launch is for a GPU: an array of them is in its memory.

        NoDevice where Weft cannot use it, saying what is missing.
        """
        name = next((n for n, value in zip(self.kernel.arg_names, args, strict=True) if _gpus_of(value, n)), None)
        if name is None:
            return False
        try:
            if devices.device_count() == 0:
                raise NoDevice("the driver sees no GPU")
        except NoDevice as error:
            message = f"argument `{name}` lives in the memory of a GPU, and {error.message}"
            raise NoDevice(message, name, hint=error.hint) from None
        return True

    def _quicken(self, args: tuple[Any, ...], last: Last | None = None) -> None:
        """Once the classes of the arguments are known, take the quickest way for them, and for the `last` launch."""
        classes = self._classes(args)
        if last is None and (classes in self._ways or len(self._ways) == PATTERNS):
            return
        spaces = {
            "_w_self": self,
            "_w_cache": self._quick.setdefault(classes, {}),
            "_w_rt": knobs.runtime,
            "_w_pre_hooks": self.kernel.pre_run_hooks,
            "_w_general": self._general,
            "_w_keep": self._keep,
            "_w_changed": self.kernel.has_changed,
        }
        quick = make_quick(self.kernel.__name__, self.kernel.params, args, spaces, last, self.small)
        if quick is not None:
            with self._lock:
                self._ways = {classes: quick, **{k: way for k, way in self._ways.items() if k != classes}}
                chain(list(self._ways.values()), self._general)
                self._go_by(quick)

    def _classes(self, args: tuple[Any, ...]) -> tuple[type, ...]:
        """Those of the arguments that are handed to the kernel."""
        return tuple(type(a) for p, a in zip(self.kernel.params, args, strict=True) if not p.is_constexpr)

    def _keep(self, key: Any, kernel: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Keep what the general way has found, and expect it to be asked for again; gives the kernel."""
        entry = self._launchers.get((kernel, self._index(args), tuple(map(type, args))))
        if entry is not None:
            kept = self._quick.setdefault(self._classes(args), {})
            kept[key] = entry
            if len(kept) <= REWRITTEN:
                self._quicken(args, Last(args, options, knobs.runtime.debug, entry))
        return kernel

    def _index(self, args: tuple[Any, ...]) -> int:
        """The GPU that a launch with these arguments runs on."""
        device = device_of(self.kernel.arg_names, args)
        return devices.current_device().index if device is None else device

    def target_for(self, args: tuple[Any, ...]) -> str:
        """The target of launches with these arguments: that asked for, or that of the GPU where they are."""
        return self.target or _target_of(self._index(args))

    def compiled(self, args: tuple[Any, ...], options: Mapping[str, Any], warmup: bool = False) -> Any:
        """The kernel for arguments of these kinds, on their GPU; None where a hook says that there is to be none."""
        values = self.kernel._options(options, args)
        for param, value in zip(self.kernel.params, args, strict=True):
            if not param.is_constexpr:
                refuse_host(param, value)
        pairs = zip(self.kernel.params, args, strict=True)
        facts = [specialize_param(p, a, device_facts, fine=True, small=self.small) for p, a in pairs]
        asked = values.get("arch") or knobs.runtime.override_arch
        target = str(compiler.target_of_arch(asked)) if asked else self.target_for(args)
        key = key_of_specialization(facts, values, target)
        kernel = unless_failed(self.kernel.cache.get(key))
        if kernel is None:
            kernel = self.kernel.compile_new(key, args, facts, values, warmup, target)
        self.watched = self.kernel.captures()
        return kernel.result() if isinstance(kernel, FutureKernel) and not warmup else kernel

    def _recheck(self, entry: Any, key: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Look at what the kernel captures: a changed constant is an error, a changed function is compiled anew."""
        if not self.kernel.refuse_changed_constant():
            return entry
        with self._lock:
            self.kernel.reset()
            return self._miss(key, args, options)

    def forget(self) -> None:
        """Drop what was compiled, the quickest way for it included: the next launch finds out anew."""
        with self._lock:
            for table in (self._entries, *self._quick.values(), self._quick, self._launchers, self._ways):
                table.clear()
            self._go_by(self._general)
            if self._prepared is not None:
                self._prepared.forget()
