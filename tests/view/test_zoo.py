"""The layouts of the page against those of Python, in a real Chromium: every constructor over many parameters.

Bases are compared exactly where Python makes a layout; where it does not, the page says the same words, puts carets
under the same part of the expression.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from weft.ir.gpu.names import EXAMPLES, layout_text
from weft.layouts import BlockedLayout, LayoutError, SharedLinearLayout, TensorMemoryLayout
from weft.view import PageLayout, as_linear, parse_layout, render_page
from weft.view.expressions import CALLABLES, METHODS

SHAPE = (32, 32)
A = "BlockedLayout([1,4],[4,8],[4,1],[1,0])"
FEW, MANY = 40, 160
"""Expressions of each constructor."""

Rng = random.Random


@pytest.fixture(scope="module")
def page(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("page") / "page.html"
    a = PageLayout(A, BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]).to_linear(SHAPE))
    path.write_text(render_page(a, SHAPE), encoding="utf-8")
    chromium.get(path.as_uri())
    return chromium


def power(rng: Rng, high: int, low: int = 0) -> int:
    return 1 << rng.randint(low, high)


def mostly(rng: Rng, right: Any, *wrong: Any) -> Any:
    """A legal value; now and then another."""
    return rng.choice(wrong) if wrong and rng.random() < 0.06 else right


def split(rng: Rng, total: int, rank: int) -> list[int]:
    """So many lanes or warps over the dimensions."""
    sizes = [1] * rank
    for _ in range(total.bit_length() - 1):
        sizes[rng.randrange(rank)] *= 2
    return sizes


def cga(rng: Rng, rank: int) -> list[list[int]]:
    """The cluster part: splits and copies; now and then one that leaves parts without a block."""
    bits, found = [0] * rank, []
    for _ in range(rng.choice([0, 0, 0, 1, 2, 3])):
        dim = rng.randrange(rank)
        copy = rng.random() < 0.3
        found.append([0 if copy or d != dim else 1 << bits[dim] for d in range(rank)])
        bits[dim] += not copy
    return mostly(rng, found, [[2] * rank], [[1]], 5, [[0, "x"]])


def keyword(rng: Rng, name: str, value: Any) -> str:
    """An argument at the end that may be left out."""
    return f", {name}={value!r}" if rng.random() < 0.7 else ""


def blocked(rng: Rng, rank: int | None = None) -> str:
    rank = rank or rng.choice([1, 2, 2, 2, 3])
    order = rng.sample(range(rank), rank)
    sizes = mostly(rng, [power(rng, 3) for _ in range(rank)], [3] * rank, [], 4, [1] * (rank + 1), [0] * rank)
    lanes = mostly(rng, split(rng, 32, rank), [32], None)
    warps = mostly(rng, split(rng, power(rng, 3), rank), [-4, 1])
    return (
        f"BlockedLayout({sizes}, {lanes}, {warps}, {mostly(rng, order, [0] * rank, [5])}"
        f"{keyword(rng, 'cga_layout', cga(rng, rank))})"
    )


def nvmma(rng: Rng) -> str:
    version = mostly(rng, rng.choice([[2, 0], [3, 0]]), [5, 0], [2], 3)
    rank = 2 if version == [3, 0] else rng.choice([2, 2, 3])
    shape = [16, power(rng, 8, 3), 16] if version == [3, 0] else [1] * (rank - 2) + [16, 8]
    warps = mostly(rng, split(rng, power(rng, 3), rank), [4], [1, 1, 1, 1])
    shape = mostly(rng, shape, [16, 4], [16], [1, 3])
    return f"NVMMADistributedLayout({version}, {warps}, {shape}{keyword(rng, 'cga_layout', cga(rng, rank))})"


def mfma(rng: Rng) -> str:
    rank = rng.choice([2, 2, 3])
    shape = [*rng.choice([(32, 32), (16, 16), (64, 4), (4, 64)]), power(rng, 6, 2)]
    flat = shape[:2] == [64, 4] or rng.random() < 0.5
    return (
        f"AMDMFMALayout({mostly(rng, rng.randint(1, 4), 0, 5, True)}, {mostly(rng, shape, [16, 16], [8, 8, 8])}, "
        f"{mostly(rng, flat, 1, not flat)}, {split(rng, power(rng, 3), rank)}"
        f"{keyword(rng, 'element_bitwidth', mostly(rng, rng.choice([32, 64]), 16))}"
        f"{keyword(rng, 'tiles_per_warp', mostly(rng, [power(rng, 1) for _ in range(rank)], [1], 2))}"
        f"{keyword(rng, 'cga_layout', cga(rng, rank))})"
    )


def wmma(rng: Rng, version: int | None = None) -> str:
    rank = 2 if version else rng.choice([2, 2, 3])
    version = version or rng.randint(1, 3)
    depth = rng.choice({1: [16], 2: [16, 32], 3: [4, 32, 64, 128]}[version])
    shape = f", instr_shape={mostly(rng, [16, 16, depth], [16, 16, 8], [16, 16])}"
    return (
        f"AMDWMMALayout({mostly(rng, version, 4)}, {rng.random() < 0.5}, "
        f"{mostly(rng, split(rng, power(rng, 3), rank), [1])}{shape if version == 3 or rng.random() < 0.6 else ''}"
        f"{keyword(rng, 'tiles_per_warp', [power(rng, 1) for _ in range(rank)])}"
        f"{keyword(rng, 'cga_layout', cga(rng, rank))})"
    )


def dpas(rng: Rng) -> str:
    rank = rng.choice([2, 2, 3])
    wide = rng.choice([8, 16])
    threads = mostly(rng, rng.choice([16, 32]), 4, 24)
    return (
        f"IntelDPASLayout({mostly(rng, power(rng, 3), 16)}, {mostly(rng, 8, 4)}, {mostly(rng, wide, 12)}, "
        f"{mostly(rng, power(rng, 3), 3)}, {split(rng, power(rng, 3), rank)}, "
        f"{mostly(rng, [power(rng, 1) for _ in range(rank)], [1])}, threads_per_warp={threads})"
    )


def k_width(rng: Rng, parent: str) -> Any:
    if parent.startswith("Blocked"):
        return mostly(rng, 0, 2)
    return mostly(rng, power(rng, 4), 0, 3, "2")


def dot(rng: Rng) -> str:
    parent = rng.choice([blocked, nvmma, mfma, wmma, dpas])(rng)
    index = mostly(rng, rng.randint(0, 1), 2)
    return f"DotOperandLayout({index}, {mostly(rng, parent, 3, swizzled(rng))}, k_width={k_width(rng, parent)!r})"


def sliced(rng: Rng) -> str:
    parent = rng.choice([blocked, nvmma, mfma, wmma, dpas, dot])(rng)
    return f"SliceLayout({mostly(rng, rng.randint(0, 1), 3)}, {mostly(rng, parent, 'None', '[1]')})"


def bases(rng: Rng, sizes: list[int], simple: bool) -> list[list[int]]:
    """Bases of a bijection onto a tile, those of a distributed layout if `simple`; shuffled."""
    found = [[1 << i if e == d else 0 for e in range(len(sizes))] for d, s in enumerate(sizes) for i in range(s)]
    rng.shuffle(found)
    if not simple:
        for i in range(1, len(found)):
            if rng.random() < 0.3:
                found[i] = [a ^ b for a, b in zip(found[i], found[rng.randrange(i)], strict=True)]
    return found


def distributed_linear(rng: Rng) -> str:
    logs = [rng.randint(1, 4) for _ in range(rng.choice([1, 2, 2, 3]))]
    all_bases = bases(rng, logs, True)
    all_bases.insert(rng.randrange(len(all_bases)), [0] * len(logs))
    cuts = sorted(rng.randrange(len(all_bases) + 1) for _ in range(3))
    parts = [all_bases[i:j] for i, j in zip([0, *cuts], [*cuts, len(all_bases)], strict=True)]
    parts = [mostly(rng, p, p[1:], [[1] * len(logs)], 7) for p in parts]
    return f"DistributedLinearLayout({', '.join(map(repr, parts))}, {[1 << x for x in logs]})"


def swizzled(rng: Rng) -> str:
    rank = rng.choice([1, 2, 2, 2, 3])
    order = mostly(rng, rng.sample(range(rank), rank), [1], "x")
    sizes = ", ".join(str(mostly(rng, power(rng, 4), 3, 0)) for _ in range(3))
    return f"SwizzledSharedLayout({sizes}, {order!r}{keyword(rng, 'cga_layout', cga(rng, rank))})"


def nvmma_shared(rng: Rng) -> str:
    rank = mostly(rng, rng.choice([2, 2, 3]), 1, 6)
    more = [f"transposed={rng.random() < 0.5}", f"fp4_padded={mostly(rng, rng.random() < 0.3, 1)}"]
    clusters = keyword(rng, "cga_layout", cga(rng, rank))
    return (
        f"NVMMASharedLayout({mostly(rng, rng.choice([0, 32, 64, 128]), 16)}, "
        f"{mostly(rng, rng.choice([8, 16, 32, 64]), 4)}, {rank}, {rng.choice(more)}{clusters})"
    )


def nvmma_default(rng: Rng) -> str:
    shape = [power(rng, 7) for _ in range(rng.choice([1, 2, 2, 3]))]
    bits = mostly(rng, rng.choice([8, 16, 32, 64]), 4)
    return f"NVMMASharedLayout.get_default_for({shape}, {bits}, transposed={rng.random() < 0.5})"


def shared_linear(rng: Rng) -> str:
    found = bases(rng, [rng.randint(1, 4) for _ in range(rng.choice([1, 2, 2, 3]))], False)
    cut = rng.choice([len(found), len(found), len(found) - 1])
    return f"SharedLinearLayout({mostly(rng, found[:cut], [], [[]], found[1:])}, {found[cut:]}, {mostly(rng, 16, 3)})"


def pads(rng: Rng) -> list[list[int]]:
    found = [[power(rng, 8, 3), power(rng, 4)] for _ in range(rng.choice([1, 1, 2]))]
    return mostly(rng, found, [], [[64, 4], [64, 8]], [[3, 4]], [[64]])


def padded(rng: Rng) -> str:
    logs = [rng.randint(1, 5) for _ in range(rng.choice([1, 2, 2, 3]))]
    found = bases(rng, logs, False)
    cut = rng.choice([len(found), len(found), len(found) - 1])
    shape = [1 << x for x in logs]
    return f"PaddedSharedLayout({pads(rng)}, {mostly(rng, found[:cut], found[1:])}, {found[cut:]}, {shape})"


def padded_identity(rng: Rng) -> str:
    rank = rng.choice([1, 2, 2, 3])
    order = mostly(rng, rng.sample(range(rank), rank), [4])
    return f"PaddedSharedLayout.with_identity_for({pads(rng)}, {[power(rng, 5) for _ in range(rank)]}, {order})"


def tensor_memory(rng: Rng) -> str:
    block = mostly(rng, [rng.choice([64, 128]), power(rng, 8)], [32, 8], [128, 1024], [64])
    cta = [rng.choice([1, 1, 2]), rng.choice([1, 1, 2])]
    return (
        f"TensorMemoryLayout({block}, {mostly(rng, power(rng, 2), 8)}"
        f"{keyword(rng, 'cta_split_num', mostly(rng, cta, [3, 1], 2))}{keyword(rng, 'two_ctas', rng.random() < 0.4)})"
    )


def tensor_scales(rng: Rng) -> str:
    cta = [rng.choice([1, 1, 2]), rng.choice([1, 1, 2])]
    return f"TensorMemoryScalesLayout({rng.choice(['', repr(mostly(rng, cta, [3, 3])), 'None'])})"


def tmem_registers(rng: Rng) -> str:
    layout = tensor_memory(rng) if rng.random() < 0.8 else tensor_scales(rng)
    shape = [power(rng, 8, 6), power(rng, 7, 1)]
    variant = mostly(rng, rng.choice(["32x32b", "16x64b", "16x128b", "16x256b", "32x32b_splitn"]), "8x8")
    return (
        f"get_tmem_reg_layout({mostly(rng, rng.choice([8, 16, 32, 32]), 64, 3)}, {shape}, {layout}, "
        f"{mostly(rng, rng.choice([4, 4, 8]), 2, 6)}, instr_variant={variant!r})"
    )


def mfma_scales(rng: Rng) -> str:
    parent = f"AMDMFMALayout(4, {rng.choice([[32, 32, 64], [16, 16, 128], [64, 4, 4]])}, True, {split(rng, 4, 2)})"
    return f"mfma_scale_layout(DotOperandLayout({rng.randint(0, 1)}, {parent}, 16), {[power(rng, 7), power(rng, 5)]})"


def wmma_scales(rng: Rng) -> str:
    return f"wmma_scale_layout(DotOperandLayout({rng.randint(0, 1)}, {wmma(rng, 3)}, 16), {[power(rng, 7), 4]})"


def linear(rng: Rng) -> str:
    """A LinearLayout by one of its constructors."""
    names = "'lane'", "'dim0'"
    made = rng.choice(
        [
            f"LinearLayout.identity_1d({mostly(rng, power(rng, 5), 3, 0)}, {names[0]}, {names[1]})",
            f"LinearLayout.strided_1d({power(rng, 5)}, {mostly(rng, power(rng, 3), 6)}, {names[0]}, {names[1]})",
            f"LinearLayout.zeros_1d({power(rng, 5)}, {names[0]}, {names[1]}, {power(rng, 2)})",
            explicit(rng),
        ]
    )
    return str(made)


def explicit(rng: Rng) -> str:
    logs = [rng.randint(1, 3), rng.randint(1, 3)]
    found = bases(rng, logs, False)
    cut = rng.randrange(len(found) + 1)
    found[0] = mostly(rng, found[0], [0, 0], [64, 0], [1], [-1, 0])
    outs: Any = {"dim0": 1 << logs[0], "dim1": 1 << logs[1]}
    outs = mostly(rng, outs, ["dim0", "dim1"], {"dim0": 3, "dim1": 2}, {"dim0": 64, "dim1": 64})
    flag = rng.choice(["", ", require_surjective=False"])
    return f"LinearLayout({{'register': {found[:cut]}, 'lane': {found[cut:]}}}, {outs}{flag})"


def algebra(rng: Rng) -> str:
    """An operation on layouts with the outputs dim0 and dim1."""
    x, y = (rng.choice([explicit, explicit, lambda _: "A"])(rng) for _ in range(2))
    call = rng.choice(
        [
            f"compose({y}.invert())",
            f"compose(LinearLayout.identity_1d({power(rng, 6)}, 'dim0', 'x') * "
            f"LinearLayout.identity_1d({power(rng, 6)}, 'dim1', 'y'))",
            f"invert_and_compose({y})",
            f"invert_and_compose({y} * LinearLayout.zeros_1d(2, 'lane', 'dim0'), prefer=['warp', 'lane'])",
            "invert()",
            "pseudoinvert()",
            "flatten_ins()",
            "flatten_outs().invert()",
            f"divide_left(LinearLayout.identity_1d({power(rng, 2)}, 'register', 'dim{rng.randint(0, 1)}'))",
            f"divide_right(LinearLayout.identity_1d({power(rng, 2)}, 'lane', 'dim{rng.randint(0, 1)}'))",
            f"sublayout(['{rng.choice(['lane', 'register', 'x'])}'], ['dim1'])",
            f"quotient({mostly(rng, ['lane'], 3, ['register'])})",
            f"transpose_outs({mostly(rng, ['dim1', 'dim0'], ['dim0'], [1, 2])})",
            f"transpose_ins({mostly(rng, ['lane', 'register'], ['lane'])})",
            f"reshape_outs({{'a': {power(rng, 6)}, 'b': {power(rng, 5)}}})",
            f"reshape_ins({{'a': {power(rng, 6)}}})",
            f"resize_in('{rng.choice(['lane', 'register', 'q'])}', {mostly(rng, power(rng, 4), 5, 'None')})",
            f"resize_out('dim0', {mostly(rng, power(rng, 5), -2)})",
            f"rename_ins({mostly(rng, {'lane': 'thread'}, {'lane': 3}, ['lane'])})",
            "rename_outs({'dim0': 'row'})",
            f"remove_zero_bases({mostly(rng, 'lane', 'p')!r})",
            f"unsqueeze_in({rng.choice(['lane', 'block'])!r})",
            "unsqueeze_out('dim0')",
            f"concat_ins({y}.rename_ins({{'lane': 'x', 'register': 'y', 'warp': 'z', 'block': 'w'}}))",
            f"concat_outs({x}.rename_outs({{'dim0': 'x', 'dim1': 'y'}}))",
            f"concat_ins({y})",
        ]
    )
    return f"({x} * {y}).{call}" if rng.random() < 0.2 else f"{x}.{call}"


MAKERS: dict[str, Callable[[Rng], str]] = {
    "AMDMFMALayout": mfma,
    "AMDWMMALayout": wmma,
    "BlockedLayout": blocked,
    "DistributedLinearLayout": distributed_linear,
    "DotOperandLayout": dot,
    "IntelDPASLayout": dpas,
    "LinearLayout": linear,
    "NVMMADistributedLayout": nvmma,
    "NVMMASharedLayout": nvmma_shared,
    "NVMMASharedLayout.get_default_for": nvmma_default,
    "PaddedSharedLayout": padded,
    "PaddedSharedLayout.with_identity_for": padded_identity,
    "SharedLinearLayout": shared_linear,
    "SliceLayout": sliced,
    "SwizzledSharedLayout": swizzled,
    "TensorMemoryLayout": tensor_memory,
    "TensorMemoryScalesLayout": tensor_scales,
    "get_tmem_reg_layout": tmem_registers,
    "mfma_scale_layout": mfma_scales,
    "wmma_scale_layout": wmma_scales,
    "the operations": algebra,
}
OWN_SHAPE = ("LinearLayout", "the operations", "get_tmem_reg_layout", "mfma_scale_layout", "wmma_scale_layout")
CARETS = {"LinearLayout.identity_1d", "LinearLayout.strided_1d", "LinearLayout.zeros_1d", "LinearLayout.from_bases"}


def a_shape(text: str, rng: Rng) -> list[int]:
    """The shape of a tile that fits a layout, most of the time."""
    try:
        layout: Any = parse_layout(text)
    except LayoutError:
        return [32, 32]
    own = getattr(layout, "shape", None)
    if own and rng.random() < 0.8:
        return list(own)
    if isinstance(layout, SharedLinearLayout) and rng.random() < 0.8:
        return [
            1 << max(b[d] for b in (*layout.offset_bases, *layout.block_bases)).bit_length() for d in range(layout.rank)
        ]
    low = 6 if isinstance(layout, TensorMemoryLayout) else 0
    return [power(rng, 8, low) for _ in range(layout.rank)]


def expressions(what: str, rng: Rng, count: int) -> list[str]:
    """Expressions of one constructor for tiles of many shapes."""
    found = []
    for _ in range(count):
        text = MAKERS[what](rng)
        if what not in OWN_SHAPE:
            shape = mostly(rng, a_shape(text, rng), [32] * 4, [3, 3], 7)
            text = f"{text}.to_linear({shape})"
        found.append(text)
    return found


def in_python(text: str) -> tuple[str, str]:
    """(the layout, or "", the text of an error below the line with its place)."""
    try:
        return str(as_linear(parse_layout(text, SHAPE, {"A": parse_layout(A, SHAPE).to_linear(SHAPE)}), SHAPE)), ""
    except LayoutError as error:
        span = error.span
        assert span is not None, text
        carets = " " * span.col + "^" * (span.end_col - span.col)
        return "", "\n".join([text, carets, error.message])


RUN = """
const [x, bases, error] = ["x", "bases", "x-error"].map((id) => document.getElementById(id));
return arguments[0].map((text) => {
  x.value = text;
  x.dispatchEvent(new Event("change"));
  return [bases.textContent, error.textContent.replace(/\\nhint: [^]*/, "")]; // some hints are Python's alone
});
"""


QUICK = ("BlockedLayout", "NVMMASharedLayout", "SliceLayout", "LinearLayout", "the operations")


@pytest.mark.parametrize(
    ("what", "count"),
    [*((w, FEW) for w in QUICK), *(pytest.param(w, MANY, marks=pytest.mark.slow) for w in MAKERS)],
)
def test_agreement(page: Any, what: str, count: int) -> None:
    texts = expressions(what, random.Random(what), count)
    found = page.execute_script(RUN, texts)
    layouts = errors = 0
    for text, (bases_text, error) in zip(texts, found, strict=True):
        expected, expected_error = in_python(text)
        if "parameters do not fit" in expected_error or "this page takes" in error:
            continue
        assert (bases_text, error) == (expected[1:], expected_error), text
        layouts += bool(expected)
        errors += bool(expected_error)
    assert layouts >= count // 4 and errors * 60 >= count, (layouts, errors)


def test_every_constructor_is_tried() -> None:
    """What Python's grammar knows is what is compared, and what the page knows."""
    numbers = {"make_cga_layout", "natural_k_width"}  # these give no layouts: see below
    assert set(CALLABLES) == {*MAKERS, *CARETS, "LinearLayout.empty", *numbers} - {"the operations"}
    tried = "".join(expressions("the operations", random.Random("the operations"), MANY))
    assert [name for name in METHODS if f".{name}(" not in tried] == []


