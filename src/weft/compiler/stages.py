"""The only wiring: a source and options in, a compiled kernel out.

    kernel = compile(ASTSource(...), "cpu", {"num_warps": 4})

Nothing here reads the environment or touches files.  `store` remembers artefacts (the runtime gives one on disk),
`dump` is shown every stage as it is made.
"""

from __future__ import annotations

import hashlib
import importlib
import platform
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from weft import __version__
from weft.analysis import wrapped_offsets
from weft.backends.cpu import CPUBinary, CPUOptions, compile_module
from weft.backends.cpu.driver import host_cpu, llvm_version
from weft.base import CompileOptions, CompilerCrash, LaunchError, LaunchTypeError, Unsupported, WeftError
from weft.ir import print_module
from weft.passes import cpu_pipeline, tile_pipeline

from .kernel import AsmDict, CompiledKernel
from .sources import IRSource, OverriddenSource, Source, stable_text
from .stores import stored_params
from .target import GPUTarget, as_target

__all__ = ["Dump", "Store", "cache_key", "compile", "make_options", "option_names", "versions"]

Dump = Callable[[str, str, str], None]
"""Called with the kernel's name, the name of a stage, and its text."""

STAGES = ("source", "ttir", "llir", "object")


class Store(Protocol):
    """Where artefacts are kept: facts that are JSON, and blobs of bytes."""

    def get(self, key: str) -> tuple[dict[str, Any], dict[str, bytes]] | None:
        """What was put under a key, or nothing."""
        ...

    def put(self, key: str, facts: dict[str, Any], blobs: dict[str, bytes]) -> None:
        """Keep something; not being able to is no error."""
        ...


# Options that Triton's other targets take: accepted, since they change nothing on a CPU.
_FOREIGN = frozenset(
    (
        *("maxnreg", "ptx_version", "ptx_options", "enable_reflect_ftz", "launch_cooperative_grid"),
        *("launch_pdl", "arch", "warp_size", "instrumentation_mode", "backend_name", "extern_libs", "cluster_dims"),
        *("global_scratch_size", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "allow_flush_denorm"),
        *("schedule_hint", "optimize_epilogue"),
    )
)


_LANGUAGE = tuple(f.name for f in fields(CompileOptions))
_BACKEND = tuple(f.name for f in fields(CPUOptions))


@dataclass(frozen=True)
class Options:
    """What a compilation is told: the language's part, and the back end's."""

    language: CompileOptions
    backend: CPUOptions

    def key(self) -> str:
        """A text with every value, for cache keys."""
        parts = [f"{n}={stable_text(getattr(self.language, n))}" for n in _LANGUAGE]
        return "\0".join([*parts, *(f"{n}={stable_text(getattr(self.backend, n))}" for n in _BACKEND)])


@lru_cache(maxsize=1)
def option_names() -> frozenset[str]:
    """Names a launch may give besides the kernel's parameters."""
    return frozenset((*_LANGUAGE, *_BACKEND, "ir_override")) | _FOREIGN


