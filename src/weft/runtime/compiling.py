"""`weft.compile`: the compiler, with the cache, the dumps and the settings of this process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from weft import base, compiler
from weft.base.locks import renewed
from weft.language import target_info

from . import knobs
from .cache import default_store
from .collection import uncollected
from .files import PACKAGE, compiler_key, read_tile_ir
from .futures import active_mode
from .launch import make_launcher
from .streams import may_use_gpu
from .trusted import Folder
from .unused import warn_of_unused
from .wrapping import warn_of_wrapping

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from .launches import Kernel

__all__ = ["compile", "current_target", "target"]


class _Asked(threading.local):
    """What this thread asks for."""

    target: str | None = None
    """That of the innermost `with weft.target(...)`."""
    device: str = ""
    """Its device."""


_asked = _Asked()
_blocks_lock = renewed(threading.Lock())
blocks = 0
"""How many `with weft.target(...)` are entered, in all threads, and one more where a program set the target: while
there is none, launches ask no further."""


def _ask_at_each_launch() -> None:
    global blocks
    with _blocks_lock:
        blocks += 1


knobs.weft_knobs.target_was_set = staticmethod(_ask_at_each_launch)


def asked() -> str | None:
    """The target of this thread's innermost `with weft.target(...)`, or WEFT_TARGET; None where no target is said."""
    return _asked.target or knobs.weft.target


def asked_device() -> str:
    """The device of this thread's innermost `with weft.target(...)`; "" where none is said."""
    return _asked.device


def current_target() -> str:
    """The target of launches: that of this thread's innermost `with weft.target(...)`, WEFT_TARGET, or "cpu"."""
    name = _asked.target or knobs.weft.target or "cpu"
    if name != "cpu" and name not in compiler.SIMULATED:
        compiler.as_target(name)  # says what exists
    return name


as_triton = False
"""Whether programs know Weft as triton: where nothing says the target, it is the GPU, if PyTorch or CuPy has one."""


def unsaid_gpu(only_there: bool) -> str | None:
    """The GPU ("cuda:90") that is meant where neither a target nor an array says one; None where it is the CPU.

    `only_there` says that the kernel can run nowhere else: one in Gluon, or layout IR.
    """
    if not choose_by_arrays() or not (as_triton or only_there):
        return None
    if not only_there and not may_use_gpu():
        return None
    target = base.load("weft.runtime.drivers").driver.default.get_current_target()
    if target.backend != "cpu":
        return str(target)
    devices = base.load("weft.runtime.device").devices if only_there else None
    return str(devices.current_device().target) if devices is not None and devices.available() else None


def choose_by_arrays() -> bool:
    """Whether no target was asked for: a launch then runs where its arrays are."""
    return not _asked.target and not knobs.weft.target


@base.shortened
def target(name: str, device: str = "") -> AbstractContextManager[None]:
    """Launch for a target inside a `with`, in this thread; `knobs.weft.target` is for all of them.

    If several GPUs run the target's code, `device` says for which one explanations predict a time: "H200" for cuda:90.

    >>> with target("cpu"):
    ...     current_target()
    'cpu'
    """
    if name != "cpu" and name not in compiler.SIMULATED:
        compiler.as_target(name)
    return _targeted(name, device)


@contextmanager
def _targeted(name: str, device: str) -> Iterator[None]:
    global blocks
    before, _asked.target, _asked.device = (_asked.target, _asked.device), name, device
    with _blocks_lock:
        blocks += 1
    try:
        yield
    finally:
        _asked.target, _asked.device = before
        with _blocks_lock:
            blocks -= 1


def small_arrays(target: str | None) -> int:
    """Up to how many bytes arrays have code of their own for a target, simulated or not, or for the GPUs that launches
    are for; 0 where their sizes make no difference."""
    if not knobs.amd.use_buffer_ops:
        return 0
    return _small_arrays(target) if target else int(base.load("weft.compiler.devices").backend().small_arrays)


@lru_cache(maxsize=64)
def _small_arrays(target: str) -> int:
    if target.startswith("cpu"):
        return 0
    machine = compiler.as_target(target.removeprefix("sim:")).machine
    return int(base.load("weft.compiler.backends").backend_of(machine).small_arrays)


