"""Padded shared memory: results, the bytes it takes, bank conflicts; simulator, counter and PTX agree about it.

What Triton 3.6.0 does is compared where it is installed. It has no code for asynchronous copies into padded memory, and
takes wider vectors than a padding of less than 16 bytes leaves aligned; so those are not compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.gluon.language as gl
from weft.backends.nvidia.ptxas import assemble, find_tool
from weft.base import LayoutError
from weft.ir import parse_module, print_module
from weft.lower import lower
from weft.passes.gpu_pipelines import layout_pipeline
from weft.runtime.gluon import TensorDescriptor

from .sources import Source, load, traced

HERE = Path(__file__).resolve().parent
KERNELS = load(HERE / "padded.py", "weft")
NAMES = ["through", "turned", "buffers", "parts", "reshaped", "copied", "product"]
NUMBERS = {"buffers": 4, "copied": 1}
"""The value of `n` of those that have one."""

STORED = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
LOADED = {
    "rows": STORED,
    "columns": gl.BlockedLayout([8, 1], [8, 4], [1, 4], [0, 1]),
    "words": gl.BlockedLayout([1, 1], [32, 1], [1, 4], [1, 0]),
}
PAIRS = [
    [[64, 8]],
    [[64, 2]],
    [[16, 16]],
    [[4, 4]],
    [[128, 16], [64, 8]],
    [[1024, 1]],
    [[8192, 32]],
    [[64, 8], [4096, 64]],
]
ORDERS = [[1, 0], [0, 1]]


def padded(pairs: Any, order: Any = (1, 0)) -> gl.PaddedSharedLayout:
    return gl.PaddedSharedLayout.with_identity_for(pairs, [64, 64], list(order))


def expected(name: str, x: Any) -> Any:
    if name == "turned":
        return x.T
    if name == "buffers":
        return x.reshape(4, 64, 64)[::-1].reshape(256, 64)
    if name == "parts":
        x = x.copy()
        x[32:, 16:32] *= 2
        return x
    if name == "reshaped":
        return x.reshape(64, 64)
    if name == "product":
        x = x.astype(np.float32)
        return x @ x.T + x @ x
    return x


def run(name: str, memory: Any, loaded: Any, dtype: Any = np.float16, target: str = "sim:cuda:80") -> Any:
    rows = 256 if name == "buffers" else 64
    x = np.random.default_rng(0).integers(-4, 5, (rows, 64)).astype(dtype)
    y = np.zeros((rows, 64), np.float32 if name == "product" else dtype)
    arguments = [NUMBERS[name]] if name in NUMBERS else []
    report = getattr(KERNELS, name)[(1,)](x, y, *arguments, memory=memory, stored=STORED, loaded=loaded, target=target)
    np.testing.assert_array_equal(y, expected(name, x))
    return report


def source_of(name: str, memory: Any, loaded: Any) -> Source:
    types = {"x": "*fp16", "y": "*fp32" if name == "product" else "*fp16", **({"n": "i32"} if name in NUMBERS else {})}
    return Source(getattr(KERNELS, name), types, {"memory": memory, "stored": STORED, "loaded": loaded})


def compiled(name: str, memory: Any, loaded: Any, target: str) -> Any:
    source = source_of(name, memory, loaded)
    signature = {**source.signature, **dict.fromkeys(source.constexprs, "constexpr")}
    attributes = {(i,): [["tt.divisibility", 16]] for i in (0, 1)}
    return weft.compile(weft.ASTSource(source.kernel, signature, source.constexprs, attributes), target=target)


CASES = [(name, pairs) for name in NAMES for pairs in PAIRS if (name, pairs) != ("copied", [[1024, 1]])]


@pytest.mark.parametrize(("name", "pairs"), CASES, ids=str)
@pytest.mark.thinned(3)
def test_results_and_counts(name: str, pairs: Any) -> None:
    loaded = LOADED["rows" if name == "product" else "columns"]
    report = run(name, padded(pairs), loaded)
    kernel = compiled(name, padded(pairs), loaded, "sim:cuda:80")
    found = kernel.count((1,), **({"n": NUMBERS[name]} if name in NUMBERS else {}))
    assert found.exact
    assert found.kinds == report.kinds
    assert found.lines == report.lines


@pytest.mark.parametrize("order", [[1, 0], [0, 1]], ids=str)
@pytest.mark.parametrize("loaded", LOADED)
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64])
@pytest.mark.thinned(3)
def test_elements_and_layouts(dtype: Any, loaded: str, order: Any) -> None:
    memory = padded([[64, 8]], order)
    for name in ("through", "turned", "parts"):
        run(name, memory, LOADED[loaded], dtype)


def test_bases_of_any_kind() -> None:
    plain = padded([[64, 8]])
    swapped = [*plain.offset_bases[3:], *plain.offset_bases[:3]]
    memory = gl.PaddedSharedLayout([[32, 4]], swapped, [], [64, 64])
    for name in ("through", "turned", "parts", "reshaped", "product"):
        run(name, memory, LOADED["rows"])


def test_padding_takes_conflicts_away() -> None:
    plain = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    with_them = run("through", plain, LOADED["words"], np.float32)
    without = run("through", padded([[64, 1]]), LOADED["words"], np.float32)
    loads = [r["shared_load_wavefronts"] for r in (with_them, without)]
    assert loads == [32 * 32 * 4, 32 * 4]


def test_rows_of_matrices_are_read_at_once() -> None:
    """ldmatrix where its rows of 16 bytes are whole and aligned, and without conflicts; else loads of single words."""
    kinds = run("product", padded([[64, 8]]), LOADED["rows"]).kinds
    assert sum(n for kind, n in kinds.items() if "ldmatrix" in kind) > 0
    assert not any(kind.startswith("load.shared.16") for kind in kinds)
    plain = run("product", gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), LOADED["rows"])
    assert run("product", padded([[64, 8]]), LOADED["rows"])["shared_load_wavefronts"] < plain["shared_load_wavefronts"]
    assert not any("ldmatrix" in kind for kind in run("product", padded([[64, 2]]), LOADED["rows"]).kinds)


def test_vectors_are_not_cut() -> None:
    widths = {}
    for pairs in ([[64, 8]], [[64, 4]], [[64, 2]], [[4, 8]], [[64, 1]]):
        kinds = run("through", padded(pairs), LOADED["rows"]).kinds
        widths[str(pairs)] = sorted(kind for kind in kinds if kind.startswith("store.shared"))
    assert widths == {
        "[[64, 8]]": ["store.shared.128"],
        "[[64, 4]]": ["store.shared.64"],
        "[[64, 2]]": ["store.shared.32"],
        "[[4, 8]]": ["store.shared.64"],
        "[[64, 1]]": ["store.shared.16"],
    }


def test_buffers_in_a_debugger() -> None:
    x = np.arange(4096, dtype=np.float16).reshape(64, 64)
    y = np.zeros_like(x)
    with weft.sim.debug("gl.store(y") as stops:
        KERNELS.through[(1,)](x, y, padded([[16, 2]]), STORED, STORED, target="sim:cuda:80")
    np.testing.assert_array_equal(stops[0]["buffer"], x)


@pytest.mark.parametrize(
    "memory", [padded([[64, 8]]), gl.SwizzledSharedLayout(8, 1, 8, [1, 0]), gl.NVMMASharedLayout(128, 16)], ids=repr
)
def test_some_of_several_buffers(memory: Any) -> None:
    x = np.arange(4 * 4096).reshape(4, 64, 64).astype(np.float16)
    y = np.zeros((96, 64), np.float16)
    KERNELS.some_buffers[(1,)](x, y, memory, STORED, STORED, target="sim:cuda:90")
    np.testing.assert_array_equal(y, np.concatenate([x[3], x[2, 32:]]))


def test_gaps_between_buffers() -> None:
    x = np.zeros((4, 64, 64), np.float16)
    with pytest.raises(weft.Unsupported, match="some of several padded buffers"):
        KERNELS.some_buffers[(1,)](x, x, padded([[8192, 8]]), STORED, STORED, target="sim:cuda:90")


def test_copies_that_are_cut() -> None:
    with pytest.raises(weft.Unsupported, match="an asynchronous copy of 2 bytes") as caught:
        run("copied", padded([[1024, 1]]), LOADED["rows"])
    assert "intervals and padding" in str(caught.value)


def test_wgmma_wants_no_gaps() -> None:
    x, y = np.zeros((64, 64), np.float16), np.zeros((64, 64), np.float16)
    with pytest.raises(LayoutError, match="wgmma cannot read its left operand") as caught:
        KERNELS.groups[(1,)](x, y, padded([[64, 8]]), STORED, target="sim:cuda:90")
    assert "acc = warpgroup_mma(buffer" in str(caught.value)


def test_bulk_copies_want_no_gaps() -> None:
    """Gluon finds it; layout IR that says so is refused by the lowering."""
    swizzled = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    desc = TensorDescriptor.from_tensor(np.zeros((64, 64), np.float16), [64, 64], swizzled)
    with pytest.raises(LayoutError, match="the blocks of the descriptor lie in NVMMASharedLayout"):
        KERNELS.bulk[(1,)](desc, np.zeros((64, 64), np.float16), padded([[64, 8]]), STORED, target="sim:cuda:90")
    source = Source(
        KERNELS.bulk,
        {"desc": "tensordesc<fp16[64, 64]," + repr(swizzled) + ">", "y": "*fp16"},
        {"memory": swizzled, "layout": STORED},
        90,
    )
    memory = "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>"
    text = print_module(traced(source)).replace("memdesc<64x64xf16, #shared", f"memdesc<64x64xf16, {memory}")
    assert memory in text
    with pytest.raises(LayoutError, match=r"^bulk:\d+:\d+: error: a bulk copy cannot fill or read padded memory"):
        lower(layout_pipeline(parse_module(text, "bulk")))


@pytest.mark.skipif(find_tool() is None, reason="there is no ptxas on this machine")
@pytest.mark.parametrize("name", NAMES)
def test_machine_code(name: str) -> None:
    kernel = compiled(name, padded([[64, 8], [1024, 16]]), LOADED["rows"], "cuda:80")
    assert assemble(kernel.asm["ptx"], "sm_80").spilled_bytes == 0
    pairs = 4 * 4096 if name == "buffers" else 2 * 4096 if name == "copied" else 4096
    assert kernel.metadata.shared >= 2 * (pairs + (pairs // 64 - 1) * 8 + (pairs // 1024 - 1) * 16)


@pytest.mark.parametrize(
    ("name", "pairs"),
    [c for c in CASES if c[0] not in ("copied", "product")],
    ids=str,
)
@pytest.mark.thinned(3)
def test_bytes_are_those_of_triton(name: str, pairs: Any, tmp_path: Path) -> None:
    triton = pytest.importorskip("triton", minversion="3.6", reason="compares with Triton")
    if not triton.__version__.startswith("3.6."):
        pytest.skip("the comparison is with Triton 3.6")
    from .triton_gluon import assembly_of

    loaded = LOADED["columns"]
    text = print_module(traced(source_of(name, padded(pairs), loaded)))
    _, theirs = assembly_of(text, 80, {}, tmp_path / "kernel.ttgir")
    assert compiled(name, padded(pairs), loaded, "cuda:80").metadata.shared == theirs["shared"]