def _check(name: str, value: Any, allowed: tuple[int, ...], text: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or int(value) not in allowed:
        raise LaunchError(f"{name} must be {text}, got {value!r}", name)


def _check_kind(name: str, value: Any, default: Any) -> None:
    """Refuse a value of another kind than the default."""
    kinds: dict[type, tuple[tuple[type, ...], str]] = {
        bool: ((bool, int, np.bool_), "True or False"),
        int: ((int, np.integer), "an integer"),
        str: ((str,), "a string"),
        tuple: ((tuple, list), "a tuple of strings"),
    }
    accepted, text = kinds[type(default)]
    if not isinstance(value, accepted):
        raise LaunchTypeError(f"{name} must be {text}, got {value!r}", name)


def make_options(given: Mapping[str, Any]) -> Options:
    """Check options and make them one frozen value."""
    unknown = [name for name in given if name not in option_names()]
    if unknown:
        raise LaunchError(f"unknown option {unknown[0]!r}", hint=f"options: {', '.join(sorted(option_names()))}")
    warps = (1, 2, 4, 8, 16, 32)
    _check("num_warps", given.get("num_warps", 4), warps, "1, 2, 4, 8, 16 or 32")
    _check("num_stages", given.get("num_stages", 3), tuple(range(1, 33)), "between 1 and 32")
    _check("num_ctas", given.get("num_ctas", 1), (1, 2, 4, 8, 16), "1, 2, 4, 8 or 16")
    for defaults in (CompileOptions(), CPUOptions()):
        for f in fields(defaults):
            if given.get(f.name) is not None:
                _check_kind(f.name, given[f.name], getattr(defaults, f.name))
    precision, allowed = given.get("default_dot_input_precision"), CompileOptions().allowed_dot_input_precisions
    if precision is not None and precision not in given.get("allowed_dot_input_precisions", allowed):
        raise LaunchError(
            f"default_dot_input_precision must be one of {', '.join(allowed)}, got {precision!r}",
            "default_dot_input_precision",
        )
    if given.get("features") and not given.get("cpu"):
        raise LaunchError("features are those of a processor: give cpu as well", "features", hint="cpu='x86-64-v3'")
    _check("vector_bits", given.get("vector_bits") or 0, (0, 128, 256, 512), "128, 256 or 512, or 0 for the widest")
    chosen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items() if v is not None}
    return Options(
        CompileOptions(**{k: v for k, v in chosen.items() if k in _LANGUAGE}),
        CPUOptions(**{k: v for k, v in chosen.items() if k in _BACKEND}),
    )


@lru_cache(maxsize=1)
def versions() -> str:
    """The versions of Weft and of what it is built on."""
    parts = (__version__, llvm_version(), platform.python_version(), platform.system(), platform.machine())
    return "\0".join(parts)


def cache_key(src: Source, target: GPUTarget, options: Options, extra: Mapping[str, str] | None = None) -> str:
    """The key of an artefact: everything that it depends on.

    The compiler counts by its versions; a store that outlives a process gives what tells one source of it from another
    in `extra`.
    """
    parts = [
        versions(),
        str(target),
        host_cpu().fingerprint(),
        src.hash(),
        src.ext,
        options.key(),
        *(f"{name}={value}" for name, value in sorted((extra or {}).items())),
    ]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def stage(name: str, timings: dict[str, float], ir: Callable[[], str] | None = None) -> Iterator[None]:
    """Time a stage; whatever goes wrong in it and is not an error of Weft becomes a CompilerCrash."""
    begin = perf_counter()
    try:
        yield
    except WeftError:
        raise
    except Exception as error:
        raise CompilerCrash(
            f"{type(error).__name__}: {error}", name, ir=ir() if ir else None, traceback=traceback.format_exc()
        ) from error
    finally:
        timings[name] = timings.get(name, 0.0) + perf_counter() - begin


