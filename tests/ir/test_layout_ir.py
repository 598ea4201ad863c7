"""The layout IR: what Triton writes is read, verified and written again, and Triton accepts it.

`tests/data/ttgir` holds the layout IR that Triton 3.6.0 made of kernels of tests/kernels and of Gluon kernels, for
cuda:80, cuda:90 and a few for AMD (see tools/make_ttgir.py).
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weft.ir.gpu
from weft.base import CompilationError
from weft.ir import OpaqueAttr, ParseError, f16, f32, i1, like, parse_module, print_module, type_text, verify
from weft.ir.gpu import encoding_of, laid_tensor, layout_of, memdesc, name_of
from weft.layouts import (
    AutoLayout,
    BlockedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    Layout,
    LayoutError,
    LinearLayout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
)

HERE = Path(__file__).resolve().parent.parent
FILES = sorted((HERE / "data" / "ttgir").glob("*.ttgir"))
UNRESOLVED = sorted((HERE / "data" / "ttgir" / "unresolved").glob("*.ttgir"))
IDS = [path.stem for path in FILES]
TRITON = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="the real Triton is not installed")


def test_there_are_enough_files() -> None:
    assert len(FILES) >= 60
    assert sum(path.stem.startswith("gluon") for path in FILES) >= 15


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_tritons_layout_ir_is_read_and_written(path: Path) -> None:
    module = parse_module(path.read_text(), path.name)
    verify(module, "layout")
    for locations in (False, True):
        text = print_module(module, locations)
        again = parse_module(text, path.name)
        verify(again, "layout")
        assert print_module(again, locations) == text
    assert not re.search(r'"(ttn?g|amdg)\.\w+"\(', text), "an operation has no text of its own"
    assert not any(isinstance(a, OpaqueAttr) for op in module.walk() for a in op.properties.values())


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_names_of_layouts_are_kept(path: Path) -> None:
    """The same layouts are defined at the top, whatever they are called there."""
    text = path.read_text()
    ours = print_module(parse_module(text, path.name))
    defined = [set(re.findall(r"^#(?!loc)\w+ = (.*)$", t, re.MULTILINE)) for t in (text, ours)]
    assert defined[0] == defined[1]


@pytest.mark.parametrize("path", UNRESOLVED, ids=[path.stem for path in UNRESOLVED])
def test_what_gluon_writes_first(path: Path) -> None:
    """Calls, layouts to be inferred, descriptors: what Triton's front end makes of Gluon kernels."""
    module = parse_module(path.read_text(), path.name)
    verify(module, "gluon")
    text = print_module(module)
    assert print_module(parse_module(text, path.name)) == text
    if "#gluon.auto_encoding" in text:
        with pytest.raises(CompilationError, match="is not known yet"):
            verify(module, "layout")


SAME = r"""
import json, re, sys
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend
context = ir.context()
ir.load_dialects(context)
make_backend(GPUTarget("cuda", 90, 32)).load_dialects(context)
make_backend(GPUTarget("hip", "gfx942", 64)).load_dialects(context)
failures = {}
for name, texts in json.load(open(sys.argv[1])).items():
    shown = []
    for text in texts:
        with open(sys.argv[2], "w") as file:
            file.write(text)
        try:
            module = ir.parse_mlir_module(sys.argv[2], context)
            shown.append(re.sub(r"%[\w$.-]+", "%", module.str_nodebug()).splitlines())
        except Exception as error:
            failures[name] = str(error)
            break
    else:
        wrong = [pair for pair in zip(*shown) if pair[0] != pair[1]]
        if wrong or len(shown[0]) != len(shown[1]):
            failures[name] = f"{len(shown[0])} and {len(shown[1])} lines, first difference {wrong[:1]}"
print("RESULT" + json.dumps(failures))
"""

COMPILE = """
import json, sys
from triton.backends.compiler import GPUTarget
from triton.compiler import compile
failures = {}
for name, text in json.load(open(sys.argv[1])).items():
    path = f"{sys.argv[2]}-{name}.ttgir"
    with open(path, "w") as file:
        file.write(text)
    try:
        made = compile(path, target=GPUTarget("cuda", 90 if "cuda:90" in text else 80, 32))
        assert ".visible .entry" in made.asm["ptx"]
    except Exception as error:
        failures[name] = f"{type(error).__name__}: {error}"
print("RESULT" + json.dumps(failures))
"""


