"""Compiling for a processor of another family: how it is asked for, what comes of it, and that it is not run here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import ASTSource
from weft.backends.cpu import driver
from weft.base import LaunchError
from weft.compiler import host_cpu
from weft.targets import CPU, FEATURES

OTHER = "neoverse-v1" if host_cpu().is_x86 else "znver4"
MACHO, ELF = b"\xcf\xfa\xed\xfe", b"\x7fELF"

pytestmark = pytest.mark.skipif("apple" in host_cpu().triple, reason="objects here are Mach-O")


@weft.jit
def doubled(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def source() -> ASTSource:
    return ASTSource(doubled, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})


@pytest.mark.parametrize(
    ("target", "options", "magic", "triple"),
    [
        ("cpu:neoverse-v1", {}, ELF, "aarch64-unknown-linux-gnu"),
        ("cpu", {"cpu": "cortex-a72"}, ELF, "aarch64-unknown-linux-gnu"),
        ("cpu:apple-m1", {}, MACHO, "arm64-apple-macosx11.0.0"),
        ("cpu:apple-m1", {"triple": "aarch64-unknown-linux-gnu"}, ELF, "aarch64-unknown-linux-gnu"),
        ("cpu:neoverse-v1", {"triple": "arm64-apple-macosx14.0.0"}, MACHO, "arm64-apple-macosx14.0.0"),
        ("cpu:znver4", {}, ELF, "x86_64-unknown-linux-gnu"),
    ],
)
@pytest.mark.thinned(3)
def test_an_object_for_another_machine(target: str, options: dict[str, Any], magic: bytes, triple: str) -> None:
    kernel = weft.compile(source(), target=target, options=options)
    assert kernel.asm["object"].startswith(magic)
    name = options.get("cpu") or target.partition(":")[2]
    assert (kernel.metadata.target.backend, kernel.metadata.target.arch) == ("cpu", name)
    if triple.partition("-")[0] in ("aarch64", "arm64"):
        assert re.search(r"fadd|fmul|add\.4s", kernel.asm["asm"])


@weft.jit
def counted(x):
    tl.store(x, tl.load(x) + 1)


def test_what_is_made_for_another_machine_is_not_run_here() -> None:
    x = np.ones(64, np.float32)
    text = (
        f"`counted` is compiled for {OTHER} ({re.escape(_triple())}), which this machine, {host_cpu().triple}, is not\n"
        "hint: kernel.asm['object'] is its object file and kernel.asm['asm'] its assembly; docs/howto/cross.md says "
        "how a program calls it there"
    )
    compiled = counted.warmup(x, grid=(1,), target=f"cpu:{OTHER}")
    for launch in (
        lambda: counted[(1,)](x, cpu=OTHER),
        lambda: counted[(1,)](x, target=f"cpu:{OTHER}"),
        lambda: compiled[(1,)](x),
    ):
        with pytest.raises(LaunchError) as info:
            launch()
        assert str(info.value) == text.replace("\\", "")
    with weft.target(f"cpu:{OTHER}"), pytest.raises(LaunchError):
        counted[(1,)](x)
    assert np.all(x == 1)
    counted[(1,)](x)
    assert x[0] == 2


def _triple() -> str:
    return "aarch64-unknown-linux-gnu" if host_cpu().is_x86 else "x86_64-unknown-linux-gnu"


HINT = (
    "hint: names and features are those of LLVM: `weft info` shows this machine's; cpu='x86-64-v3', "
    "features='+avx2,+fma'; of another family: cpu='neoverse-v1', cpu='apple-m1'"
)


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        ("cpu:z80", {}, "'z80' is not a recognized processor for this target"),
        ("cpu:apple-m1", {"features": "+avx2"}, "'+avx2' is not a recognized feature for this target"),
        (
            "cpu:apple-m1",
            {"triple": "x86_64-unknown-linux-gnu"},
            "'apple-m1' is not a recognized processor for this target",
        ),
        ("cpu:apple-m1", {"triple": "moon"}, 'No available targets are compatible with triple "moon"'),
    ],
)
def test_what_is_not_known(target: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(LaunchError) as info:
        weft.compile(source(), target=target, options=options)
    assert str(info.value) == f"{text}\n{HINT}"


WIDTHS = {
    ("znver4", ""): "zmm",
    ("skylake-avx512", ""): "zmm",
    ("znver4", "-avx512f"): "ymm",
    ("x86-64-v3", ""): "ymm",
    ("sandybridge", ""): "ymm",
    ("x86-64", "+avx2"): "ymm",
    ("x86-64-v3", "-avx"): "xmm",
    ("x86-64-v2", ""): "xmm",
    ("native", "-avx512f,-avx"): "xmm",
    ("", "-avx"): "xmm",
}


@pytest.mark.parametrize(("cpu", "features"), WIDTHS)
@pytest.mark.thinned(3)
def test_vectors_are_as_wide_as_llvm_knows_them(cpu: str, features: str) -> None:
    if not host_cpu().is_x86 and cpu in ("", "native"):
        pytest.skip("the processor at hand has no such features")
    text = weft.compile(source(), options={"cpu": cpu, "features": features}).asm["asm"]
    assert max(re.findall(r"[xyz]mm", text)) == WIDTHS[cpu, features]


def test_products_are_by_what_a_named_processor_has() -> None:
    types = {"a": "*bf16", "b": "*bf16", "out": "*fp32", "N": "constexpr"}
    for cpu, instruction in {"sapphirerapids": "tdpbf16ps", "znver4": "vdpbf16ps", "skylake-avx512": "vfmadd"}.items():
        text = weft.compile(ASTSource(product, types, {"N": 32}), target=f"cpu:{cpu}").asm["asm"]
        assert instruction in text


def test_the_processor_at_hand_by_name() -> None:
    native = weft.compile(source(), options={"cpu": "native"})
    assert native.asm["llir"] == weft.compile(source()).asm["llir"]
    x = np.ones(64, np.float32)
    doubled[(1,)](x, 64, BLOCK=64, cpu="native")
    assert (x == 2).all()


def test_what_needs_more_than_this_machine_has_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    if not host_cpu().is_x86:
        pytest.skip("the processor at hand is of another family")
    compiled = weft.compile(source(), options={"cpu": "x86-64-v3"})
    monkeypatch.setattr(driver, "host_cpu", lambda: CPU("x86-64", host_cpu().triple))
    with pytest.raises(LaunchError) as info:
        compiled[(1,)](np.ones(64, np.float32), 64, 64)
    assert str(info.value) == (
        "`doubled` is compiled for a processor with avx, avx2, bmi2, f16c, fma, sse4.2, which this machine has not\n"
        "hint: leave out cpu and features: it is compiled for the processor at hand, or for cpu='native'"
    )


def test_all_features_that_code_depends_on_are_asked_for() -> None:
    known = {"cx16", *(name for names in FEATURES.values() for name in names)}
    root = Path(weft.__file__).parent
    used = {
        name for path in root.glob("backends/**/*.py") for name in re.findall(r'cpu\.has\("(.+?)"\)', path.read_text())
    }
    assert used and used <= known


def test_a_system_without_a_processor() -> None:
    with pytest.raises(LaunchError) as info:
        weft.compile(source(), options={"triple": "aarch64-unknown-linux-gnu"})
    assert str(info.value) == "triple is that of a processor: give cpu as well\nhint: cpu='x86-64-v3'"


@weft.jit
def product(a, b, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j)))


@pytest.mark.parametrize(
    ("elem", "result", "processor", "instruction"),
    [("i8", "i32", "apple-m1", "sdot"), ("fp32", "fp32", "neoverse-v1", "fmla")],
)
def test_products_by_the_instructions_of_aarch64(elem: str, result: str, processor: str, instruction: str) -> None:
    types = {"a": f"*{elem}", "b": f"*{elem}", "out": f"*{result}", "N": "constexpr"}
    text = weft.compile(ASTSource(product, types, {"N": 32}), target=f"cpu:{processor}").asm["asm"]
    assert re.search(rf"{instruction}(\.4s)?\s+v", text)
    assert not re.search(r"\bmul\s+v", text)


def test_products_of_integers_without_the_instruction() -> None:
    types = {"a": "*i8", "b": "*i8", "out": "*i32", "N": "constexpr"}
    for options in ({"cpu": "cortex-a72"}, {"cpu": "neoverse-v1", "features": "-dotprod"}):
        text = weft.compile(ASTSource(product, types, {"N": 32}), options=options).asm["asm"]
        assert "sdot" not in text and re.search(r"\bmla\s+v", text)


def test_a_mask_that_holds_for_a_vector_is_no_branch_for_each_lane() -> None:
    kernel = weft.compile(source(), target="cpu:neoverse-v1", options={"features": "-sve"})
    whole = [line for line in kernel.asm["asm"].splitlines() if re.search(r"\b(ldr|ldp|str|stp)\s+q", line)]
    assert len(whole) >= 6  # without masks, where the last index is inside, where all bits of a mask are
    assert re.search(r"\bcmp\s+w\d+, #15$", kernel.asm["asm"], re.MULTILINE)
