"""Every setting, each with the environment variable that gives its default.

    from weft import knobs
    knobs.compilation.always_compile = True          # from now on
    with knobs.runtime.scope():                      # for a while
        knobs.runtime.debug = True

Groups and names are those of `triton.knobs` as far as they mean something here; settings of Weft's own stand in the
group `weft`.  An environment variable is read when a setting is first asked for; `refresh_knobs()` reads again.
Assigning `knobs.env` goes back to the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from weft import compiler
from weft.base import LaunchError, LaunchTypeError

__all__ = [
    "CompileTimes",
    "HookChain",
    "autotuning",
    "cache",
    "compilation",
    "env",
    "language",
    "parse_size",
    "refresh_knobs",
    "runtime",
    "table",
    "weft",
]

T = TypeVar("T")


class _Env:
    """The value `knobs.env`: assign it to a knob to take the environment's value again."""

    def __repr__(self) -> str:
        return "knobs.env"


env = _Env()

_TRUE = ("1", "true", "yes", "on", "y")


def _flag(text: str) -> bool:
    return text.strip().lower() in _TRUE


class _Knob(Generic[T]):
    """A setting: environment variables (the first one that is set counts), how to read them, and a default."""

    def __init__(self, names: str, read: Callable[[str], T], default: T) -> None:
        self.names = tuple(names.split())
        self._read = read
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def from_environment(self) -> T:
        for name in self.names:
            text = os.environ.get(name)
            if text is not None and text != "":
                try:
                    return self._read(text)
                except ValueError as error:
                    raise LaunchError(f"the environment variable {name} is {text!r}: {error}") from None
        return self._default

    def __get__(self, group: Any, owner: type | None = None) -> T:
        # A non-data descriptor: what is found is put into the instance, where the next look-up finds it directly.
        value = self.from_environment()
        if group is not None:
            group.__dict__[self.name] = value
        return value


class HookChain(list[Callable[..., Any]]):
    """Functions that are called one after the other; false when there are none, which every launch asks."""

    def __init__(self, reversed: bool = False) -> None:
        super().__init__()
        self.reversed = reversed

    @property
    def calls(self) -> list[Callable[..., Any]]:
        """The functions, in the order in which they were added."""
        return self

    def add(self, function: Callable[..., Any]) -> None:
        """Call a function too; adding it again does nothing."""
        if function not in self:
            self.append(function)

    def remove(self, function: Callable[..., Any]) -> None:
        """Call it no more."""
        if function in self:
            super().remove(function)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for function in list(self) if not self.reversed else self[::-1]:
            function(*args, **kwargs)


class _Group:
    """Settings that belong together."""

    _knobs: ClassVar[dict[str, _Knob[Any]]]

    def __init_subclass__(cls) -> None:
        cls._knobs = {name: value for name, value in vars(cls).items() if isinstance(value, _Knob)}

    def __setattr__(self, name: str, value: Any) -> None:
        if value is env:
            self.__dict__.pop(name, None)
        elif name in self._knobs or name in self.__dict__ or hasattr(type(self), name):
            self.__dict__[name] = value
        else:
            raise AttributeError(f"there is no setting {name!r}; there are {', '.join(sorted(self.knobs))}")

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)

    @property
    def knobs(self) -> dict[str, Any]:
        """The settings and their values."""
        return {name: getattr(self, name) for name in [*self._knobs, *self.__dict__]}

    @property
    def knob_descriptors(self) -> dict[str, tuple[str, ...]]:
        """The settings and their environment variables."""
        return {name: knob.names for name, knob in self._knobs.items()}

    def copy(self) -> Self:
        """A group of its own with the same values."""
        other = type(self)()
        other.__dict__.update(self.__dict__)
        return other

    def reset(self) -> Self:
        """Take every value from the environment again."""
        for name in self._knobs:
            self.__dict__.pop(name, None)
        return self

    refresh = reset

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Whatever is set inside is set back at the end."""
        before = dict(self.__dict__)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(before)


base_knobs = _Group
"""The class of groups of settings, by the name that tools look for."""


def _optional(names: str) -> _Knob[str | None]:
    return _Knob[str | None](names, str, None)


def parse_size(text: str) -> int:
    """Bytes, with an optional unit: "512M", "2G"; ValueError for anything else.

    >>> parse_size("2k")
    2048
    """
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([kmgt]?)(?:i?b)?", text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is no size: sizes are numbers of bytes, as 512M or 2G")
    return int(float(match[1]) * units[match[2]])


class _Cache(_Group):
    """Where compiled kernels are kept."""

    home_dir = _optional("WEFT_HOME TRITON_HOME")
    """Where `.weft/cache` is, if `dir` is not given."""
    dir = _optional("WEFT_CACHE_DIR")
    """The directory; the user's cache directory if not given. `TRITON_CACHE_DIR` counts once compat is installed."""
    dump_dir = _optional("WEFT_DUMP_DIR TRITON_DUMP_DIR")
    override_dir = _optional("TRITON_OVERRIDE_DIR")
    """Where `compilation.override` looks for `<kernel>.ttir`, as `compilation.dump_ir` wrote it to `dump_dir`."""
    manager_class = _optional("TRITON_CACHE_MANAGER")
    remote_manager_class = _optional("TRITON_REMOTE_CACHE_BACKEND")
    size = _Knob("WEFT_CACHE_SIZE", parse_size, 1 << 30)
    """Bytes that the cache may take; the least recently used entries go first."""
    disabled = _Knob("WEFT_NO_CACHE", _flag, False)