def _in_triton(script: str, texts: object, folder: Path) -> None:
    """Run a script with the real Triton in a process of its own; it prints what failed."""
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "script.py").write_text(script)
    environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_INTERPRET": "0"}
    command = [sys.executable, str(folder / "script.py"), str(folder / "texts.json"), str(folder / "module")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    marked = [line for line in result.stdout.splitlines() if line.startswith("RESULT")]
    assert marked, f"Triton ended with status {result.returncode}:\n{result.stderr[-3000:]}"
    failures = json.loads(marked[0].removeprefix("RESULT"))
    assert not failures, "\n".join(f"{name}: {text[:800]}" for name, text in failures.items())


@TRITON
def test_triton_reads_our_text_as_its_own(tmp_path: Path) -> None:
    texts = {p.stem: (p.read_text(), print_module(parse_module(p.read_text(), p.name))) for p in FILES}
    _in_triton(SAME, texts, tmp_path)


@TRITON
def test_triton_compiles_our_text(tmp_path: Path) -> None:
    names = "vector_add_sm80 softmax_sm90 matmul_f16_sm80 descriptor_matmul_sm90 gluon_matmul_wgmma gluon_shared_views"
    texts = {}
    for name in [*names.split(), "gluon_producer_consumer", "gluon_tma_copy"]:
        path = HERE / "data" / "ttgir" / f"{name}.ttgir"
        texts[name] = print_module(parse_module(path.read_text(), path.name), locations=True)
    _in_triton(COMPILE, texts, tmp_path)


# -- types ---------------------------------------------------------------------------------------------------------

BLOCKED = BlockedLayout([1, 2], [4, 8], [2, 1], [1, 0])
MMA = NVMMADistributedLayout([2, 0], [2, 1], [16, 8])


def test_types_are_equal_where_their_layouts_are() -> None:
    bases = BLOCKED.to_linear([8, 16]).bases
    linear = DistributedLinearLayout(bases["register"], bases["lane"], bases["warp"], bases["block"], [8, 16])
    named, unnamed = laid_tensor((8, 16), f16, BLOCKED), laid_tensor((8, 16), f16, linear)
    assert named == unnamed and hash(named) == hash(unnamed)
    assert name_of(named) == BLOCKED and name_of(unnamed) == linear
    assert type_text(named) != type_text(unnamed)
    assert laid_tensor((8, 16), f16, MMA) != named
    assert laid_tensor((8, 16), f16, BLOCKED.to_linear([8, 16])) == named


def test_other_elements_keep_the_layout() -> None:
    tile = laid_tensor((8, 16), f16, BLOCKED)
    truth = like(tile, i1)
    assert layout_of(truth) == layout_of(tile)
    assert like(truth, f16) is tile
    assert encoding_of(like(f16, f32)) is None


def test_layouts_that_are_not_known_yet() -> None:
    tile = laid_tensor((8,), f16, AutoLayout())
    assert type_text(tile) == "tensor<8xf16, #gluon.auto_encoding>"
    assert tile != laid_tensor((8,), f16, BlockedLayout([1], [32], [4], [0]))
    with pytest.raises(ValueError, match="no layout"):
        layout_of(tile)


def test_gaps_count() -> None:
    plain = PaddedSharedLayout.with_identity_for([[64, 8]], [16, 32], [1, 0])
    wide = PaddedSharedLayout.with_identity_for([[64, 16]], [16, 32], [1, 0])
    assert plain.to_linear([16, 32]) == wide.to_linear([16, 32])
    assert memdesc((16, 32), f16, plain) != memdesc((16, 32), f16, wide)


def test_a_layout_for_another_shape() -> None:
    with pytest.raises(LayoutError):
        laid_tensor((8,), f16, BLOCKED)
    with pytest.raises(LayoutError, match="for one of shape"):
        laid_tensor((8, 8), f16, LinearLayout.identity_1d(8, "register", "dim0"))


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (
            BlockedLayout([1, 2], [4, 8], [2, 1], [1, 0], [[1, 0]]),
            "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0], "
            "CGALayout = [[1, 0]]}>",
        ),
        (
            DotOperandLayout(1, MMA, 2),
            "#ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
            "warpsPerCTA = [2, 1], instrShape = [16, 8]}>, kWidth = 2}>",
        ),
        (
            SliceLayout(0, BlockedLayout([1, 1, 2], [1, 4, 8], [1, 2, 1], [2, 1, 0])),
            "#ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 1, 2], threadsPerWarp = [1, 4, 8], "
            "warpsPerCTA = [1, 2, 1], order = [2, 1, 0]}>}>",
        ),
        (
            NVMMADistributedLayout([3, 0], [4, 1], [16, 16, 16], [[1, 0]]),
            "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], CGALayout = [[1, 0]], "
            "instrShape = [16, 16, 16]}>",
        ),
    ],
)
def test_text_of_tiles(layout: Layout, text: str) -> None:
    tile = laid_tensor((64, 64), f16, layout)
    assert type_text(tile) == f"tensor<64x64xf16, {text}>"
    read = parse_module(f'%0 = "ub.poison"() : () -> {type_text(tile)}').body.block.first_op
    assert read is not None and read.results[0].type == tile and name_of(read.results[0].type) == layout