@pytest.mark.parametrize(
    "text",
    [
        "BlockedLayout([1,1],[8,4],[2,2],[1,0],make_cga_layout([2,4],[2,2],[1,0])).to_linear([64,64])",
        "DotOperandLayout(0,NVMMADistributedLayout([2,0],[2,2],[16,8]),natural_k_width(8)).to_linear([64,64])",
        "BlockedLayout([1,1],[8,4],[2,2],[1,0],make_cga_layout([2,4],[4,2],[1,0])).to_linear([64,64])",
        "make_cga_layout([2],[2],[0])",
        "natural_k_width(3)",
        "LinearLayout.empty()",
    ],
)
def test_numbers_and_lists(page: Any, text: str) -> None:
    expected, error = in_python(text)
    assert page.execute_script(RUN, [text]) == [[expected[1:], error]]


def test_texts_of_layout_ir(page: Any) -> None:
    """The page reads of them what Python reads, alone and within expressions; where Python refuses, it does, too."""
    rng = random.Random(22)
    texts = [text for text in EXAMPLES.values() if "#blocked" not in text and "#mma" not in text]
    skipped = ("LinearLayout", "the operations", "make_cga_layout", "natural_k_width")
    for what in MAKERS:
        for text in [] if what in skipped else [MAKERS[what](rng) for _ in range(12)]:
            try:
                texts.append(layout_text(parse_layout(text)))
            except (LayoutError, KeyError):
                continue
    texts = [f"{t}.to_linear({a_shape(t, rng)})" for t in texts if as_text(t)]
    assert len(texts) > 60 and len({t.partition("<")[0] for t in texts}) >= 12
    product = "LinearLayout.identity_1d(2, 'register', 'dim0') @ LinearLayout.identity_1d(2, 'a', 'register')"
    texts += [f"gl.SliceLayout(0, {texts[0]})", f"{texts[0]} * {texts[0]}", product, "A.invert() @ A  # a comment"]
    found = page.execute_script(RUN, texts)
    for text, (bases_text, error) in zip(texts, found, strict=True):
        expected, expected_error = in_python(text)
        assert (bases_text, bool(error)) == (expected[1:], bool(expected_error)), text
    texts[0] = EXAMPLES["#ttg.blocked"]
    wrong = [texts[0][:20], texts[0] + " 1", "#ttg.blockd<{}>", "#ttg.slice<{dim = 0, parent = #blocked}>", "A @ 3"]
    wrong += [texts[0].replace("order", "odr"), texts[0].replace("[1,", "[3,", 1), "#ttg.amd_mfma<{version = 3}>"]
    for text, (bases_text, error) in zip(wrong, page.execute_script(RUN, wrong), strict=True):
        assert in_python(text)[1] and error and not bases_text, text


def as_text(text: str) -> bool:
    """Whether what was written is read again; layouts of no shape are not."""
    try:
        return bool(parse_layout(text))
    except LayoutError:
        return False
