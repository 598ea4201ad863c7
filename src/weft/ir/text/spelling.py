"""Attributes and locations written as MLIR writes them; `values` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from xdsl.dialects import builtin
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from ..attrs import dense_values
from ..locations import UNKNOWN_LOC
from ..types import AliasOf, Encoding, i1
from .types import function_text, type_text


@irdl_attr_definition
class OpaqueAttr(Data[str]):
    """An attribute known only by its text, such as `#llvm.loop_annotation<...>`."""

    name = "weft.opaque"

    @classmethod
    def parse_parameter(cls, parser: object) -> str:
        """Not used: Weft reads its own text."""
        raise NotImplementedError

    def print_parameter(self, printer: object) -> None:
        """Write the text as it stands."""
        printer.print_string(self.data)  # type: ignore[attr-defined]


def quote(text: str) -> str:
    """A string as MLIR writes it."""
    out: list[str] = []
    for byte in text.encode("utf-8", "surrogateescape"):
        if byte == 0x5C:
            out.append("\\\\")
        elif 0x20 <= byte < 0x7F and byte != 0x22:
            out.append(chr(byte))
        else:
            out.append(f"\\{byte:02X}")
    return '"' + "".join(out) + '"'


def float_text(value: float, type: Attribute, raw: bytes | None = None) -> str:
    """A float as MLIR writes it: six digits if they are enough, more if not, bits for what is not finite."""
    if not isfinite(value):
        packed = raw if raw is not None else type.pack((value,))  # type: ignore[attr-defined]
        return f"0x{int.from_bytes(packed, 'little'):0{2 * len(packed)}X}"
    short = f"{value:.6e}"
    try:
        same = type.pack((float(short),)) == type.pack((value,))  # type: ignore[attr-defined]
    except OverflowError:
        same = False
    if same:
        return short
    exact = f"{value:.17g}"
    if "e" in exact:
        mantissa, exponent = exact.split("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
    return exact if "." in exact else exact + ".0"


def _dense_text(attr: builtin.DenseIntOrFPElementsAttr) -> str:
    element = attr.type.element_type
    size = element.compile_time_size
    data = attr.data.data
    values = dense_values(attr)
    if isinstance(element, builtin.IntegerType):
        texts = [("true" if v else "false") if element == i1 else str(v) for v in values]
    elif isinstance(element, builtin.IndexType):
        texts = [str(v) for v in values]
    else:
        texts = [float_text(v, element, data[i * size : i * size + size]) for i, v in enumerate(values)]
    if len(texts) == 1 or len(set(texts)) == 1:
        return texts[0]
    for extent in reversed([d.data for d in attr.type.shape.data]):
        texts = [f"[{', '.join(texts[i : i + extent])}]" for i in range(0, len(texts), extent)]
    return texts[0]


def attr_text(attr: Attribute, alias: AliasOf | None = None) -> str:
    """An attribute as MLIR writes it; layouts in it are written in full, or as `alias` names them."""
    if isinstance(attr, builtin.IntegerAttr):
        if attr.type == i1:
            return "true" if attr.value.data else "false"
        return f"{attr.value.data} : {type_text(attr.type)}"
    if isinstance(attr, builtin.FloatAttr):
        return f"{float_text(attr.value.data, attr.type)} : {type_text(attr.type)}"
    if isinstance(attr, builtin.StringAttr):
        return quote(attr.data)
    if isinstance(attr, builtin.UnitAttr):
        return "unit"
    if isinstance(attr, builtin.DenseIntOrFPElementsAttr):
        return f"dense<{_dense_text(attr)}> : {type_text(attr.type, alias)}"
    if isinstance(attr, builtin.DenseArrayBase):
        element = attr.elt_type
        values = attr.get_values()
        if isinstance(element, builtin.IntegerType):
            texts = [("true" if v else "false") if element == i1 else str(v) for v in values]
        else:
            texts = [float_text(v, element) for v in values]
        return f"array<{type_text(element)}{': ' if texts else ''}{', '.join(texts)}>"
    if isinstance(attr, builtin.ArrayAttr):
        return f"[{', '.join(attr_text(a, alias) for a in attr.data)}]"
    if isinstance(attr, builtin.DictionaryAttr):
        return dict_text(attr.data, alias)
    if isinstance(attr, builtin.SymbolRefAttr):
        return "::".join(
            [symbol_text(attr.root_reference.data), *(symbol_text(n.data) for n in attr.nested_references)]
        )
    if isinstance(attr, OpaqueAttr):
        return attr.data
    if isinstance(attr, FastMathFlagsAttr | IntegerOverflowAttr):
        return f"#{attr.name}<{flags_text(attr)}>"
    if isinstance(attr, builtin.FunctionType):
        return function_text([*attr.inputs.data], [*attr.outputs.data], alias)
    if isinstance(attr, builtin.NoneType):
        return "none"
    if isinstance(attr, Encoding):
        return attr.text(alias)
    if isinstance(attr, TypeAttribute):
        return type_text(attr, alias)
    return str(attr)


def flags_text(attr: FastMathFlagsAttr | IntegerOverflowAttr) -> str:
    """The words of a set of flags, in the order in which they are defined."""
    if attr.all_value is not None and len(attr.data) == len(attr.enum_type):
        return str(attr.all_value)
    return ", ".join(str(f.value) for f in attr.enum_type if f in attr.data) or "none"


def dict_text(attrs: Mapping[str, Attribute], alias: AliasOf | None = None) -> str:
    """`{name = attribute, name}`, sorted by name as MLIR keeps them."""
    items = sorted(attrs.items())
    shown = [k if isinstance(v, builtin.UnitAttr) else f"{_name(k)} = {attr_text(v, alias)}" for k, v in items]
    return "{" + ", ".join(shown) + "}"


def _name(name: str) -> str:
    plain = name.replace("_", "").replace(".", "").replace("$", "")
    return name if name.isascii() and plain.isalnum() and not name[0].isdigit() else quote(name)


def symbol_text(name: str) -> str:
    """`@name`, in quotes where it needs them."""
    plain = name.replace("_", "").replace(".", "").replace("$", "").replace("-", "x")
    bare = name.isascii() and plain.isalnum() and not (name[0].isdigit() or name[0] in "-$.") and "-" not in name
    return "@" + (name if bare else quote(name))


def loc_text(loc: Attribute) -> str:
    """A location without its `loc( )`."""
    if isinstance(loc, builtin.FileLineColLoc):
        return f"{quote(loc.filename.data)}:{loc.line.data}:{loc.column.data}"
    if isinstance(loc, builtin.NameLoc):
        inner = "" if loc.location == UNKNOWN_LOC else f"({loc_text(loc.location)})"
        return f"{quote(loc.desc.data)}{inner}"
    if isinstance(loc, builtin.CallSiteLoc):
        return f"callsite({loc_text(loc.callee)} at {loc_text(loc.caller)})"
    if isinstance(loc, builtin.FusedLoc):
        meta = "" if isinstance(loc.metadata, builtin.NoneAttr) else f"<{attr_text(loc.metadata)}>"
        return f"fused{meta}[{', '.join(loc_text(p) for p in loc.locations.data)}]"  # type: ignore[attr-defined]
    return "unknown"