SHARED: list[tuple[Layout, str]] = [
    (
        SwizzledSharedLayout(8, 2, 4, [1, 0]),
        "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>",
    ),
    (
        NVMMASharedLayout(128, 16, 2, True),
        "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>",
    ),
    (
        NVMMASharedLayout(64, 8, 2, False, True),
        "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8, fp4Padded = true}>",
    ),
    (
        PaddedSharedLayout.with_identity_for([[64, 8], [512, 16]], [64, 64], [0, 1]),
        "#ttg.padded_shared<[64:+8, 512:+16] {order = [0, 1], shape = [64, 64]}>",
    ),
    (
        PaddedSharedLayout([[2, 1]], [[0, 1], [1, 0], [0, 2], [2, 0]], [], [4, 4]),
        "#ttg.padded_shared<[2:+1] {offset = [[0, 1], [1, 0], [0, 2], [2, 0]], block = []}>",
    ),
    (
        NVMMASharedLayout(32, 16, 3),
        "#ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16, rank = 3}>",
    ),
    (
        SharedLinearLayout([[0, 1], [1, 1]], [], 64),
        "#ttg.shared_linear<{offset = [[0, 1], [1, 1]]}, alignment = 64>",
    ),
]


def _shape_for(layout: Layout) -> tuple[int, ...]:
    """A shape that the layout can have."""
    if isinstance(layout, PaddedSharedLayout):
        return tuple(layout.shape)
    return (2, 2) if isinstance(layout, SharedLinearLayout) else (64,) * layout.rank


@pytest.mark.parametrize(("layout", "text"), SHARED)
def test_text_of_memory(layout: Layout, text: str) -> None:
    shape = _shape_for(layout)
    kind = memdesc((3, *shape), f16, layout)
    dims = "x".join(map(str, shape))
    assert type_text(kind) == f"!ttg.memdesc<3x{dims}xf16, {text}, #ttg.shared_memory, mutable>"
    read = parse_module(f'%0 = "ub.poison"() : () -> {type_text(kind)}').body.block.first_op
    assert read is not None and read.results[0].type == kind
    assert type_text(read.results[0].type) == type_text(kind)


OTHER = [
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>",
    "#ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true, "
    "CGALayout = [[1, 0]], tilesPerWarp = [2, 1], elementBitWidth = 64}>",
    "#ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [4, 1], tilesPerWarp = [2, 1]}>",
    "#ttg.amd_wmma<{version = 3, isTranspose = false, warpsPerCTA = [4, 1], instrShape = [16, 16, 32]}>",
    "#gluon.auto_encoding",
    "#gluon.coalesced_encoding",
]


@pytest.mark.parametrize("text", OTHER)
def test_layouts_for_other_machines_keep_their_text(text: str) -> None:
    read = parse_module(f'%0 = "ub.poison"() : () -> tensor<64x64xf16, {text}>').body.block.first_op
    assert read is not None
    assert type_text(read.results[0].type) == f"tensor<64x64xf16, {text}>"


@TRITON
def test_triton_writes_layouts_so(tmp_path: Path) -> None:
    texts = {}
    for i, (layout, text) in enumerate(SHARED):
        shape = "x".join(map(str, _shape_for(layout)))
        body = f"%m = ttg.local_alloc : () -> !ttg.memdesc<{shape}xf16, {text}, #ttg.shared_memory, mutable>"
        module = f'module attributes {{"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32}} {{\n  {body}\n}}\n'
        again = print_module(parse_module(module))
        texts[str(i)] = (module, again)
    _in_triton(SAME, texts, tmp_path)