watcher: Callable[[Any, str, Any, tuple[Any, ...], dict[str, Any]], None] | None = None
"""What is told of launches in the place of doing them, (kernel, target, grid, args, kwargs): `weft explain` sets it."""

chooser: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None
"""What chooses the configuration of a tuned kernel in the place of measuring, (tuner, args, kwargs): `weft tune` sets
it."""


def simulator() -> Any:
    """What launches kernels for simulated targets; imported when the first one is launched."""
    return base.load("weft.runtime.simulate").launch


def target_of_launches() -> Any:
    """What `tl.target_info` says on the host: the target of the driver, which is imported when asked."""
    return base.load("weft.runtime.drivers").driver.active.get_current_target()


target_info.on_host = target_of_launches


def gpu_launches() -> Any:
    """The class of launches on GPUs; imported when the first array in a GPU's memory is seen."""
    return base.load("weft.runtime.gpu").GPULaunches


def on_gpu(value: Any) -> bool:
    """Whether an argument is an array in a GPU's memory."""
    return bool(base.load("weft.runtime.gpu").on_gpu(value))


_STAGES = ("ttir", "ttgir", "lane", "llir", "ptx", "amdgcn", "asm")
"""Stages that can be shown: ttgir, lane and ptx or amdgcn of a kernel for a GPU, asm of one for the CPU."""


def _dump_stages() -> set[str]:
    """The stages that the settings ask to show."""
    text = knobs.compilation.dump or ("all" if knobs.compilation.dump_ir else "")
    names = {part.strip() for part in text.split(",") if part.strip()}
    wrong = names - {"all", "1", *_STAGES}
    if wrong:
        raise base.LaunchError(f"WEFT_DUMP names {sorted(wrong)[0]!r}; stages are {', '.join(_STAGES)}, all")
    return set(_STAGES) if names & {"all", "1"} else names


def _make_dump() -> compiler.Dump | None:
    stages = _dump_stages()
    if not stages:
        return None
    asked = knobs.compilation.dump_ir or knobs.cache.is_set("dump_dir")
    directory = knobs.cache.dump_dir if asked else None

    def dump(kernel: str, stage: str, text: str) -> None:
        if stage not in stages:
            return
        if directory:
            try:
                with Folder(directory, create=True, trusted=False) as folder:
                    folder.write(f"{kernel[:150]}.{stage}", text.encode("utf-8", "surrogatepass"))
            except OSError as error:
                raise base.LaunchError(
                    f"the {stage} of {kernel} cannot be dumped into {directory} ({error.strerror or error})",
                    hint="TRITON_DUMP_DIR names the directory; without it stages are shown on stderr",
                ) from error
        else:
            print(f"// ---- {kernel}: {stage}\n{text}", file=sys.stderr)

    return dump


def _tile_ir(source: str | os.PathLike[str]) -> Any:
    text, path = read_tile_ir(source)
    return compiler.IRSource(text, path=path)


