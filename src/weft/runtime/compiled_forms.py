"""What a kernel has been compiled for: from arguments to a specialisation, to options, to a compiled kernel.

    add._compile_for((x, y, out, 4096), {"num_warps": 4}, warmup=False)
        specialisation    (*fp32, divisible by 16), (*fp32, ...), (i32, divisible by 16), the constant BLOCK
        options           checked; `num_warps` and the like may be parameters as well
        key               both, and the target, as text
        kernel            the one that is kept under the key, or a new one

`JITFunction` (jit.py) launches what it finds here. Nothing here knows of grids, or of where arrays are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft import compiler
from weft.base import CapturedGlobalError, LaunchError, load, shortened
from weft.base.locks import renewed
from weft.language.callable import JITCallable
from weft.language.keys import is_constexpr_value, key_text

from . import compiling, knobs
from .binder import make_collector, unknown_keyword
from .compiling import compile, current_target
from .errors import UnknownKeyword
from .futures import FutureKernel, active_mode, unless_failed
from .inspection import DeviceCaches, read_specialization, told_of_compilation
from .noted import noted
from .specialize import signature_of, specialize_param

if TYPE_CHECKING:
    from .recompiles import Recompiles

_ALSO_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options that kernels may have as parameters, to compute with them."""


class CompiledForms(JITCallable):
    """A kernel with the forms that it has been compiled to, by specialisation."""

    debug: bool | None
    _kernels: dict[str, Any]

    def __init__(self, fn: Callable[..., Any], **facts: Any) -> None:
        super().__init__(fn, **facts)
        self.watched = False
        """Whether the kernel captures anything that could change between launches."""
        self._key_cache: dict[Any, str] = {}
        self._compile_lock = renewed(threading.RLock())
        self._collect: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]] | None = None
        self.compiled_for: list[Any] = []
        """What each compilation was for, in order; see `explain_recompiles`."""

    # -- arguments -------------------------------------------------------------------------------------------------

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values of all parameters, for the arguments of a launch."""
        return self._bind(*args, **kwargs)[0]

    def _bind(self, *args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._collect is None:
            self._collect = make_collector(self.__name__, self.params)
        return self._collect(*args, **kwargs)

    def _specialization(self, args: tuple[Any, ...], target: str = "cpu") -> list[tuple[Any, Any]]:
        fine, small = not target.startswith("cpu"), compiling.small_arrays(target)
        try:
            return [specialize_param(p, a, fine=fine, small=small) for p, a in zip(self.params, args, strict=True)]
        except LaunchError as error:
            raise error.with_traceback(None) from None  # where in Weft it was found says nothing to a user

    def _options(self, options: Mapping[str, Any], args: Sequence[Any] = ()) -> dict[str, Any]:
        """The options of a launch, checked; parameters that are called like an option are that option too."""
        named = {p.name: a for p, a in zip(self.params, args, strict=False) if p.name in _ALSO_OPTIONS}
        options = {**{k: v for k, v in named.items() if v is not None}, **options}
        values = {k: v.value if is_constexpr_value(v) else v for k, v in options.items()}
        for name in ("device_type", "device", "stream"):
            if name in values:
                raise UnknownKeyword(
                    f"{name} option is deprecated; the current target is used",
                    name,
                    hint="leave it out, or give target=...",
                )
        for name in values:
            if name not in compiler.option_names():
                raise unknown_keyword(name, self.params)
        values["debug"] = bool(values.get("debug", self.debug) or knobs.runtime.debug)
        return values

    # -- compiling -------------------------------------------------------------------------------------------------

    def _compile_for(
        self, args: tuple[Any, ...], options: Mapping[str, Any], warmup: bool, specialization: Any = None, **more: Any
    ) -> Any:
        """The kernel for arguments of these kinds, from memory or compiled."""
        target = current_target()
        compile_options = {**self._options(options, args), **more}
        specialization = specialization or self._specialization(args, target)
        key = key_of_specialization(specialization, compile_options, target)
        kernel = unless_failed(self._kernels.get(key))
        if kernel is None:
            with self._compile_lock:
                kernel = unless_failed(self._kernels.get(key))
                if kernel is None:
                    kernel = self.compile_new(key, args, specialization, compile_options, warmup, target)
        if kernel is not None and not warmup and isinstance(kernel, FutureKernel):
            kernel = kernel.result()
        return kernel

    def compile_new(
        self, key: str, args: tuple[Any, ...], specialization: Any, options: dict[str, Any], warmup: bool, target: str
    ) -> Any:
        """Compile a kernel that is not among `cache` yet, and put it there; None where a hook says not to."""
        signature, constants, attrs = signature_of(self.arg_names, specialization, list(args))
        self.compiled_for.append(noted(args, specialization, options, target))
        src = compiler.ASTSource(self, signature, constants, attrs)
        hook = knobs.runtime.jit_cache_hook
        if hook is not None and self._call_hook(hook, key, src, options, warmup, target):
            return None
        mode = active_mode.get()
        if mode is not None:
            store_key = key_text((src.hash(), sorted(options.items()), target))

            def finish(kernel: Any) -> None:
                self._kernels[key] = kernel
                self._after_compile(key, src, options, warmup, target)

            future = mode.submit(store_key, lambda: compile(src, target, options), finish)
            self._kernels[key] = future
            return future
        kernel = compile(src, target, options)
        self._kernels[key] = kernel
        self._after_compile(key, src, options, warmup, target)
        return kernel

    def _after_compile(self, key: str, src: Any, options: Mapping[str, Any], warmup: bool, target: str) -> None:
        self.watched = self.captures()
        hook = knobs.runtime.jit_post_compile_hook
        if hook is not None:
            self._call_hook(hook, key, src, options, warmup, target)

    def _call_hook(
        self, hook: Callable[..., Any], key: str, src: Any, options: Mapping[str, Any], warmup: bool, target: str
    ) -> bool:
        return bool(hook(**told_of_compilation(self, key, src, options, warmup, target)))

    def explain_recompiles(self) -> Recompiles:
        """Say why this kernel was compiled more than once: which argument differed, and at which launch."""
        recompiles: Recompiles = load("weft.runtime.recompiles").recompiles_of(self.arg_names, self.compiled_for)
        return recompiles

    @shortened
    def preload(self, specialization_data: str) -> Any:
        """Compile for a specialisation that a hook received (`specialization_data`), before the first launch."""
        key, src, options, target = read_specialization(self, specialization_data)
        kernel = compile(src, target, options)
        self._kernels[key] = kernel
        self.watched = self.captures()
        return kernel

    def refuse_changed_constant(self) -> bool:
        """Whether what a kernel was compiled from has changed since. Raises for a constant of its own that has."""
        if not self.has_changed():
            return False
        changed = self.changed_capture()
        if changed is None:
            return True
        name, before, now = changed
        if not isinstance(before, JITCallable):
            raise CapturedGlobalError(name, before, now, self.__name__, f"{self.file_name}:{self.starting_line_number}")
        return True

    # -- what tools look at ----------------------------------------------------------------------------------------

    @property
    def cache(self) -> Mapping[str, Any]:
        """Compiled kernels by specialisation."""
        return self._kernels

    @property
    def device_caches(self) -> Any:
        """Triton's form of the cache: device -> (kernels, keys, target, backend, binder)."""
        return DeviceCaches(self)

    def create_binder(self) -> tuple[Any, ...]:
        """(kernels, keys, target, backend, binder) for the current device."""

        def binder(*args: Any, **kwargs: Any) -> tuple[dict[str, Any], list[tuple[Any, Any]], dict[str, Any]]:
            values, options = self._bind(*args, **kwargs)
            return dict(zip(self.arg_names, values, strict=True)), self._specialization(values), options

        return self._kernels, self._key_cache, compiling.target_of_launches(), None, binder


def key_of_specialization(specialization: Any, options: Mapping[str, Any], target: str) -> str:
    """What a compiled kernel is kept under in the memory of a process, as text."""
    return key_text((specialization, sorted(options.items()), target))