# -- errors --------------------------------------------------------------------------------------------------------

HEAD = """#a = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#two = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#other = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#t = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#wide = #ttg.linear<{register = [[0, 1, 0], [8, 0, 0], [16, 0, 0]], lane = [[0, 0, 1], [0, 2, 0], [0, 4, 0], [0, 8, 0],
        [1, 0, 0]], warp = [[2, 0, 0], [4, 0, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @k(%x: tensor<32x16xf32, #a>, %y: tensor<32x16xf32, #b>, %p: tensor<32x16x!tt.ptr<f32>, #a>, %n: i32,
             %m: !ttg.memdesc<2x32x16xf32, #s, #smem, mutable>, %c: !ttg.memdesc<32x16xf32, #s, #smem>, %k: i1,
             %z: tensor<32x16x2xf32,
             #wide>) {
"""
WRONG = [
    ("%0 = arith.mulf %x, %x : tensor<32x16xf32>", "used here as"),
    (
        '%0 = "arith.addf"(%x, %y) : (tensor<32x16xf32, #a>, tensor<32x16xf32, #b>) -> tensor<32x16xf32, #a>',
        "must lie in one layout",
    ),
    ('%0 = "arith.extf"(%x) : (tensor<32x16xf32, #a>) -> tensor<32x16xf64, #b>', "must lie in one layout"),
    ("%0 = arith.negf %0 : tensor<32x16xf32>", "a tile has a layout here"),
    ('"tt.store"(%p, %y) : (tensor<32x16x!tt.ptr<f32>, #a>, tensor<32x16xf32, #b>) -> ()', "one layout"),
    ("%0 = tt.splat %n : i32 -> tensor<32x16xi32, #two>", "2 warps, and here are 4"),
    ("%0 = tt.splat %n : i32 -> tensor<32x16xi32, #gluon.auto_encoding>", "is not known yet"),
    (
        "%0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<32x16xf32, #a> -> tensor<16x32xf32, #a>",
        "has another layout than the source",
    ),
    ("%0 = tt.reshape %x : tensor<32x16xf32, #a> -> tensor<16x32xf32, #a>", "has another layout than the source"),
    (
        "%i = tt.splat %n : i32 -> tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>\n"
        "%0 = tt.expand_dims %i {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>> -> "
        "tensor<32x1xi32, #a>",
        "ttg.convert_layout",
    ),
    (
        "%i = tt.splat %n : i32 -> tensor<32x1xi32, #b>\n"
        "%0 = tt.broadcast %i : tensor<32x1xi32, #b> -> tensor<32x16xi32, #a>",
        "the source lies wrongly",
    ),
    (
        "%0 = tt.join %x, %x : tensor<32x16xf32, #a> -> tensor<32x16x2xf32, #wide>",
        "join",
    ),
    (
        '%0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({\n^bb0(%u: f32, %v: f32):\n%w = arith.addf %u, %v : f32\n'
        "tt.reduce.return %w : f32\n}) : (tensor<32x16xf32, #a>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>",
        "has another layout than the source",
    ),
    (
        "%0 = tt.splat %n : i32 -> tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #other, kWidth = 4}>>\n"
        "%1 = tt.splat %n : i32 -> tensor<64x64xi8, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>",
        "differ in type",
    ),
    ("ttg.local_store %x, %c : tensor<32x16xf32, #a> -> !ttg.memdesc<32x16xf32, #s, #smem>", "is not mutable"),
    (
        "%0 = ttg.local_load %m : !ttg.memdesc<2x32x16xf32, #s, #smem, mutable> -> tensor<32x16xf32, #a>",
        "memory and tile differ",
    ),
    ("%0 = ttg.local_alloc : () -> !ttg.memdesc<32x16xf32, #s, #smem>", "must be mutable"),
    (
        "%0 = ttg.memdesc_index %m[%n] : !ttg.memdesc<2x32x16xf32, #s, #smem, mutable> -> "
        "!ttg.memdesc<32x16xf32, #t, #smem, mutable>",
        "has the layout of all of them",
    ),
    (
        "%0 = ttg.memdesc_subslice %c[8, 0] : !ttg.memdesc<32x16xf32, #s, #smem> -> "
        "!ttg.memdesc<16x16xf32, #s, #smem, 32x16>",
        "must be multiples",
    ),
    (
        "%0 = ttg.memdesc_subslice %c[32, 0] : !ttg.memdesc<32x16xf32, #s, #smem> -> "
        "!ttg.memdesc<16x16xf32, #s, #smem, 32x16>",
        "reaches outside",
    ),
    (
        "%0 = ttg.memdesc_trans %c {order = array<i32: 1, 0>} : !ttg.memdesc<32x16xf32, #s, #smem> -> "
        "!ttg.memdesc<16x32xf32, #s, #smem>",
        "has another layout than the source",
    ),
    (
        "%0 = ttg.local_alloc : () -> !ttg.memdesc<32x16xf32, #s, #smem, mutable>\n"
        "%1 = ttg.memdesc_reinterpret %0 : !ttg.memdesc<32x16xf32, #s, #smem, mutable> -> "
        "!ttg.memdesc<32x32xf32, #s, #smem, mutable>",
        "is in an allocation of 2048",
    ),
    ("ttng.init_barrier %m, 1 : !ttg.memdesc<2x32x16xf32, #s, #smem, mutable>", "an mbarrier is one i64"),
    (
        "%0 = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #line, #smem, mutable>\n"
        "ttng.init_barrier %0, 0 : !ttg.memdesc<1xi64, #line, #smem, mutable>",
        "must be 1 or more",
    ),
    ("%0 = ttg.async_wait {num = -1 : i32}", "cannot wait until -1"),
    (
        "%0 = ttg.convert_layout %x : tensor<32x16xf32, #a> -> tensor<32x16xf16, #b>",
        "changes the layout only",
    ),
    (
        "ttg.warp_specialize()\n default {\n ttg.warp_yield\n }\n partition0() num_warps(3) {\n"
        " ttg.warp_return\n } : () -> ()",
        "no power of two",
    ),
    ("ttg.warp_yield", "belongs at the end of"),
    (
        "%o, %q = tt.split %z : tensor<32x16x2xf32, #wide> -> tensor<32x16xf32, #a>",
        "no bit of the register number",
    ),
]