class _Compilation(_Group):
    """How kernels are compiled."""

    always_compile = _Knob("WEFT_ALWAYS_COMPILE TRITON_ALWAYS_COMPILE", _flag, False)
    """Compile, and put into the cache, what may be in it already."""
    dump_ir = _Knob("TRITON_KERNEL_DUMP", _flag, False)
    dump = _Knob("WEFT_DUMP", str, "")
    """Stages to show while compiling: "ttir,llir,asm" or "all"; to stderr, or into files of `cache.dump_dir`."""
    override = _Knob("TRITON_KERNEL_OVERRIDE", _flag, False)
    """Compile the tile IR found in `cache.override_dir` in the place of a kernel of that name."""
    disable_line_info = _Knob("TRITON_DISABLE_LINE_INFO", _flag, False)
    """Line information is not written into the code, whatever this says."""
    front_end_debugging = _Knob("TRITON_FRONT_END_DEBUGGING", _flag, False)
    """Show where in Weft a compilation error was found: the whole traceback, and what caused it."""
    dump_ir_extract_di_local_variables = _Knob("LLVM_EXTRACT_DI_LOCAL_VARIABLES", _flag, False)
    store_binary_only = _Knob("TRITON_STORE_BINARY_ONLY", _flag, False)
    use_ir_loc = _optional("USE_IR_LOC")
    enable_asan = _Knob("TRITON_ENABLE_ASAN", _flag, False)
    allow_non_constexpr_globals = _Knob("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", _flag, False)
    instrumentation_mode = _Knob("TRITON_INSTRUMENTATION_MODE", str, "")
    timing = _Knob("WEFT_TIMING", _flag, False)
    """Print the seconds of every stage."""
    isolate = _Knob("WEFT_ISOLATE", _flag, False)
    """Compile in a process of its own, which may die: that is an error then, and not the end of the program."""
    workers = _Knob("WEFT_WORKERS", int, 0)
    """How many processes compile at a time; 0 is one for each processor."""
    worker_seconds = _Knob("WEFT_WORKER_SECONDS", float, 600.0)
    """How long a process may take for a kernel."""
    worker_memory = _Knob("WEFT_WORKER_MEMORY", parse_size, 0)
    """How many bytes a process that compiles may have, "4G" say; 0 is as many as there are."""
    listener: Callable[..., None] | None = None
    """Called after every compilation with src=, metadata=, metadata_group=, times=, cache_hit=."""


@dataclass(frozen=True)
class CompileTimes:
    """Microseconds of a compilation, as listeners are told them."""

    ir_initialization: int
    """Until the code of the kernel was known: found in the cache, or traced."""
    lowering_stages: list[tuple[str, int]]
    store_results: int

    @classmethod
    def of(cls, timings: Mapping[str, float]) -> CompileTimes:
        """From the seconds of each stage."""
        times = {name: max(1, round(1e6 * seconds)) for name, seconds in timings.items()}
        first, stored = (times.pop("key", 0), times.pop("cache", 0), times.pop("ttir", 0)), times.pop("store", 0)
        return cls(sum(first), list(times.items()), stored)

    @property
    def total_lowering(self) -> int:
        """All lowering stages."""
        return sum(t for _, t in self.lowering_stages)

    @property
    def total(self) -> int:
        """All of it."""
        return self.ir_initialization + self.total_lowering + self.store_results


class _Autotuning(_Group):
    """The autotuner."""

    cache = _Knob("TRITON_CACHE_AUTOTUNING", _flag, False)
    print = _Knob("TRITON_PRINT_AUTOTUNING", _flag, False)
    listener: Callable[..., Any] | None = None
    """Called after each choice among several configurations, with `fn`, `key`, `best_config`, `configs_timings`,
    `duration` in seconds (None if the timings were on disk) and `cache_hit`."""


class _Runtime(_Group):
    """Launching, and hooks into it."""

    debug = _Knob("WEFT_DEBUG TRITON_DEBUG", _flag, False)
    interpret = _Knob("TRITON_INTERPRET", _flag, False)
    override_arch = _optional("TRITON_OVERRIDE_ARCH")
    jit_cache_hook: Callable[..., Any] | None = None
    jit_post_compile_hook: Callable[..., Any] | None = None
    add_stages_inspection_hook: Callable[..., Any] | None = None

    def __init__(self) -> None:
        self.__dict__["launch_enter_hook"] = HookChain()
        self.__dict__["launch_exit_hook"] = HookChain(reversed=True)
        self.__dict__["kernel_load_start_hook"] = HookChain()
        self.__dict__["kernel_load_end_hook"] = HookChain(reversed=True)

    launch_enter_hook: Any
    launch_exit_hook: Any
    kernel_load_start_hook: Any
    kernel_load_end_hook: Any