def compile(
    src: Source | str,
    target: Any = None,
    options: Mapping[str, Any] | None = None,
    *,
    store: Store | None = None,
    dump: Dump | None = None,
    environment: Mapping[str, str] | None = None,
    instead: IRSource | None = None,
) -> CompiledKernel:
    """Compile a kernel, or the text of tile IR.

    `environment` holds further things the artefact may depend on, for the key; `instead` is tile IR to take in the
    place of the kernel's own.
    """
    if isinstance(src, str):
        src = IRSource(src)
    timings: dict[str, float] = {}
    chosen = as_target(target)
    opts = make_options(options or {})
    if instead is not None:
        src = OverriddenSource(src, instead)
    if chosen.backend == "cuda":  # whose stages are not imported for the CPU
        cuda = importlib.import_module(f"{__package__}.cuda")
        found: CompiledKernel = cuda.compile_for(src, chosen, options or {}, store=store, dump=dump, extra=environment)
        return found
    if src.ext == "ttgir":
        raise Unsupported(
            f"a Gluon kernel ({src.name}), whose layouts are for the threads of a GPU,",
            str(chosen),
            hint='`with weft.target("sim:cuda:80"):` around the launch, or WEFT_TARGET=sim:cuda:80, runs it on '
            "this machine",
        )
    with stage("key", timings):
        key = cache_key(src, chosen, opts, environment)
    if store is not None:
        with stage("cache", timings):
            entry = store.get(key)
        if entry is not None and all(name in entry[1] for name in STAGES):
            facts = dict(entry[0])
            if facts.get("wrapped_offsets"):  # it may have moved in its file since; rare, so it is traced again
                with stage("ttir", timings):
                    facts["wrapped_offsets"] = _wrapped(tile_pipeline(src.make_ir(opts.language, chosen)))
            return _kernel(src, chosen, opts, facts, entry[1], key, timings, from_cache=True, dump=dump)
    with stage("ttir", timings):
        module = tile_pipeline(src.make_ir(opts.language, chosen))
        ttir = print_module(module)
        stored = stored_params(module)
        wrapped = _wrapped(module)
    if dump is not None:
        dump(src.name, "ttir", ttir)
    debug = opts.language.debug
    backend = replace(opts.backend, assume_no_alias=False) if debug else opts.backend  # nothing is taken on trust
    with stage("llir", timings, lambda: ttir):
        binary = compile_module(*cpu_pipeline(module, debug=debug), backend)
    facts = {
        **binary.metadata,
        "stored_params": stored,
        "wrapped_offsets": wrapped,
        "num_warps": opts.language.num_warps,
        "num_ctas": opts.language.num_ctas,
        "num_stages": opts.language.num_stages,
        "debug": opts.language.debug,
        "enable_fp_fusion": opts.language.enable_fp_fusion,
    }
    blobs = {
        "source": src.text().encode("utf-8", "surrogatepass"),
        "ttir": ttir.encode("utf-8", "surrogatepass"),
        "llir": binary.llir.encode("utf-8", "surrogatepass"),
        "object": bytes(binary.object),
    }
    if store is not None:
        with stage("cache", timings):
            store.put(key, facts, blobs)
    return _kernel(src, chosen, opts, facts, blobs, key, timings, from_cache=False, dump=dump)


def _wrapped(module: Any) -> list[dict[str, Any]]:
    """The offsets that are known to wrap, as plain data."""
    return [asdict(found) for found in wrapped_offsets(module)]


def _kernel(
    src: Source,
    target: GPUTarget,
    opts: Options,
    facts: Mapping[str, Any],
    blobs: Mapping[str, bytes],
    key: str,
    timings: Mapping[str, float],
    *,
    from_cache: bool,
    dump: Dump | None,
) -> CompiledKernel:
    """Put the artefact together."""
    stages: dict[str, Any] = {name: blobs[name].decode("utf-8", "surrogatepass") for name in STAGES if name != "object"}
    stages["object"] = blobs["object"]

    def assembly() -> str:
        return CPUBinary(stages["llir"], blobs["object"], dict(facts), opts.backend).asm

    asm = AsmDict(stages, assembly)
    # A program's scratch memory takes the place of a GPU's shared memory; never 0, because scripts divide by it.
    shared = max(16, int(facts.get("scratch_bytes", 0)))
    own = {"shared": shared, "warp_size": 1, "backend_name": "cpu", "arch": target.arch}
    metadata = {**TRITON_FACTS, **facts, **own}
    kernel = CompiledKernel(src, target, asm, metadata, key, timings, from_cache)
    if dump is not None:
        if from_cache:
            dump(src.name, "ttir", stages["ttir"])
        dump(src.name, "llir", stages["llir"])
        dump(src.name, "asm", asm["asm"])
    return kernel


# Facts that tools written for Triton look for, and their values where there is no GPU.
TRITON_FACTS: dict[str, Any] = {
    "maxnreg": None,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "global_scratch_size": 0,
    "global_scratch_align": 1,
    "profile_scratch_size": 0,
    "profile_scratch_align": 1,
    "tmem_size": 0,
    "cluster_dims": (1, 1, 1),
    "scratch_bytes": 0,
    "scratch_largest": [],
    "asserts": [],
    "checked": [],
    "prints": [],
    "alias_pairs": [],
    "strict_alias_pairs": [],
    "stored_params": [],
    "wrapped_offsets": [],
    "params": [],
    "tensor_maps": [],
}
