"""What remarks tell of the kernels of the suite is what their lane programs do (truth.py)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import weft
from gluon.sources import arguments_of, sources
from kernels import load_cases
from weft.base.remarks import RemarkCollector
from weft.compiler import gpu
from weft.compiler.options import given_for_gpu, make_options
from weft.compiler.target import as_target
from weft.lower import lower
from weft.passes import cpu_pipeline, tile_pipeline
from weft.remarks import AccessWidth, Remarks

from .truth import untold, untold_on_a_cpu, untrue

CASES, GLUON = load_cases("weft"), sources("weft")
NAMES = sorted([*CASES, *(f"gluon/{name}" for name in GLUON)])
TARGETS = ("cuda:75", "cuda:80", "cuda:90")
SAMPLE = [name for name in NAMES if zlib.crc32(name.encode()) % 8 == 0]


def source_of(name: str) -> tuple[Any, dict[str, Any]]:
    """A kernel of the suite, and its options."""
    if name in CASES:
        case = CASES[name]
        return weft.ASTSource(case.kernel, *case.signature(case.make_inputs())), case.options
    made = GLUON[name.removeprefix("gluon/")]
    signature, attributes = arguments_of(made)
    return weft.ASTSource(made.kernel, signature, made.constexprs, attributes), made.options


def program(name: str, target: str) -> Any:
    """The lane program of a kernel of the suite and the layout IR that it is made of; None where it is not for that
    target."""
    if name not in CASES and int(target.partition(":")[2]) < GLUON[name.removeprefix("gluon/")].capability:
        return None
    source, options = source_of(name)
    chosen, remarks = as_target(target), RemarkCollector()
    given = given_for_gpu(options, chosen.machine)
    try:
        module = gpu.tile_ir(source, chosen, given, remarks)
        module = gpu.laid_out(module, chosen.machine, make_options(given).language, remarks)
        return lower(module, chosen.machine, remarks, keeps_layouts=name not in CASES), module
    except weft.WeftError:  # which other tests are about
        return None


def lies(names: list[str], target: str) -> Iterator[str]:
    for name in names:
        made = program(name, target)
        if made is not None:
            remarks = made[0].remarks.collected()
            assert Remarks.from_json(remarks.to_json()) == remarks
            yield from (f"{name}: {text}" for text in untrue(made[0], remarks))
            yield from (f"{name}: {text}" for text in untold(*made, remarks, of_author=name not in CASES))


def lies_on_a_cpu(names: list[str]) -> Iterator[str]:
    for name in names:
        source, options = source_of(name)
        kernel = weft.compile(source, "cpu", options)
        module, _ = cpu_pipeline(tile_pipeline(source.make_ir(make_options({}).language, as_target("cpu"))))
        yield from (f"{name}: {text}" for text in untold_on_a_cpu(kernel, module, kernel.remarks))


@pytest.mark.parametrize("number, name", list(enumerate(SAMPLE)))
@pytest.mark.thinned(2)
def test_what_is_told_is_so(number: int, name: str) -> None:
    assert not list(lies([name], TARGETS[number % len(TARGETS)]))


@pytest.mark.parametrize("name", [name for name in SAMPLE if name in CASES])
def test_all_is_told_on_a_cpu(name: str) -> None:
    assert not list(lies_on_a_cpu([name]))


@pytest.mark.slow
@pytest.mark.parametrize("target", (*TARGETS, "cpu"))
def test_what_is_told_of_all_is_so(target: str) -> None:
    assert not list(lies(NAMES, target) if target != "cpu" else lies_on_a_cpu(sorted(CASES)))


def test_what_is_not_so_is_seen() -> None:
    made, _ = program("softmax", "cuda:80")
    remarks = made.remarks.collected()
    assert not list(untrue(made, remarks))
    other = Remarks(replace(r, bytes=r.bytes * 2) if isinstance(r, AccessWidth) else r for r in remarks)
    fewer = Remarks(r for r in remarks if r.kind not in ("barrier", "shared buffer"))
    assert [text for false in (other, fewer) for text in untrue(made, false)]


def without(remarks: Remarks, kind: str) -> Remarks:
    return Remarks(r for r in remarks if r.kind != kind)


@pytest.mark.parametrize(
    "name, kinds",
    [
        ("layer_norm_forward", "reduction"),
        ("running_sums", "scan, layout"),
        ("gathers", "gather"),
        ("transpose_copy", "conversion, few blocks, access width, layout"),
        ("matmul_bf16_to_f32", "product, fence"),
        ("gluon/tma_memcpy", "bulk copy, fence"),
        ("gluon/through_shared", "shared access"),
    ],
)
def test_what_is_not_told_is_seen(name: str, kinds: str) -> None:
    """Of each kind whose loss the other remarks at its place do not hide."""
    made, module = program(name, "cuda:90")
    remarks = made.remarks.collected()
    for kind in kinds.split(", "):
        less, of_author = without(remarks, kind), name not in CASES
        assert [*untrue(made, less), *untold(made, module, less, of_author=of_author)], kind


def test_what_is_not_told_on_a_cpu_is_seen() -> None:
    source, options = source_of("matmul_f32")
    kernel = weft.compile(source, "cpu", options)
    module, _ = cpu_pipeline(tile_pipeline(source.make_ir(make_options({}).language, as_target("cpu"))))
    for kind in ("register block", "scratch buffer", "prefetched"):
        assert list(untold_on_a_cpu(kernel, module, without(kernel.remarks, kind)))