@pytest.mark.parametrize(("line", "wanted"), WRONG, ids=[f"{i}-{w[1][:24]}" for i, w in enumerate(WRONG)])
def test_what_is_wrong_is_said(line: str, wanted: str) -> None:
    with pytest.raises(CompilationError) as caught:
        verify(parse_module(HEAD + line + "\n    tt.return\n  }\n}\n", "k.ttgir"), "layout")
    assert wanted in str(caught.value)
    assert "k.ttgir:" in str(caught.value)


def test_a_conversion_that_helps_is_shown() -> None:
    line = '%0 = "arith.addf"(%x, %y) : (tensor<32x16xf32, #a>, tensor<32x16xf32, #b>) -> tensor<32x16xf32, #a>'
    with pytest.raises(CompilationError) as caught:
        verify(parse_module(HEAD + line + "\n    tt.return\n  }\n}\n", "k.ttgir"), "layout")
    message = str(caught.value)
    match = re.search(r"ttg\.convert_layout %y : (tensor<.*>) -> (tensor<.*>)", message)
    assert match, message
    fixed = f"%1 = {match.group()}\n%0 = arith.addf %x, %1 : {match[2]}"
    verify(parse_module(HEAD + fixed + "\n    tt.return\n  }\n}\n", "k.ttgir"), "layout")


def test_equal_layouts_of_other_names_agree() -> None:
    bases = BlockedLayout([1, 2], [4, 8], [4, 1], [1, 0]).to_linear([32, 16]).bases
    linear = DistributedLinearLayout(bases["register"], bases["lane"], bases["warp"], [], [32, 16])
    other = type_text(laid_tensor((32, 16), f32, linear))
    line = f'%1 = "ub.poison"() : () -> {other}\n'
    line += f'%0 = "arith.addf"(%x, %1) : (tensor<32x16xf32, #a>, {other}) -> {other}'
    verify(parse_module(HEAD + line + "\n    tt.return\n  }\n}\n", "k.ttgir"), "layout")


