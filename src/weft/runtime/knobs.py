"""Every setting, each with the environment variable that gives its default.

    from weft import knobs
    knobs.compilation.always_compile = True          # from now on
    with knobs.runtime.scope():                      # for a while
        knobs.runtime.debug = True

Groups and names are those of `triton.knobs`; settings that only Weft has are in the group `weft`.  A setting reads its
environment variable at each access, and an assignment writes it (unless `knobs.propagate_env` is false). The settings
that every launch needs, `runtime.debug` and the group `weft`, read it once; `refresh_knobs()` reads it again. Assign
`knobs.env` to return to the environment's value.

>>> from weft import knobs
>>> with knobs.runtime.scope():
...     knobs.runtime.debug = True
...     inside = knobs.runtime.debug
>>> inside, knobs.runtime.debug
(True, False)
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weft import compiler
from weft.base import LaunchError, LaunchTypeError, frames, load

from .settings import (
    NvidiaTool as NvidiaTool,
    base_knobs as base_knobs,
    env as env,
    env_base as env_base,
    env_bool as env_bool,
    env_class as env_class,
    env_int as env_int,
    env_nvidia_tool as env_nvidia_tool,
    env_opt_bool as env_opt_bool,
    env_opt_path as env_opt_path,
    env_opt_str as env_opt_str,
    env_read,
    env_str as env_str,
    env_str_callable_default as env_str_callable_default,
    flag,
    kept,
    propagates,
    setenv as setenv,
    toenv as toenv,
)

propagate_env = True
"""Whether what a program sets goes into the environment, for the processes that it starts."""
propagates.append(lambda: propagate_env)


env_nvidia_tool.find = staticmethod(
    lambda name: load("weft.compiler.backends").first_backend().tool(name)  # as launches find it
)


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


class build_knobs(base_knobs):
    """How C is compiled for whoever asks for it: Weft needs no compiler of C."""

    cc = env_opt_str("CC")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")
    impl: Callable[..., str] | None = None

    @property
    def backend_dirs(self) -> set[str]:
        """The folders that were named."""
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}


class redis_knobs(base_knobs):
    """Where Redis is, for `triton.runtime.cache.RedisRemoteCacheBackend`."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    """How entries are named."""
    host = env_str("TRITON_REDIS_HOST", "localhost")
    """The server."""
    port = env_int("TRITON_REDIS_PORT", 6379)
    """The server's port."""


class cache_knobs(base_knobs):
    """Where compiled kernels are kept."""

    as_triton: ClassVar[bool] = False
    """Whether Weft goes by the name triton (see `go_by_triton`): then directories are in `~/.triton`."""

    home_dir = env_str_callable_default("WEFT_HOME TRITON_HOME", lambda: os.path.expanduser("~/"))
    """The directory of `.weft/cache` if `dir` is not set (of `.triton/cache` if Weft runs under the name triton)."""
    dir = env_str_callable_default("WEFT_CACHE_DIR", lambda: _cache_directory() or "")
    """The directory of the cache; by default in the user's cache directory, or below `home_dir` if that is set."""
    dump_dir = env_str_callable_default("WEFT_DUMP_DIR TRITON_DUMP_DIR", lambda: _triton_directory("dump"))
    """The directory for the files of `compilation.dump` and `compilation.dump_ir`."""
    override_dir = env_str_callable_default("TRITON_OVERRIDE_DIR", lambda: _triton_directory("override"))
    """Where `compilation.override` looks for `<kernel>.ttir`, as `compilation.dump_ir` wrote it to `dump_dir`."""
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")

    def get_triton_dir(self, dirname: str) -> str:
        """A directory of Triton's in the home."""
        return os.path.join(self.home_dir, ".triton", dirname)

    size = env_read("WEFT_CACHE_SIZE", parse_size, 1 << 30)
    """How many bytes the cache may take, "512M" say; the least recently used entries are removed first."""
    disabled = env_bool("WEFT_NO_CACHE")
    """Neither read nor write the cache."""


