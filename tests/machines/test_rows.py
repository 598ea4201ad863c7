"""Each row of NVIDIA's machines: what compiles for it, ptxas takes; what is simulated for it is right."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft
from backends.nvidia.assembling import needs_ptxas
from gluon.sources import arguments_of, sources
from kernels import load_cases
from kernels.running import run_case
from runtime.pretended_gpu import H200, PretendedGPU, pretend
from weft.backends.nvidia.ptxas import assemble
from weft.base import Unsupported, WeftError
from weft.compiler import SIMULATED, TARGETS
from weft.machines import machine_of

from .table import MADE, PAGE, table

CASES = load_cases("weft")
GLUON = sources("weft")
COMPILED = [target for target in TARGETS if target != "cpu"]
GPUS = [target for target in COMPILED if machine_of(target).vendor == "nvidia"]
ALWAYS = ("matmul_f16", "cache_hints")


def share(names: list[str], target: str, of: int) -> list[str]:
    """One name of so many, others for each target."""
    return [name for name in names if zlib.crc32(f"{name} {target}".encode()) % of == 0]


def test_every_gpu_from_turing_on_has_a_row() -> None:
    assert GPUS == [f"cuda:{n}" for n in (75, 80, 86, 87, 89, 90, 100, 103, 120, 121)]
    assert list(SIMULATED) == [f"sim:{target}" for target in COMPILED]


@needs_ptxas
@pytest.mark.parametrize("target", [t for t in GPUS if t not in ("cuda:80", "cuda:90")])
def test_kernels_of_the_triton_language_compile(target: str) -> None:
    processor = f"sm_{machine_of(target).generation}"
    for name in {*ALWAYS, *share(list(CASES), target, 80)}:
        case = CASES[name]
        types, values, attributes = case.signature(case.make_inputs())
        ptx = weft.compile(weft.ASTSource(case.kernel, types, values, attributes), target, case.options).asm["ptx"]
        assert f".target {processor}\n" in ptx
        assert assemble(ptx, processor, options=("-O0",)).image, name


@pytest.mark.parametrize("target", GPUS)
def test_gluon_kernels_compile_where_their_instructions_are(target: str) -> None:
    """Those for a newer GPU are refused by what this one lacks; what 9.0 alone has is refused by its name."""
    refused = []
    for name in share(list(GLUON), target, 24):
        source = GLUON[name]
        signature, attributes = arguments_of(source)
        made = weft.ASTSource(source.kernel, signature, source.constexprs, attributes)
        try:
            assert weft.compile(made, target, source.options).asm["ptx"]
        except Unsupported as error:
            assert error.target == target
            refused.append((source.capability, str(error)))
    own = ("wgmma", "setmaxnreg", "tensormap.replace", "bytes for each lane")
    unexplained = [text for since, text in refused if since <= machine_of(target).generation]
    assert not [text for text in unexplained if not any(name in text for name in own)]


@pytest.mark.parametrize("target", ["sim:cuda:75", "sim:cuda:87", "sim:cuda:103", "sim:cuda:121"])
@pytest.mark.parametrize("name", ["matmul_f16", "softmax", "matmul_int8"])
@pytest.mark.thinned(3)
def test_simulated_kernels_agree_with_numpy(name: str, target: str) -> None:
    with weft.target(target):
        run_case(CASES[name])


@pytest.fixture
def gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[PretendedGPU]:
    major, minor = divmod(request.param, 10)
    capability = {"COMPUTE_CAPABILITY_MAJOR": major, "COMPUTE_CAPABILITY_MINOR": minor}
    yield from pretend(monkeypatch, attributes={**H200, **capability})


@weft.jit
def _fill(x, n, BLOCK: weft.language.constexpr):  # type: ignore[no-untyped-def]
    i = weft.language.arange(0, BLOCK)
    weft.language.store(x + i, i, mask=i < n)


@pytest.mark.parametrize(
    ("gpu", "target"),
    [(75, "cuda:75"), (87, "cuda:87"), (88, "cuda:87"), (110, "cuda:103"), (120, "cuda:120"), (130, "cuda:121")],
    indirect=["gpu"],
)
def test_a_gpu_launches_what_its_row_or_the_portable_one_below_gives(gpu: PretendedGPU, target: str) -> None:
    weft.JITFunction(_fill.fn)[(1,)](weft.cuda.to_device(np.zeros(64, np.int32)), 64, BLOCK=64)
    assert len(gpu.launched) == 1
    assert weft.compiler.devices.current_device().target == target


@pytest.mark.parametrize("gpu", [70], indirect=True)
def test_a_gpu_older_than_all_rows_is_told(gpu: PretendedGPU) -> None:
    with pytest.raises(WeftError, match="a GPU of capability 70 is older than all that are compiled for"):
        weft.JITFunction(_fill.fn)[(1,)](weft.cuda.to_device(np.zeros(64, np.int32)), 64, BLOCK=64)
    assert not gpu.launched


def test_the_documented_table_is_that_of_the_rows() -> None:
    found: Any = MADE.search(PAGE.read_text(encoding="utf-8"))
    assert found and found["text"] == table(), "to write it anew: python tests/machines/table.py --update"