def _override(kernel: str) -> str | None:
    """The tile IR to take in the place of a kernel: `<kernel>.ttir` in the override directory, if there is one."""
    if not knobs.compilation.override:
        return None
    directory = knobs.cache.override_dir
    if not directory:
        raise base.LaunchError(
            "TRITON_KERNEL_OVERRIDE is set, and TRITON_OVERRIDE_DIR is not: there is nothing to take instead",
            hint="dump with TRITON_KERNEL_DUMP=1 TRITON_DUMP_DIR=dir, edit dir/<kernel>.ttir, TRITON_OVERRIDE_DIR=dir",
        )
    name = f"{kernel[:150]}.ttir"
    path, place = os.path.join(directory, name), directory
    try:
        with Folder(directory) as folder:
            place = f"{path}:"
            folder.check(name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise base.LaunchError(
            f"what is to be compiled instead of {kernel} is not trusted: {place} {error}",
            hint="TRITON_OVERRIDE_DIR names a directory of your own, with files of your own, not writable by others",
        ) from None
    return path


def _shorten(error: base.CompilationError) -> None:
    """Leave out where in Weft an error was found: what matters is the place in the kernel, which the text has.

    A cause that was raised by the user's own code (a function that ran while compiling) stays. Programs written for
    Triton look at the cause: for them it is what Python would raise, or, where the kernel called the function that is
    wrong, the error as that function alone would have it; a static assertion, and what no kernel can contain, has none.
    """
    if knobs.compilation.front_end_debugging:
        return
    tb = error.__cause__.__traceback__ if error.__cause__ is not None else None
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None or tb.tb_frame.f_code.co_filename.startswith(PACKAGE + os.sep):
        error.__cause__ = None if base.CompilationError.also_at is None else _cause(error)
        error.__suppress_context__ = True
    error.__traceback__ = None


def _cause(error: base.CompilationError) -> Exception | None:
    if error.callers:
        inner = base.CompilationError(error.message, error.span, source_line=error.source_line, hint=error.hint)
        inner.__cause__ = _plain(error)
        return inner
    return _plain(error)


def _plain(error: base.CompilationError) -> Exception | None:
    """The error as Python's own: the sentence, and the way out as its note."""
    if isinstance(error, (base.CompileTimeAssertionFailure, base.UnsupportedLanguageConstruct)):
        return None
    cause = error.like(error.message)
    if error.hint:
        cause.add_note(error.hint)
    return cause


def _load_hooks() -> tuple[Any, Any, Any]:
    runtime = knobs.runtime
    return runtime.kernel_load_start_hook, runtime.kernel_load_end_hook, runtime.kernel_unload_hook


def _make_launcher(kernel: compiler.CompiledKernel) -> Callable[..., None]:
    if str(kernel.metadata.target) in compiler.HOSTED:
        hosted: Callable[..., None] = base.load("weft.runtime.hosted").launcher_of(kernel)
        return hosted
    launcher: Callable[..., None] = base.load("weft.runtime.prepared").prepare_launcher(kernel, make_launcher(kernel))
    return launcher


def _make_run(kernel: compiler.CompiledKernel) -> Callable[..., None] | None:
    run: Callable[..., None] | None = base.load("weft.runtime.prepared").prepare_run(kernel)
    return run


def _elsewhere(executor: Executor | None) -> Any:
    """What makes code in the place of this process: an executor that was given, or the pool, if a setting says so."""
    mode = active_mode.get()
    executor = executor or (mode.workers if mode is not None else None)
    if executor is None:
        return _by_worker if knobs.compilation.isolate else None
    return base.load("weft.runtime.workers").elsewhere(executor)


def _by_worker(work: Any) -> Any:
    """Have the pool of this process make code."""
    workers = base.load("weft.runtime.workers")
    return workers.elsewhere(workers.default_pool())(work)


@base.shortened
def compile(
    src: Any,
    target: Any = None,
    options: Mapping[str, Any] | None = None,
    _env_vars: Mapping[str, str] | None = None,
    *,
    executor: Executor | None = None,
) -> Kernel:
    """Compile an `ASTSource`, an `IRSource`, a `.ttir` or a `.ttgir` file, using the cache; returns a CompiledKernel.

    Without a target it compiles for the target of launches. Layout IR and Gluon kernels are compiled for the GPU, if
    there is one, and so is everything if Weft runs under the name triton and PyTorch has a GPU. For a simulated
    target (`sim:cuda:80`) it is a SimulatedKernel, whose launches run in the simulator. With an `executor` of
    concurrent.futures, or if `knobs.compilation.isolate` is set, another process generates the code.

    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 4)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> source = weft.ASTSource(double, {"x": "*fp32"})
    >>> weft.compile(source, target="cuda:90").metadata.name
    'double'
    """
    compiler.CompiledKernel.make_launcher = staticmethod(_make_launcher)
    compiler.CompiledKernel.make_run = staticmethod(_make_run)
    compiler.CompiledKernel.load_hooks = staticmethod(_load_hooks)
    compiler.CompiledKernel.process = staticmethod(os.getpid)
    compiler.set_native_store(_native_store)
    knobs.weft.apply()
    values = _with_knobs(options)
    if isinstance(src, (str, os.PathLike)):
        src = _tile_ir(src)
    if not all(hasattr(src, name) for name in ("name", "ext", "make_ir")):
        raise base.LaunchTypeError(
            f"compile takes an ASTSource, an IRSource or the path of a .ttir file, got a {type(src).__name__}",
            hint="for a kernel, weft.ASTSource(kernel, signature, constexprs), or kernel.warmup(..., grid=(1,))",
        )
    in_layouts = "ttg.num-warps" in getattr(src, "src", "")
    if target is None:
        target = unsaid_gpu(in_layouts or _is_gluon(src)) or current_target()
    chosen = target
    warn_of_unused(on_cpu=chosen == "cpu")
    if knobs.runtime.override_arch and chosen != "cpu":
        values.setdefault("arch", knobs.runtime.override_arch)
    if chosen in compiler.SIMULATED:
        asked_for = f"sim:{compiler.target_of_arch(values['arch'])}" if values.get("arch") else chosen
        chosen = asked_for if asked_for in compiler.SIMULATED else chosen
        simulate = base.load("weft.runtime.simulate")
        try:
            simulated: Kernel = simulate.compiled(src, chosen, values, compile)
            return simulated
        except base.CompilationError as error:
            _shorten(error)
            raise
    if in_layouts and compiler.as_target(chosen).backend == "cpu":
        raise base.Unsupported(
            "compiling layout IR", "cpu", hint=f"targets with layouts: {', '.join(compiler.SIMULATED)}"
        )
    replacement = values.pop("ir_override", None) or _override(src.name)
    store: compiler.Store | None = default_store()
    if knobs.compilation.always_compile and store is not None:
        store = _WriteOnly(store)
    kernel: Any
    try:
        with uncollected():
            kernel = compiler.compile(
                src,
                chosen,
                values,
                store=store,
                dump=_make_dump(),
                environment={"compiler": compiler_key(), **(_env_vars or {})},
                instead=None if replacement is None else _tile_ir(replacement),
                elsewhere=_elsewhere(executor),
                worker=_by_worker,
            )
    except base.CompilationError as error:
        _shorten(error)
        raise
    except base.LaunchError as error:
        raise error.with_traceback(None) from None
    kernel.given_options = values
    warn_of_wrapping(kernel.metadata.wrapped_offsets)
    _tell(kernel)
    compiled: Kernel = kernel
    return compiled


def _native_store() -> tuple[Any, str] | None:
    """Where the native code of launches is kept, as kernels are: a store, and what tells one compiler from another."""
    store = default_store()
    return None if store is None or knobs.compilation.always_compile else (store, compiler_key())


def _with_knobs(options: Any) -> dict[str, Any]:
    """The options of a compilation, given as a mapping or an object, and those that knobs decide."""
    is_object = hasattr(options, "__dict__") and not isinstance(options, Mapping)
    values = dict(vars(options) if is_object else options or {})
    if knobs.compilation.allow_non_constexpr_globals:
        values.setdefault("allow_non_constexpr_globals", True)
    if knobs.language.fp32_default:
        values.setdefault("default_dot_input_precision", knobs.language.fp32_default)
    if not knobs.language.default_fp_fusion:
        values.setdefault("enable_fp_fusion", False)
    return values


def _tell(kernel: Any) -> None:
    """Print how long the stages took, and call the listener, where knobs ask for it."""
    if knobs.compilation.timing:
        stages = "  ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in kernel.timings.items())
        print(f"weft: {kernel.name}: {stages}{'  (from the cache)' if kernel.from_cache else ''}", file=sys.stderr)
    listener = knobs.compilation.listener
    if listener is not None:
        listener(
            src=kernel.src,
            metadata=kernel.metadata._asdict(),
            metadata_group=kernel.metadata_group,
            times=knobs.CompileTimes.of(kernel.timings),
            cache_hit=kernel.from_cache,
        )


class _WriteOnly:
    """A store in which nothing is found."""

    def __init__(self, store: compiler.Store) -> None:
        self.put = store.put

    def get(self, key: str) -> None:
        """Nothing."""


def _is_gluon(src: Any) -> bool:
    asked = getattr(getattr(src, "fn", None), "is_gluon", None)
    return asked is not None and bool(asked())