class compilation_knobs(base_knobs):
    """How kernels are compiled."""

    always_compile = env_bool("WEFT_ALWAYS_COMPILE TRITON_ALWAYS_COMPILE")
    """Compile even what is in the cache, and store the result there."""
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    """Write all stages of each kernel to files of `cache.dump_dir` when it is compiled."""
    dump = env_str("WEFT_DUMP", "")
    """Stages of each compiled kernel to print, "ttir,llir,asm" or "all": on stderr, or to files of `cache.dump_dir`."""
    override = env_bool("TRITON_KERNEL_OVERRIDE")
    """Compile the tile IR found in `cache.override_dir` in place of the kernel with that name."""
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    """No effect: the CPU's code never has line information."""
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    """Show Weft's own frames in the tracebacks of errors, and the cause of a compilation error."""
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    """Let kernels read globals that are not constexprs, as constants."""
    instrumentation_mode = kept("TRITON_INSTRUMENTATION_MODE", str, "")
    timing = env_bool("WEFT_TIMING")
    """Print the seconds that each stage of a compilation takes."""
    isolate = env_bool("WEFT_ISOLATE")
    """Compile in another process: if LLVM crashes, you get an error, and your process goes on."""
    workers = env_int("WEFT_WORKERS", 0)
    """How many processes compile at a time; 0: one for each processor."""
    worker_seconds = env_read("WEFT_WORKER_SECONDS", float, 600.0)
    """How many seconds a compile worker may take for a kernel."""
    worker_memory = env_read("WEFT_WORKER_MEMORY", parse_size, 0)
    """How many bytes a compile worker may use, "4G" say; 0: no limit."""
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


class autotuning_knobs(base_knobs):
    """The autotuner."""

    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    """Keep the timings of tuned kernels on disk."""
    print = env_bool("TRITON_PRINT_AUTOTUNING")
    """Print which configuration was chosen, and how long tuning took."""
    tuned = env_opt_path("WEFT_TUNED")
    """A file that `weft tune` wrote, whose configurations are launched without measuring. If it is empty, no such file
    is read, not even those next to the kernels' sources."""
    listener: Callable[..., Any] | None = None
    """Called after each choice among several configurations, with `fn`, `key`, `best_config`, `configs_timings`,
    `duration` in seconds (None if the timings were on disk) and `cache_hit`."""


class runtime_knobs(base_knobs):
    """Launching, and hooks into it."""

    debug = kept("WEFT_DEBUG TRITON_DEBUG", flag, False)
    """Launch every kernel with `debug=True`: check accesses, integer overflow, hints and assertions."""
    interpret = env_bool("TRITON_INTERPRET")
    override_arch = env_opt_str("TRITON_OVERRIDE_ARCH")
    """The architecture to compile for in place of the GPU's own, "sm80" say."""
    jit_cache_hook: Callable[..., Any] | None = None
    jit_post_compile_hook: Callable[..., Any] | None = None
    add_stages_inspection_hook: Callable[..., Any] | None = None

    def __init__(self) -> None:
        self.__dict__["launch_enter_hook"] = HookChain()
        self.__dict__["launch_exit_hook"] = HookChain(reversed=True)
        self.__dict__["kernel_load_start_hook"] = HookChain()
        self.__dict__["kernel_load_end_hook"] = HookChain(reversed=True)
        self.__dict__["kernel_unload_hook"] = HookChain(reversed=True)

    launch_enter_hook: Any
    launch_exit_hook: Any
    kernel_load_start_hook: Any
    kernel_load_end_hook: Any
    kernel_unload_hook: Any


class language_knobs(base_knobs):
    """The meaning of kernels."""

    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    """The `input_precision` of products of float32 that name none: "ieee", "tf32", "tf32x3"."""
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)
    """Whether a product and a sum may be rounded once, for launches without `enable_fp_fusion`."""


class nvidia_knobs(base_knobs):
    """Where NVIDIA's tools are; the rest changes nothing and is kept so that scripts that set it run."""

    cuobjdump = env_nvidia_tool("cuobjdump")
    """The path of cuobjdump, which `triton.tools.disasm` needs."""
    nvdisasm = env_nvidia_tool("nvdisasm")
    """The path of nvdisasm, which `asm["sass"]` needs."""
    ptxas = env_nvidia_tool("ptxas")
    """The path of ptxas, which compiles PTX to machine code."""
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")

    @frames.shortened
    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(self._knobs.get(name), env_nvidia_tool) and value is not env:
            if value is not None and not isinstance(value, (str, os.PathLike)):
                raise LaunchTypeError(f"the setting nvidia.{name} is a path, got {value!r}", name)
            value = None if value is None else os.fspath(value)
        super().__setattr__(name, value)