BAD_TEXT = [
    ("tensor<8xf32, #ttg.blocked<{sizePerThread = [1]}>>", "'threadsPerWarp' is missing"),
    ("tensor<8xf32, #ttg.swizzled_shared<{vec = 3, perPhase = 1, maxPhase = 1, order = [0]}>>", "vec"),
    ("tensor<8x8xf32, #ttg.amd_rotating_shared<{vec = 4}>>", "is not known here"),
    ("tensor<8xf32, #nowhere>", "'#nowhere' is not defined"),
    ("tensor<8xf32, #ttg.shared_memory>", "is not a layout"),
    ("tensor<8xf32, #gluon.auto_encoding, 3>", "one layout"),
    ("!ttg.memdesc<8xf32>", "a layout and a memory"),
    ("!ttg.memdesc<8xf32, #gluon.auto_encoding, #gluon.auto_encoding>", "is not a memory"),
    ("tensor<?xf32, #gluon.auto_encoding>", "static shape"),
    (
        "tensor<8x8xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>",
        "rank",
    ),
    ("tensor<8xf32, #ttg.blocked<{sizePerThread = 1, threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>", "list"),
]


@pytest.mark.parametrize(("text", "wanted"), BAD_TEXT, ids=[w for _, w in BAD_TEXT])
def test_types_that_are_none(text: str, wanted: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(f'%0 = "ub.poison"() : () -> {text}', "k.ttgir")
    assert wanted in str(caught.value)
    assert "k.ttgir:1:" in str(caught.value)


def test_tiles_with_layouts_are_no_tile_ir() -> None:
    module = parse_module(HEAD + "    tt.return\n  }\n}\n")
    with pytest.raises(CompilationError, match="has no encoding yet"):
        verify(module)


def test_compilations_for_the_cpu_do_not_load_the_layout_ir() -> None:
    script = "import sys, weft, weft.ir; print([m for m in sys.modules if m.startswith('weft.ir.gpu')])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
    assert weft.ir.gpu.__all__


def _damaged(text: str, rng: random.Random) -> str:
    """A text with a few of its words dropped, doubled, exchanged, or its numbers changed."""
    words = re.findall(r"\s+|[\w$.]+|.", text)
    for _ in range(rng.randint(1, 3)):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        change = rng.randrange(4)
        if change == 0:
            del words[at]
        elif change == 1:
            words[at], words[other] = words[other], words[at]
        elif change == 2:
            words[at] = words[other]
        else:
            numbers = [i for i, word in enumerate(words) if word.isdigit()]
            words[rng.choice(numbers)] = str(rng.choice([0, 1, 2, 3, 5, 8, 64, -1, 10**9, 10**30]))
    return "".join(words)


@pytest.mark.parametrize("seed", range(6))
def test_damaged_texts_are_errors_or_modules(seed: int) -> None:
    rng = random.Random(seed)
    texts = [text for text in (path.read_text() for path in FILES) if len(text) < 6000]
    for _ in range(60):
        text = _damaged(rng.choice(texts), rng)
        try:
            module = parse_module(text, "k.ttgir")
            verify(module, "layout")
        except CompilationError as error:
            assert not isinstance(error.__cause__, AttributeError | KeyError | IndexError | TypeError), text
        else:
            shown = print_module(module)
            assert print_module(parse_module(shown)) == shown


def test_types_as_text() -> None:
    """`str` of a type is what the IR says, layouts and all, whoever else was imported."""
    code = """
from weft.ir import parse_module
import weft.ir.gpu
text = '''
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%d: !tt.tensordesc<tensor<8x64xf16, #s>>) attributes {noinline = false} {
    %a = arith.constant dense<1.0> : tensor<64x64xf16, #b>
    %m = ttg.local_alloc %a : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #s, #ttg.shared_memory>
    %t = ttg.async_commit_group
    tt.return
  }
}'''
(kernel,) = parse_module(text, "k.ttgir").body.block.ops
for value in (*kernel.body.block.args, *(r for op in kernel.body.block.ops for r in op.results)):
    print(value.type)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    blocked = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>"
    shared = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"
    assert found.splitlines() == [
        f"!tt.tensordesc<tensor<8x64xf16, {shared}>>",
        f"tensor<64x64xf16, {blocked}>",
        f"!ttg.memdesc<64x64xf16, {shared}, #ttg.shared_memory>",
        "!ttg.async.token",
    ]
