"""`jit`: Python functions that can be launched over a grid.

    @jit
    def add(x, y, out, n, BLOCK: tl.constexpr): ...

    add[(1024,)](x, y, out, n, BLOCK=128)        # launch; compiled when first seen with arguments of these kinds
    add.warmup(x, y, out, n, BLOCK=128, grid=(1,))   # compile only

A launch runs one generated function (see `binder`).  It finds an entry (kernel, guard, fire) under a key that says of
each argument what the code depends on; where there is none, `_miss` makes one of a kernel compiled for these arguments
(`compiled_forms`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, Never, overload

from weft import compiler
from weft.base import LaunchTypeError, load, shorten, shortened
from weft.base.locks import renewed
from weft.language.keys import key_of

from . import compiling, knobs
from .arrays import is_array, may_be_on_gpu
from .binder import asked_grid, make_binder
from .compiled_forms import CompiledForms
from .compiling import current_target
from .inspection import JitFunctionInfo
from .interface import KernelInterface, PickledByName
from .launch import enter_hooks, leave_hooks, limits_of, make_fire, make_guard, runtime_leaves
from .launches import F, Fn, Launchable
from .misuse import misuse_of_jit
from .tensors import MockTensor

__all__ = ["JITFunction", "JitFunctionInfo", "KernelInterface", "jit"]

Entry = tuple[Any, Callable[..., bool] | None, Callable[..., None]]
"""(compiled kernel, guard, fire), see `launch`."""


class _KernelCache(dict[str, Any]):
    """Compiled kernels by specialisation; clearing it forgets the entries of the warm path too."""

    def __init__(self, entries: dict[Any, Any], elsewhere: dict[str | None, Any], forget: Callable[[], None]) -> None:
        super().__init__()
        self._entries, self._elsewhere, self._forget = entries, elsewhere, forget

    def clear(self) -> None:
        super().clear()
        self._entries.clear()
        self._forget()
        for launches in self._elsewhere.values():
            launches.forget()


_KEPT = frozenset(
    (
        *("__name__", "__qualname__", "__module__", "__doc__", "module", "fn", "repr", "version", "debug", "noinline"),
        *("do_not_specialize", "do_not_specialize_on_alignment", "params", "arg_names", "constexprs"),
        *("file_name", "starting_line_number", "_fn_name", "_src", "_hash", "_hash_lock"),
    )
)
"""What is left of a kernel that is pickled without its function."""


def _without_function(kind: type[JITFunction], facts: dict[str, Any]) -> JITFunction:
    """A kernel that tells its name, source and parameters, and cannot be launched."""
    kernel = object.__new__(kind)
    kernel.__dict__.update({"_repr": None, "__globals__": None, "used_global_vals": None, **facts})
    kernel._lock, kernel._compile_lock = renewed(threading.RLock()), renewed(threading.RLock())
    return kernel


class JITFunction(Launchable[F], CompiledForms, PickledByName, KernelInterface[Any]):  # type: ignore[misc]
    """A kernel: a function with its source, its compiled forms, and a way to launch them.

    `F` is the type of the function, for type checkers; see `launches`.

    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 4)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> double.arg_names
    ['x']
    """

    _own_run = False
    """Whether a subclass has a `run` of its own, which launches then go through."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._own_run = cls.run is not JITFunction.run

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., Mapping[str, Any]] | None = None,
        **unknown: Never,
    ) -> None:
        functions = {"repr": repr, "launch_metadata": launch_metadata}
        super().__init__(
            fn,
            do_not_specialize=do_not_specialize or (),
            do_not_specialize_on_alignment=do_not_specialize_on_alignment or (),
            noinline=bool(noinline),
            problem=lambda place: misuse_of_jit(place, functions, unknown),
        )
        self.version = version
        self.debug = debug
        self._repr = repr
        self.launch_metadata = launch_metadata
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self._entries: dict[Any, Entry] = {}
        self._fallbacks: dict[Any, Entry] = {}
        self._gpu: dict[str | None, Any] = {}
        self._kernels = _KernelCache(self._entries, self._gpu, self._forget_plans)
        self._launcher: Callable[..., Any] = self._indexed_early
        self._has_launcher = False
        """Whether there is one that launches where the arrays are."""
        self._host: Callable[..., Any] | None = None
        self._prepared: Any = None
        self.kernel: Any = None

    # -- launching -------------------------------------------------------------------------------------------------

    def _launcher_for(self, grid: Any) -> Any:
        """The launcher for a grid."""
        if self._own_run:
            return KernelInterface.__getitem__(self, grid)
        asked = compiling.asked() if compiling.blocks else None
        if asked is None:  # a bound method is made and called in half the time of a partial; it cannot bind None
            return MethodType(self._launcher, grid) if grid is not None else partial(self._launcher, grid)
        return partial(self._launch_elsewhere, asked, grid)

    if not TYPE_CHECKING:  # which are told by `launches`
        __getitem__ = _launcher_for

    @shortened
    def _launch_elsewhere(self, target: str, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Launch for a target that was asked for: the CPU, a simulated GPU, or a GPU."""
        if compiling.watcher is not None:
            compiling.watcher(self, target, grid, args, kwargs)
            return None
        if "target" in kwargs and "target" not in self.arg_names:
            with compiling.target(kwargs.pop("target")):
                return self[grid](*args, **kwargs)
        if target in compiler.SIMULATED:
            return compiling.simulator()(self, target, grid, *args, **kwargs)
        if target == "cpu" == compiling.asked():
            return self._host_launcher()(grid, *args, **kwargs)
        if target == "cpu":  # a frozen launch, which was asked for there
            with compiling.target(target):
                return self._host_launcher()(grid, *args, **kwargs)
        if target.startswith("cpu:"):  # another processor: what it is asked for, in the end, is the code
            return self._host_launcher()(grid, *args, **{"cpu": target.removeprefix("cpu:"), **kwargs})
        if target in compiler.HOSTED:
            return load("weft.runtime.hosted").launch(self, target, grid, *args, **kwargs)
        compiler.as_target(target)  # says what exists
        return self._on_gpu(target).launch(grid, *args, **kwargs)

    def _on_gpu(self, target: str | None = None) -> Any:
        """The launches on GPUs, for a target; for none, on the GPU where the arrays are, or on the host."""
        launches = self._gpu.get(target)
        if launches is None:
            launches = self._gpu[target] = compiling.gpu_launches()(self, target)
        return launches

    def _indexed_early(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """The launcher until there is another; what was indexed before the first launch comes here at every launch."""
        try:
            if not self._has_launcher or compiling.blocks:
                return self._first_launch(grid, *args, **kwargs)
            return self._launcher(grid, *args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    def _first_launch(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        target = current_target()
        if target != "cpu":  # WEFT_TARGET, or run() inside of `with weft.target(...)`
            return self._launch_elsewhere(target, grid, *args, **kwargs)
        if "target" in kwargs and "target" not in self.arg_names:
            return self._launch_elsewhere(target, grid, *args, **kwargs)
        launcher = self._launcher
        if not self._has_launcher:
            launcher = self._make_launcher()
        elif not compiling.choose_by_arrays():
            launcher = self._host_launcher()
        return launcher(grid, *args, **kwargs)

    def _make_launcher(self) -> Callable[..., Any]:
        """The launcher for arrays of the host, from now on the first that is asked."""
        self._launcher, self._has_launcher = self._host_launcher(), True
        return self._launcher

    def _host_launcher(self) -> Callable[..., Any]:
        if self._host is not None:
            return self._host
        spaces = {
            "_w_self": self,
            "_w_cache": self._entries,
            "_w_rt": knobs.runtime,
            "_w_pre_hooks": self.pre_run_hooks,
            "_w_run_pre_hooks": self._run_pre_hooks,
            "_w_miss": self._miss,
            "_w_recheck": self._recheck,
            "_w_fallback": self._fallback,
            "_w_hooked": self._launch_with_hooks,
            "_w_elsewhere": self._launch_elsewhere,
        }
        self._host = make_binder(self.__name__, self.params, spaces)
        prepared = load("weft.runtime.prepared")  # with the driver, which whoever launches needs
        if prepared.supported():
            self._prepared = prepared.prepared(self, self._host)
            self._host = self._prepared.launch
        return self._host

    def launch_by(self, before: Callable[..., Any], now: Callable[..., Any]) -> None:
        """Take another launcher for arrays of the host in the place of one."""
        self._host = now
        self.relaunch(before, now)

    def _forget_plans(self) -> None:
        if self._prepared is not None:
            self._prepared.forget()

    @shortened
    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch over `grid`, or only compile."""
        if warmup and "target" in kwargs and "target" not in self.arg_names:
            with compiling.target(kwargs.pop("target")):
                return self.run(*args, grid=grid, warmup=True, **kwargs)
        if warmup:
            return self._warmed_up(*self._bind(*args, **kwargs))
        asked = compiling.asked() if compiling.blocks else None
        if asked is not None:
            return self._launch_elsewhere(asked, grid, *args, **kwargs)
        return self._launcher(grid, *args, **kwargs)

    def _warmed_up(self, values: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The kernel that a launch with these arguments would run; for arrays on a GPU that is their GPU's."""
        launches = self._gpu_launches(values)
        if launches is None:
            return self._compile_for(values, options, warmup=True)
        if any(map(may_be_on_gpu, values)) and launches.wanted(values):
            return launches.compiled(values, options, warmup=True)
        with compiling.target(compiling.unsaid_gpu(only_there=True) or current_target()):  # nothing has an address
            return self._compile_for(values, options, warmup=True)

    def _run_pre_hooks(self, *args: Any, **kwargs: Any) -> None:
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call a function with the arguments of every launch, before it."""
        if not callable(hook):
            raise LaunchTypeError(f"a pre-run hook must be callable, got {hook!r}")
        self.pre_run_hooks.append(hook)

    @shortened
    def bind(self, *args: Any, grid: Any, **kwargs: Any) -> Callable[[], None]:
        """Return a function without arguments that repeats this launch: the quickest way to launch again.

        The arrays must live as long as it does; their addresses, the numbers and the grid are those of now.
        """
        if "target" in kwargs and "target" not in self.arg_names:
            with compiling.target(kwargs.pop("target")):
                return self.bind(*args, grid=grid, **kwargs)
        values, options = self._bind(*args, **kwargs)
        if callable(grid):
            grid = asked_grid(grid, dict(zip(self.arg_names, values, strict=True)))
        launches = self._gpu_launches(values)
        if launches is not None:
            return launches.frozen(values, options, grid)  # type: ignore[no-any-return]
        asked = compiling.asked()
        launch = self[grid] if asked is None else partial(self._launch_elsewhere, asked, grid)
        return partial(launch, *args, **kwargs)

    def _gpu_launches(self, values: tuple[Any, ...]) -> Any:
        """The launches on GPUs for these arguments, if they are for one and no other target was asked for."""
        target = compiling.asked()
        if target is None:
            return self._on_gpu() if self.is_for_gpu(values) else None
        if not compiler.is_gpu(target) or not any(map(may_be_on_gpu, values)):
            return None
        launches = self._on_gpu(target)
        return launches if launches.wanted(values) else None

    def is_for_gpu(self, values: tuple[Any, ...]) -> bool:
        """Whether a launch for which no target was asked is for a GPU: an array is there, or nothing says otherwise."""
        if any(map(may_be_on_gpu, values)) and self._on_gpu().wanted(values):
            return True
        only_there = self.is_gluon()
        return (only_there or not any(map(_on_host, values))) and compiling.unsaid_gpu(only_there) is not None

    # -- misses ----------------------------------------------------------------------------------------------------

    def _miss(self, key: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Entry | None:
        """Make the entry of a key."""
        key = _hashable(key)
        if compiling.choose_by_arrays() and self.is_for_gpu(args):
            moved = self._on_gpu().compiled(args, options)
            return None if moved is None else self._move(moved, self._on_gpu().launch, args, options)
        with self._compile_lock:
            if key in self._entries:
                return self._entries[key]
            kernel = self._compile_for(args, options, warmup=False)
            if kernel is None:
                return None
            entry = self._entry(kernel, args, alias=True)
            self._entries[key] = entry
            return entry

    def _move(
        self, kernel: Any, launch: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> Entry:
        """From now on arrays are elsewhere: what launches there, first for these arguments."""
        self._launcher = launch
        named = dict(zip(self.arg_names, args, strict=True))  # those after a `*` have no place
        return kernel, None, lambda x, y, z, *_: launch((x, y, z), **named, **options)

    def relaunch(self, before: Callable[..., Any], now: Callable[..., Any]) -> None:
        """Take another launcher in the place of one, if it is that which is used."""
        if self._launcher is before:
            self._launcher = now

    def _entry(self, kernel: Any, args: tuple[Any, ...], *, alias: bool) -> Entry:
        """How to launch a kernel from the values that the binder takes."""
        signature = list(kernel.src.signature.values())
        leaves = runtime_leaves(signature)
        values = [p.num for p in self.params if not p.is_constexpr]
        fire = make_fire(kernel, leaves, values)
        return kernel, make_guard(kernel, leaves, self.arg_names, args, values, alias=alias), fire

    def _fallback(self, key: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Entry:
        """What to launch where the guard says no.

        For arrays that overlap, the kernel compiled without assuming that they do not; for a kernel that checks its
        accesses, the same one, given the limits of these very arrays.
        """
        key = _hashable(key)
        first = self._entries.get(key)
        if first is not None and first[0].metadata.checked:
            return self._with_limits(first, args)
        entry = self._fallbacks.get(key)
        if entry is None:
            with self._compile_lock:
                kernel = self._compile_for(args, options, warmup=False, assume_no_alias=False)
                entry = self._fallbacks[key] = self._entry(kernel, args, alias=False)
        return entry

    def _with_limits(self, entry: Entry, args: tuple[Any, ...]) -> Entry:
        kernel, _, fire = entry
        limits = limits_of(kernel, runtime_leaves(list(kernel.src.signature.values())), args)
        return kernel, None, lambda x, y, z, *values: fire(x, y, z, *values, *limits)

    def _recheck(self, entry: Entry, key: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Entry | None:
        """Look at what the kernel captures: a changed constant is an error, a changed function is compiled anew."""
        if not self.refuse_changed_constant():
            return entry
        with self._compile_lock:
            self.reset()
            return self._miss(key, args, options)

    def _launch_with_hooks(
        self,
        kernel: Any,
        fire: Callable[..., None],
        grid: tuple[int, ...],
        args: tuple[Any, ...],
        values: tuple[Any, ...],
    ) -> None:
        told = enter_hooks(kernel, grid, args)
        try:
            fire(*grid, *values)
        finally:  # hooks come in pairs: what one has opened the other closes, also where the kernel fails
            leave_hooks(told)

    def __reduce__(self) -> tuple[Any, ...]:
        """By name; by what is left, where a tool has taken the function away (`kernel.fn = None`).

        PyTorch's Inductor does so before it hands a compiled kernel to another process, which launches that.
        """
        if self.fn is not None:
            return super().__reduce__()
        return _without_function, (type(self), {name: v for name, v in self.__dict__.items() if name in _KEPT})

    # -- what tools look at ----------------------------------------------------------------------------------------

    def repr(self, specialization: Any = None) -> str:
        """The name of the kernel for profilers and logs."""
        return self._repr(specialization) if self._repr is not None else self.__name__

    def is_gluon(self) -> bool:
        """Is it a Gluon kernel?"""
        return False

    def reset(self) -> None:
        """Forget everything that was compiled."""
        super().reset()
        if hasattr(self, "_kernels"):
            self._kernels.clear()
            self._fallbacks.clear()


def _on_host(value: Any) -> bool:
    """Whether an argument is an array, or a descriptor or tuple of arrays, and not only the type of one."""
    if isinstance(value, (tuple, list)):
        return any(map(_on_host, value))
    return not isinstance(value, MockTensor) and (is_array(value) or hasattr(value, "block_shape"))


def _hashable(key: Any) -> Any:
    """A key of the warm path, or a text-like one where an option cannot be hashed."""
    try:
        hash(key)
    except TypeError:
        return key_of(key)
    return key


@overload
def jit(fn: JITFunction[Fn]) -> JITFunction[Fn]: ...
@overload
def jit(fn: Fn) -> JITFunction[Fn]: ...
@overload
def jit(
    fn: None = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Mapping[str, Any]] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Fn], JITFunction[Fn]]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., Mapping[str, Any]] | None = None,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
    **unknown: Never,
) -> Any:
    """Make a Python function a kernel, or a function that kernels call.

    Weft compiles special code for integer arguments that are 1 or multiples of 16. `do_not_specialize` lists parameters
    (names or positions) for which it should not; `do_not_specialize_on_alignment` keeps only the special code for 1.
    `debug` enables `tl.device_assert`, and checks accesses, integer overflow and hints.

    >>> x = np.ones(4, np.float32)
    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 4)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> made = double[(1,)](x)
    >>> x
    array([2., 2., 2., 2.], dtype=float32)
    """

    return decorated(
        JITFunction, fn, version=version, repr=repr, launch_metadata=launch_metadata,
        do_not_specialize=do_not_specialize, do_not_specialize_on_alignment=do_not_specialize_on_alignment,
        debug=debug, noinline=noinline, **unknown,
    )  # fmt: skip


def decorated(kind: type[JITFunction], fn: Callable[..., Any] | None, **facts: Any) -> Any:
    """A kernel of a kind, of a function or of another kernel; without one, what makes it of the one that follows."""
    if fn is None:
        return partial(decorated, kind, **facts)
    return kind(fn.fn if isinstance(fn, JITFunction) else fn, **facts)