class amd_knobs(base_knobs):
    """Those of AMD's GPUs: `use_buffer_ops` and `libhip_path` are heeded, the others kept so that scripts run."""

    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True)
    """Access arrays of less than 2 GiB through buffer descriptors."""
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = env_bool("TRITON_HIP_USE_ASYNC_COPY")
    buffer_ops_analyze_small_tensor_range = env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    """The path of AMD's HIP library."""
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")


class proton_knobs(base_knobs):
    """Settings of Triton's profiler, which is not here: kept so that scripts that set them run."""

    disable = env_bool("TRITON_PROTON_DISABLE")
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", "")
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True)


class weft_knobs(base_knobs):
    """Weft's own."""

    target = kept[str | None]("WEFT_TARGET", str, None)
    """The target of launches that name none: "cuda:90", "sim:cuda:90"; "cpu" if it is not set."""
    num_threads = kept("WEFT_NUM_THREADS", int, 0)
    """How many threads a launch may use; 0: all usable cores."""
    full_traceback = env_bool("WEFT_FULL_TRACEBACK")
    """Show Weft's own frames in the tracebacks of errors, which otherwise lead from your call to your line."""
    scratch_limit = kept("WEFT_SCRATCH_LIMIT", parse_size, 0)
    """How many bytes of scratch memory all threads of a launch may use; 0: half of the machine's memory."""

    target_was_set: ClassVar[Callable[[], None]] = staticmethod(lambda: None)
    """Called when a program sets the target: kernels that were launched before have to ask for it."""

    @frames.shortened
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "target":
            type(self).target_was_set()
        if name in ("num_threads", "scratch_limit") and value is not env and type(value) is not int:
            raise LaunchTypeError(f"the setting weft.{name} is an integer, got {value!r}", name)
        if name == "num_threads":
            count = type(self)._knobs[name].get() if value is env else value
            compiler.set_num_threads(count or None)
        super().__setattr__(name, value)

    def apply(self) -> None:
        """Hand on what is looked at when a kernel is loaded."""
        compiler.set_scratch_limit(self.scratch_limit or None)


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()
weft = weft_knobs()
frames.wanted.append(lambda: weft.full_traceback or compilation.front_end_debugging)

_GROUPS = {name: group for name, group in globals().items() if isinstance(group, base_knobs)}


def _triton_directory(name: str) -> str:
    """A directory of Triton's in the home; none where Weft goes by its own name."""
    return cache.get_triton_dir(name) if cache_knobs.as_triton else ""


def _cache_directory() -> str | None:
    """Where kernels are kept if nothing is said about it; None for a user without a home."""
    if cache_knobs.as_triton or cache.is_set("home_dir"):
        home = cache.home_dir
        return os.path.join(home, ".triton" if cache_knobs.as_triton else ".weft", "cache") if home[:1] != "~" else None
    parent = os.environ.get({"darwin": "", "win32": "LOCALAPPDATA"}.get(sys.platform, "XDG_CACHE_HOME"), "")
    if os.path.isabs(parent):
        return os.path.join(parent, *(("weft", "Cache") if sys.platform == "win32" else ("weft",)))
    parts = {"darwin": ("Library", "Caches", "weft"), "win32": ("AppData", "Local", "weft", "Cache")}
    directory = os.path.expanduser(os.path.join("~", *parts.get(sys.platform, (".cache", "weft"))))
    return directory if directory[:1] != "~" else None


def go_by_triton(yes: bool) -> None:
    """Whether Weft goes by the name triton: then TRITON_CACHE_DIR counts, and directories are in `~/.triton`."""
    cache_knobs.as_triton = yes
    setting = cache_knobs.dir
    setting.keys = ("WEFT_CACHE_DIR", "TRITON_CACHE_DIR") if yes else ("WEFT_CACHE_DIR",)
    setting.key = setting.keys[-1]


def refresh_knobs() -> None:
    """Read the environment again, for every setting."""
    for group in _GROUPS.values():
        group.reset()


def table() -> list[tuple[str, str, str]]:
    """(setting, environment variables, value) of everything, for `weft info`."""
    return [
        (f"{name}.{knob}", " ".join(setting.keys), _shown(group, knob))
        for name, group in _GROUPS.items()
        for knob, setting in group.knob_descriptors.items()
    ]


def _shown(group: base_knobs, name: str) -> str:
    try:
        return repr(getattr(group, name))
    except LaunchError as error:  # a tool that is not installed, a variable that cannot be read
        return str(error).splitlines()[0]
