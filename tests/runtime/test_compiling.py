"""Compiling: keys, the cache, dumps, options, many at once."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from children import TESTS, environment
from weft import compiler, knobs
from weft.backends.nvidia import ptxas
from weft.base import CompilationError, CompilerCrash, LaunchError, Unsupported
from weft.compiler import ASTSource, GPUTarget, cache_key, cpu_stages, make_options
from weft.language.keys import key_text

SIGNATURE = {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}


@weft.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + n)


def source(**changes: Any) -> ASTSource:
    facts = {"fn": kernel, "signature": SIGNATURE, "constexprs": {"BLOCK": 64}, "attrs": {}} | changes
    return ASTSource(**facts)


def key_of(src: Any = None, extra: Any = None, **options: Any) -> str:
    return cache_key(src or source(), compiler.as_target(), make_options(options), extra)


def variant(text: str, **more: Any) -> Any:
    """The kernel with other text, or other captured values."""
    function = weft.jit(kernel.fn)
    function._unsafe_update_src(text)
    return function


def test_every_ingredient_is_in_the_key(tmp_path: Path) -> None:
    base = key_of()
    assert base == key_of()
    others = {
        "signature": key_of(source(signature={**SIGNATURE, "n": "i64"})),
        "element": key_of(source(signature={**SIGNATURE, "x": "*fp64"})),
        "constant": key_of(source(constexprs={"BLOCK": 128})),
        "constant's type": key_of(source(constexprs={"BLOCK": 64.0})),
        "bool": key_of(source(constexprs={"BLOCK": True})),
        "one": key_of(source(constexprs={"BLOCK": 1})),
        "attribute": key_of(source(attrs={(0,): [["tt.divisibility", 16]]})),
        "attribute's place": key_of(source(attrs={(1,): [["tt.divisibility", 16]]})),
        "source": key_of(source(fn=variant(kernel.src.replace("+ n", "- n")))),
        "environment": key_of(extra={"A": "1"}),
        "debug": key_of(debug=True),
        "warps": key_of(num_warps=8),
        "stages": key_of(num_stages=2),
        "ctas": key_of(num_ctas=2),
        "fusion": key_of(enable_fp_fusion=False),
        "overflow": key_of(sanitize_overflow=False),
        "precision": key_of(default_dot_input_precision="tf32"),
        "aliasing": key_of(assume_no_alias=False),
        "globals": key_of(allow_non_constexpr_globals=True),
        "ir": key_of(compiler.IRSource("module {}\n")),
    }
    keys = [base, *others.values()]
    assert len(set(keys)) == len(keys), [n for n, k in others.items() if keys.count(k) > 1]


def test_the_machine_and_the_versions_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.compiler import compile as compile_function

    module = sys.modules[compile_function.__module__]
    base = key_of()
    cpu = module.host_cpu()
    changed = type(cpu)(**{**vars(cpu), "feature_string": cpu.feature_string + ",-avx2"})
    with monkeypatch.context() as patched:
        patched.setattr(module, "host_cpu", lambda: changed)
        assert key_of() != base
    for name, value in (("llvm_version", lambda: "other"), ("__version__", "9.9")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, value)
            module.versions.cache_clear()
            assert key_of() != base
    module.versions.cache_clear()
    assert key_of() == base


def test_the_key_is_the_same_in_another_process() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from runtime.test_compiling import key_of; "
        "from runtime.test_compiling import source; print(key_of())"
    )
    env = environment()
    keys = set()
    for seed in ("0", "77"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(TESTS)],
            env={**env, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        keys.add(done.stdout)
    assert len(keys) == 1


def test_stable_texts() -> None:
    assert key_text(1) != key_text(True) != key_text(1.0)
    assert key_text(0.0) != key_text(-0.0)
    assert key_text({"a": 1, "b": 2}) != key_text({"b": 2, "a": 1})  # a function that runs over it can tell
    assert key_text((1, 2)) != key_text([1, 2])
    assert key_text(tl.float32) == key_text(tl.float32) != key_text(tl.float16)
    assert key_text(tl.constexpr(3)) == key_text(3)
    thing = object()
    assert key_text(thing) == key_text(thing) != key_text(object())  # and no other process has the text


def test_the_cache_is_used(fresh_cache: Path) -> None:
    first = weft.compile(source())
    second = weft.compile(source())
    assert not first.from_cache and second.from_cache
    assert second.hash == first.hash and second.asm["llir"] == first.asm["llir"]
    assert second.asm["asm"] == first.asm["asm"]
    x = np.zeros(64, np.float32)
    second[(1,)](x, 3, 64)
    assert (x == 3).all()
    knobs.compilation.always_compile = True
    assert not weft.compile(source()).from_cache
    knobs.compilation.always_compile = False
    (entry,) = fresh_cache.glob(f"{first.hash}*")  # beside code that launches need
    entry.write_bytes(entry.read_bytes()[:-1])
    with pytest.warns(weft.base.CacheWarning, match="damaged and is made anew: .*: its digest does not match$") as told:
        assert not weft.compile(source()).from_cache
    assert told[0].filename == __file__  # the user's line, not one of Weft
    assert weft.compile(source()).from_cache
    knobs.cache.disabled = True
    assert not weft.compile(source()).from_cache


def test_compiled_twice_is_the_same_bytes() -> None:
    knobs.compilation.always_compile = True
    first, second = weft.compile(source()), weft.compile(source())
    assert first.asm["object"] == second.asm["object"]
    assert first.asm["ttir"] == second.asm["ttir"]


def test_dumps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knobs.compilation.dump = "ttir,asm"
    weft.compile(source())
    text = capsys.readouterr().err
    assert "---- kernel: ttir" in text and "---- kernel: asm" in text and "---- kernel: llir" not in text
    knobs.compilation.dump = "all"
    knobs.cache.dump_dir = str(tmp_path / "dump")
    weft.compile(source())
    assert sorted(p.name for p in (tmp_path / "dump").iterdir()) == ["kernel.asm", "kernel.llir", "kernel.ttir"]
    knobs.compilation.dump = "spirv"
    stages = "ttir, ttgir, lane, llir, ptx, amdgcn, asm, all"
    with pytest.raises(LaunchError, match=f"WEFT_DUMP names 'spirv'; stages are {stages}"):
        weft.compile(source())


def test_timings(capsys: pytest.CaptureFixture[str]) -> None:
    knobs.compilation.timing = True
    compiled = weft.compile(source())
    assert {"ttir", "llir"} <= set(compiled.timings)
    assert "weft: kernel:" in capsys.readouterr().err


def test_listeners() -> None:
    seen: list[Any] = []
    knobs.compilation.listener = lambda **facts: seen.append(facts)
    weft.compile(source())
    (facts,) = seen
    assert facts["cache_hit"] is False and facts["metadata"]["name"] == "kernel" and facts["times"].total > 0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"signature": {**SIGNATURE, "z": "i32"}}, "names \\['z'\\]"),
        ({"signature": {"x": "*fp32"}}, "says nothing about parameter 'n'"),
        ({"constexprs": {"BLOK": 1}}, "no parameter 'BLOK'"),
        ({"fn": len}, "decorated with jit"),
    ],
)
def test_bad_sources(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(CompilationError, match=text):
        source(**changes)


@pytest.mark.parametrize(
    ("target", "text"),
    [("cuda:70", "cuda:70"), (GPUTarget("cuda", 70, 32), "cuda:70"), ("hip", "hip")],
)
def test_targets_that_are_not_there(target: Any, text: str) -> None:
    with pytest.raises(Unsupported, match=text):
        weft.compile(source(), target=target)


def test_a_target_whose_warps_have_another_size() -> None:
    with pytest.raises(Unsupported) as caught:
        weft.compile(source(), target=GPUTarget("cuda", 90, 64))
    assert str(caught.value) == (
        "error: a warp of 64 threads is not supported on target cuda:90\n"
        "hint: its warps have 32: GPUTarget('cuda', 90, 32)"
    )


class _Alarm:
    def __call__(self, number: int, frame: object) -> None:
        raise TimeoutError("too slow")


@pytest.mark.parametrize(
    ("target", "arch", "made"),
    [
        ("cuda:90", "sm80", "sm_80"),
        ("cuda:80", "sm_90a", "sm_90a"),
        ("cuda:90", 86, "sm_86"),
        ("cuda:90", None, "sm_90a"),
    ],
)
def test_the_option_arch_says_for_which_gpu(target: str, arch: Any, made: str) -> None:
    compiled = weft.compile(source(), target=target, options={"arch": arch})
    assert compiled.metadata.arch == made and f".target {made}" in compiled.asm["ptx"]


def test_the_option_arch_of_no_gpu_that_is_compiled_for() -> None:
    with pytest.raises(Unsupported, match="cuda:70(.|\n)*older than all that are compiled for"):
        weft.compile(source(), target="cuda:90", options={"arch": "sm70"})
    assert weft.compile(source(), target="cpu", options={"arch": "sm70"}).metadata.target.backend == "cpu"


@weft.constexpr_function
def _signalled():
    signal.raise_signal(signal.SIGTERM)
    return 1


@weft.jit
def _helper(x):
    tl.store(x, _signalled())


@weft.jit
def slow(x):
    _helper(x)


@pytest.mark.parametrize("handler", [_Alarm(), _Alarm().__call__, functools.partial(_Alarm())])
def test_what_a_signal_handler_raises_meanwhile(handler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While user code is traced, where exceptions are explained; and in a stage, where they are faults of Weft."""
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(TimeoutError, match="^too slow$"):
            slow[(1,)](np.zeros(1, np.int32))
        monkeypatch.setattr(cpu_stages, "compile_module", lambda *_: signal.raise_signal(signal.SIGTERM))
        with pytest.raises(TimeoutError, match="^too slow$"):
            weft.compile(source())
        monkeypatch.setattr(cpu_stages, "compile_module", lambda *_: 1 // 0)
        with pytest.raises(CompilerCrash, match="ZeroDivisionError"):
            weft.compile(source())
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("stored", ["%0", "%1"])
def test_assembly_in_tile_ir_whether_used_or_not(stored: str) -> None:
    text = f"""module {{
  tt.func public @k(%x: !tt.ptr<i32>) {{
    %0 = tt.load %x : !tt.ptr<i32>
    %1 = tt.elementwise_inline_asm "not.b32 $0, $1;" {{constraints = "=r,r", packed_element = 1 : i32, pure = true}} %0 : i32 -> i32
    tt.store %x, {stored} : !tt.ptr<i32>
    tt.return
  }}
}}
"""  # noqa: E501
    with pytest.raises(Unsupported, match="inline_asm_elementwise is not supported on target cpu") as caught:
        weft.compile(text)
    assert caught.value.span is not None and caught.value.span.line == 4


def test_unreadable_ir(tmp_path: Path) -> None:
    with pytest.raises(CompilationError, match="cannot read"):
        weft.compile(str(tmp_path / "missing.ttir"))
    with pytest.raises(Unsupported, match=r"compiling a \.llir file"):
        weft.compile("kernel.llir")
    for text in ("module { nonsense }\n", "module {}\n", "}\n", "module { tt.func public @k() {\n"):
        with pytest.raises(CompilationError):
            weft.compile(text)


def test_a_fault_of_the_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Any:
        raise AssertionError("this cannot happen")

    monkeypatch.setattr(cpu_stages, "compile_module", broken)
    with pytest.raises(CompilerCrash, match="Weft failed in llir: AssertionError: this cannot happen") as caught:
        weft.compile(source())
    assert "tt.func" in str(caught.value)


def test_many_at_once() -> None:
    fn = weft.jit(kernel.fn)
    with ThreadPoolExecutor(2) as pool, weft.AsyncCompileMode(pool):
        futures = [fn.warmup(weft.MockTensor("fp32"), 7, BLOCK=1 << b, grid=(1,)) for b in (3, 4, 5, 4)]
        assert all(isinstance(f, weft.FutureKernel) for f in futures)
        assert futures[1] is futures[3]
    assert len(fn.cache) == 3 and all(not isinstance(k, weft.FutureKernel) for k in fn.cache.values())
    x = np.zeros(8, np.float32)
    fn[(1,)](x, 7, BLOCK=8)
    assert (x == 7).all() and len(fn.cache) == 3


@weft.jit
def not_a_power_of_two(x):
    tl.store(x + tl.arange(0, 3), 1.0)


def test_many_at_once_with_an_error() -> None:
    with pytest.raises(CompilationError), ThreadPoolExecutor(1) as pool, weft.AsyncCompileMode(pool):
        not_a_power_of_two.warmup(weft.MockTensor("fp32"), grid=(1,))
    with ThreadPoolExecutor(1) as pool, weft.AsyncCompileMode(pool, ignore_errors=True):
        not_a_power_of_two.warmup(weft.MockTensor("fp32"), grid=(1,))


@pytest.mark.parametrize(("option", "value"), [("num_warps", 3), ("num_warps", 2048), ("num_ctas", 6)])
def test_options_that_cannot_be_so_are_as_in_triton(option: str, value: int) -> None:
    """Triton asserts them: who catches its AssertionError catches this."""
    with pytest.raises(AssertionError, match=f"{option} must be a power of 2.*, got {value}") as caught:
        weft.compile(source(), options={option: value})
    assert isinstance(caught.value, weft.LaunchError)


def test_only_a_gpu_has_a_limit_of_warps() -> None:
    """Scripts for CPUs ask for one for each element, a CPU having warps of one thread."""
    assert weft.compile(source(), "cpu", options={"num_warps": 128}).metadata.num_warps == 128
    with pytest.raises(weft.LaunchError, match="num_warps must be a power of 2 from 1 to 32, got 128"):
        weft.compile(source(), "cuda:90", options={"num_warps": 128})


def test_without_an_assembler_there_is_no_machine_code_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver makes it where the kernel is loaded, and keeps it to itself."""
    monkeypatch.setattr(ptxas, "find_tool", lambda name="ptxas": None)
    monkeypatch.setattr(ptxas, "_with_nvjitlink", lambda *arguments: None)
    made = weft.compile(source(), "cuda:90")
    assert made.assemble().by == "driver" and made.asm["ptx"].startswith("//")
    assert made.asm["cubin"] == b""
    with pytest.raises(Unsupported, match="SASS of machine code that the driver makes is not supported"):
        made.asm["sass"]
