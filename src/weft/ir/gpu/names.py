"""Named layouts as Triton 3.6.0 writes them, both ways.

    #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>

and so on, see `EXAMPLES`. All but slices and operands of products get a short name (`#blocked`, `#mma`, ...) at the
top of a module. What is left out means the default; `CGALayout = [[1, 0]]` is there for clusters of several blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from weft import layouts

from ..types import AliasOf

EXAMPLES: Mapping[str, str] = {
    text.partition("<")[0]: text
    for text in (
        "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>",
        "#ttg.slice<{dim = 1, parent = #blocked}>",
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>",
        "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>",
        "#ttg.linear<{register = [[0, 1]], lane = [[0, 2]], warp = [[1, 0]], block = []}>",
        "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>",
        "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>",
        "#ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>",
        "#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>",
    )
}
"""A right one of each, for hints."""

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class _Field:
    """A parameter of a layout: its word in the text, and the values that are left out there."""

    key: str
    parameter: str
    left_out: tuple[Any, ...] = ()

    def is_shown(self, value: Any) -> bool:
        """Whether the text has it; ones alone mean the same as nothing."""
        return value not in self.left_out and not (() in self.left_out and all(n == 1 for n in value))

    def of(self, fields: Fields) -> Any:
        """Its value as read; KeyError where it is missing."""
        return fields.get(self.key, self.left_out[0]) if self.left_out else fields[self.key]


_CGA = _Field("CGALayout", "cga_layout", ((),))
_WARPS, _VERSION = _Field("warpsPerCTA", "warps_per_cta"), _Field("version", "version")
_ORDER, _TILES = _Field("order", "order"), _Field("tilesPerWarp", "tiles_per_warp", (None, ()))

_REGULAR: dict[type[layouts.Layout], tuple[str, str, tuple[_Field, ...]]] = {
    layouts.BlockedLayout: (
        "#ttg.blocked", "blocked",
        (
            _Field("sizePerThread", "size_per_thread"), _Field("threadsPerWarp", "threads_per_warp"), _WARPS, _ORDER,
            _CGA,
        ),
    ),
    layouts.SwizzledSharedLayout: (
        "#ttg.swizzled_shared", "shared",
        (_Field("vec", "vec"), _Field("perPhase", "per_phase"), _Field("maxPhase", "max_phase"), _ORDER, _CGA),
    ),
    layouts.NVMMASharedLayout: (
        "#ttg.nvmma_shared", "shared",
        (
            _Field("swizzlingByteWidth", "swizzle_byte_width"), _Field("transposed", "transposed"),
            _Field("elementBitWidth", "element_bitwidth"), _Field("fp4Padded", "fp4_padded", (False,)),
            _Field("rank", "rank", (2,)), _CGA,
        ),
    ),
    layouts.AMDMFMALayout: (
        "#ttg.amd_mfma", "mma",
        (
            _VERSION, _WARPS, _Field("instrShape", "instr_shape"), _Field("isTransposed", "transposed"), _CGA, _TILES,
            _Field("elementBitWidth", "element_bitwidth", (None, 32)),
        ),
    ),
    layouts.AMDWMMALayout: (
        "#ttg.amd_wmma", "mma",
        (
            _VERSION, _Field("isTranspose", "transposed"), _WARPS, _CGA, _TILES,
            _Field("instrShape", "instr_shape", (None, (16, 16, 16))),
        ),
    ),
    layouts.IntelDPASLayout: (
        "#ttig.dpas", "mma",
        (
            _Field("repeatCount", "repeat_count"), _Field("systolicDepth", "systolic_depth"),
            _Field("executionSize", "execution_size"), _Field("opsPerChan", "ops_per_channel"),
            _Field("threadsPerWarp", "threads_per_warp"), _WARPS, _Field("repCluster", "rep_cluster"),
        ),
    ),
}  # fmt: skip
"""Layouts whose text is their name and parameters in braces: name, stem of their short name, parameters in order."""


# -- written -------------------------------------------------------------------------------------------------------


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


def _body(name: str, fields: Fields, cga: Sequence[Sequence[int]] = ()) -> str:
    shown = [f"{key} = {_value(value)}" for key, value in fields.items()]
    if cga:
        shown.append(f"CGALayout = {_value(cga)}")
    return f"{name}<{{{', '.join(shown)}}}>"


def _linear(a: layouts.DistributedLinearLayout) -> str:
    fields = {"register": a.reg_bases, "lane": a.lane_bases, "warp": a.warp_bases, "block": a.block_bases}
    return _body("#ttg.linear", fields)


def _mma(a: layouts.NVMMADistributedLayout) -> str:
    fields = {
        "versionMajor": a.version[0],
        "versionMinor": a.version[1],
        "warpsPerCTA": a.warps_per_cta,
    }
    # The instruction's shape comes after the cluster.
    shown = _body("#ttg.nvidia_mma", fields, a.cga_layout)
    return f"{shown.removesuffix('}>')}, instrShape = {_value(a.instr_shape)}}}>"


def _shared_linear(a: layouts.SharedLinearLayout) -> str:
    fields = {"offset": a.offset_bases, **({"block": a.block_bases} if a.block_bases else {})}
    return f"{_body('#ttg.shared_linear', fields).removesuffix('>')}, alignment = {a.alignment}>"


def _padded(a: layouts.PaddedSharedLayout) -> str:
    pairs = ", ".join(f"{interval}:+{padding}" for interval, padding in a.interval_padding_pairs)
    fields: dict[str, Any] = {"offset": a.offset_bases, "block": a.block_bases}
    if not a.block_bases:
        for order in _orders(len(a.shape)):
            if layouts.PaddedSharedLayout.with_identity_for(a.interval_padding_pairs, a.shape, order) == a:
                fields = {"order": order, "shape": a.shape}
                break
    return f"#ttg.padded_shared<[{pairs}] {_body('', fields).removeprefix('<')}"


def _orders(rank: int) -> list[tuple[int, ...]]:
    """All orders of so many dimensions, row by row first."""
    if rank == 0:
        return [()]
    return [(*rest[:i], rank - 1, *rest[i:]) for i in range(rank) for rest in _orders(rank - 1)]


def _tensor_memory(a: layouts.TensorMemoryLayout) -> str:
    split = a.cta_split_num or (1, 1)
    shown = f"blockM = {a.block[0]}, blockN = {a.block[1]}, colStride = {a.col_stride}"
    for key, count in zip(("CTASplitM", "CTASplitN"), split, strict=True):
        if count != 1:
            shown += f", {key} = {count}"
    if a.two_ctas:
        shown += ", twoCTAs = true"
    return f"#ttng.tensor_memory_encoding<{shown}>"


def _tensor_memory_scales(a: layouts.TensorMemoryScalesLayout) -> str:
    split = a.cta_split_num or (1, 1)
    pairs = zip(("CTASplitM", "CTASplitN"), split, strict=True)
    return f"#ttng.tensor_memory_scales_encoding<{', '.join(f'{k} = {n}' for k, n in pairs if n != 1)}>"


_WRITE: dict[type[layouts.Layout], tuple[str, Callable[[Any], str]]] = {
    layouts.DistributedLinearLayout: ("linear", _linear),
    layouts.NVMMADistributedLayout: ("mma", _mma),
    layouts.SharedLinearLayout: ("shared", _shared_linear),
    layouts.PaddedSharedLayout: ("shared", _padded),
    layouts.TensorMemoryLayout: ("tmem", _tensor_memory),
    layouts.TensorMemoryScalesLayout: ("tmem_scales", _tensor_memory_scales),
}


def layout_text(named: layouts.Layout, alias: AliasOf | None = None) -> str:
    """A named layout as Triton writes it; with `alias`, what has a short name by that."""
    if isinstance(named, layouts.SliceLayout):
        return f"#ttg.slice<{{dim = {named.dim}, parent = {layout_text(named.parent, alias)}}}>"
    if isinstance(named, layouts.DotOperandLayout):
        width = f", kWidth = {named.k_width}" if named.k_width else ""
        return f"#ttg.dot_op<{{opIdx = {named.operand_index}, parent = {layout_text(named.parent, alias)}{width}}}>"
    if isinstance(named, layouts.AutoLayout):
        return "#gluon.auto_encoding"
    if isinstance(named, layouts.CoalescedLayout):
        return "#gluon.coalesced_encoding"
    if type(named) in _REGULAR:
        name, stem, parameters = _REGULAR[type(named)]
        values = ((field, getattr(named, field.parameter)) for field in parameters)
        text = _body(name, {field.key: value for field, value in values if field.is_shown(value)})
    else:
        stem, write = _WRITE[type(named)]
        text = write(named)
    return text if alias is None else alias(text, stem)


# -- read ----------------------------------------------------------------------------------------------------------


def _sizes(bases: Sequence[Sequence[Sequence[int]]]) -> list[int]:
    """The shape that bases reach."""
    vectors = [basis for columns in bases for basis in columns]
    return [1 << max(basis[d].bit_length() for basis in vectors) for d in range(len(vectors[0]))] if vectors else []


def _linear_from(f: Fields) -> layouts.Layout:
    parts = [f.get(key, []) for key in ("register", "lane", "warp", "block")]
    return layouts.DistributedLinearLayout(parts[0], parts[1], parts[2], parts[3], _sizes(parts))


def _regular_from(cls: Callable[..., layouts.Layout], parameters: Sequence[_Field], f: Fields) -> layouts.Layout:
    values = {field.parameter: field.of(f) for field in parameters}
    return cls(**{name: bool(value) if name == "transposed" else value for name, value in values.items()})


def padded_from(pairs: Sequence[Sequence[int]], f: Fields) -> layouts.Layout:
    """A padded layout: its pairs stand before the braces."""
    if "order" in f:
        return layouts.PaddedSharedLayout.with_identity_for(pairs, f["shape"], f["order"])
    offset, block = f["offset"], f.get("block", [])
    return layouts.PaddedSharedLayout(pairs, offset, block, _sizes([offset, block]))


def _split(f: Fields) -> tuple[int, int] | None:
    split = (f.get("CTASplitM", 1), f.get("CTASplitN", 1))
    return None if split == (1, 1) else split


FIELDS: dict[str, Callable[[Fields], layouts.Layout]] = {
    **{name: partial(_regular_from, cls, parameters) for cls, (name, _, parameters) in _REGULAR.items()},
    "#ttg.slice": lambda f: layouts.SliceLayout(f["dim"], f["parent"]),
    "#ttg.dot_op": lambda f: layouts.DotOperandLayout(f["opIdx"], f["parent"], f.get("kWidth", 0)),
    "#ttg.nvidia_mma": lambda f: layouts.NVMMADistributedLayout(
        (f["versionMajor"], f["versionMinor"]), f["warpsPerCTA"], f["instrShape"], f.get("CGALayout", ())
    ),
    "#ttg.linear": _linear_from,
    "#ttg.shared_linear": lambda f: layouts.SharedLinearLayout(f["offset"], f.get("block", ()), f.get("alignment", 16)),
    "#ttng.tensor_memory_encoding": lambda f: layouts.TensorMemoryLayout(
        (f["blockM"], f["blockN"]), f["colStride"], _split(f), bool(f.get("twoCTAs", False))
    ),
    "#ttng.tensor_memory_scales_encoding": lambda f: layouts.TensorMemoryScalesLayout(_split(f)),
    "#gluon.auto_encoding": lambda f: layouts.AutoLayout(),
    "#gluon.coalesced_encoding": lambda f: layouts.CoalescedLayout(),
}
"""The layout of each name, from the fields in its braces."""
FIELDS["#triton_intel_gpu.dpas"] = FIELDS["#ttig.dpas"]  # what it was called until 2025
FIELDS["#ttig.dot_op"] = FIELDS["#ttg.dot_op"]