class _Language(_Group):
    """The meaning of kernels."""

    fp32_default = _optional("TRITON_F32_DEFAULT")
    default_fp_fusion = _Knob("TRITON_DEFAULT_FP_FUSION", _flag, True)


class _Nvidia(_Group):
    """Where NVIDIA's tools are, which goes into the environment when it is set, as in Triton; the rest changes nothing
    and is kept so that scripts that set it run.
    """

    cuobjdump = _optional("TRITON_CUOBJDUMP_PATH")
    nvdisasm = _optional("TRITON_NVDISASM_PATH")
    ptxas = _optional("TRITON_PTXAS_PATH")
    libdevice_path = _optional("TRITON_LIBDEVICE_PATH")
    libcuda_path = _optional("TRITON_LIBCUDA_PATH")
    ptxas_blackwell = _optional("TRITON_PTXAS_BLACKWELL_PATH")
    ptxas_options = _optional("PTXAS_OPTIONS")
    mock_ptx_version = _optional("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = _Knob("TRITON_DUMP_PTXAS_LOG", _flag, False)
    dump_nvptx = _Knob("NVPTX_ENABLE_DUMP", _flag, False)
    disable_ptxas_opt = _Knob("DISABLE_PTXAS_OPT", _flag, False)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("ptxas", "nvdisasm", "cuobjdump") and value is not env:
            path, variable = getattr(value, "path", value), f"TRITON_{name.upper()}_PATH"
            if path is not None and not isinstance(path, (str, os.PathLike)):
                raise LaunchTypeError(f"the setting nvidia.{name} is a path, got {value!r}", name)
            if path is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = os.fspath(path)
        super().__setattr__(name, value)


class _Amd(_Group):
    """Settings of a target that is not here: kept so that scripts that set them run."""

    use_buffer_ops = _Knob("AMDGCN_USE_BUFFER_OPS", _flag, True)
    use_buffer_atomics = _Knob("AMDGCN_USE_BUFFER_ATOMICS", _flag, True)
    use_block_pingpong = _Knob("TRITON_HIP_USE_BLOCK_PINGPONG", _flag, False)
    use_in_thread_transpose = _Knob("TRITON_HIP_USE_IN_THREAD_TRANSPOSE", _flag, False)
    use_async_copy = _Knob("TRITON_HIP_USE_ASYNC_COPY", _flag, False)
    buffer_ops_analyze_small_tensor_range = _Knob("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE", _flag, False)
    scalarize_packed_fops = _Knob("AMDGCN_SCALARIZE_PACKED_FOPS", _flag, False)
    libhip_path = _optional("TRITON_LIBHIP_PATH")
    dump_amdgcn = _Knob("AMDGCN_ENABLE_DUMP", _flag, False)


class _Weft(_Group):
    """Weft's own."""

    target = _optional("WEFT_TARGET")
    """The target of launches; "cpu" if not given."""
    num_threads = _Knob("WEFT_NUM_THREADS", int, 0)
    """Threads a launch may use; 0 for all usable cores."""
    scratch_limit = _Knob("WEFT_SCRATCH_LIMIT", parse_size, 0)
    """Bytes of scratch memory that a launch may take on all its threads; 0 for half of the machine's memory."""

    target_was_set: ClassVar[Callable[[], None]] = staticmethod(lambda: None)
    """Called when a program sets the target: kernels that were launched before have to ask for it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "target":
            type(self).target_was_set()
        if name in ("num_threads", "scratch_limit") and value is not env and type(value) is not int:
            raise LaunchTypeError(f"the setting weft.{name} is an integer, got {value!r}", name)
        if name == "num_threads":
            count = type(self)._knobs[name].from_environment() if value is env else value
            compiler.set_num_threads(count or None)
        super().__setattr__(name, value)

    def apply(self) -> None:
        """Hand on what is looked at when a kernel is loaded."""
        compiler.set_scratch_limit(self.scratch_limit or None)


cache = _Cache()
compilation = _Compilation()
autotuning = _Autotuning()
runtime = _Runtime()
language = _Language()
nvidia = _Nvidia()
amd = _Amd()
weft = _Weft()

_GROUPS: dict[str, _Group] = {
    "cache": cache,
    "compilation": compilation,
    "autotuning": autotuning,
    "runtime": runtime,
    "language": language,
    "nvidia": nvidia,
    "amd": amd,
    "weft": weft,
}


def refresh_knobs() -> None:
    """Read the environment again, for every setting."""
    for group in _GROUPS.values():
        group.reset()


def table() -> list[tuple[str, str, str]]:
    """(setting, environment variables, value) of everything, for `weft info`."""
    return [
        (f"{name}.{knob}", " ".join(names), repr(getattr(group, knob)))
        for name, group in _GROUPS.items()
        for knob, names in group.knob_descriptors.items()
    ]
