"""How each operation is written, for hints: an example that is right, else its form with the operands' names.

    >>> written("tt.splat")
    '%r = tt.splat %x : f32 -> tensor<64xf32>'
    >>> written("arith.extsi")
    '%r = arith.extsi %x : tensor<64xi8> to tensor<64xi32>'

The examples are read and verified by a test, so they show how types follow from each other too.
"""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.irdl import PropertyDef

from weft.base import data_lines
from weft.ops.row import INTEGERS, Kind
from weft.ops.table import ROWS

from . import elements
from .forms import CASTS, FORMS, OPERATIONS, SAME

_CAST_TYPES = {
    ("int", "wider"): ("i8", "i32"), ("int", "narrower"): ("i32", "i8"), ("int", ""): ("i32", "index"),
    ("float", "wider"): ("f16", "f32"), ("float", "narrower"): ("f32", "f16"), ("any", "bits"): ("i32", "f32"),
}  # fmt: skip
_KINDS = {"int": "i32", "float": "f32", "pointer": "!tt.ptr<f32>"}

EXAMPLES = dict(line.split(": ", 1) for line in data_lines(__name__, "examples.txt"))


def _shown(piece: elements.Piece) -> str:
    """A piece of a form, with names for what stands there and brackets around what may be absent."""
    match piece:
        case elements.Mark():
            return piece.text
        case elements.Value():
            return f"%{piece.group}"
        case elements.Values():
            return f"%{piece.group}, ..."
        case elements.Type() | elements.Types():
            return f"type(%{piece.group})"
        case elements.Signature():
            inputs = ", ".join(f"type(%{g})" for g in piece.operands)
            return f"({inputs}) -> ({', '.join(f'type(%{g})' for g in piece.results)})"
        case elements.Maybe():
            return f"[{piece.mark}{''.join(map(_shown, piece.pieces))}]"
        case elements.Choice():
            return f"({' | '.join(piece.choices)})"
        case elements.Flag():
            return f"[ {piece.word}]"
        case elements.Text():
            return f'"{piece.prop}"'
        case elements.Named():
            return f"@{piece.prop}"
        case elements.Hints() | elements.Attributes():
            return ""
    return (
        str(getattr(piece, "prop", "..."))
        if not hasattr(piece, "groups")
        else ", ".join(f"type(%{g})" for g in piece.groups)
    )


def _needed(cls: type[Operation], form: elements.Form | None) -> str:
    """The properties that must be given in braces."""
    definition = cls.get_irdl_definition()  # type: ignore[attr-defined]
    left_out = {"overflowFlags", "fastmath", "operandSegmentSizes"} | (
        form.hidden | {*form.defaults} if form else set()
    )
    names = [name for name, d in definition.properties.items() if type(d) is PropertyDef and name not in left_out]
    return f"{{{', '.join(f'{name} = ...' for name in names)}}}" if names else ""


def _cast_types(kind: Kind) -> tuple[str, str]:
    if kind.source == kind.result:
        return _CAST_TYPES[kind.source, kind.how]
    whole = "i64" if "pointer" in kind else "i32"
    source, target = (whole if part == "int" else _KINDS[part] for part in (kind.source, kind.result))
    return source, target


def written(name: str) -> str | None:
    """An example of an operation, or its form; None for a name that no operation has."""
    name = "builtin.module" if name == "module" else name
    if name in EXAMPLES:
        return EXAMPLES[name]
    if name in SAME:
        whole = name not in ROWS or ROWS[name].kind == INTEGERS
        letters = ", ".join(f"%{letter}" for letter in "xyz"[: SAME[name]])
        return f"%r = {name} {letters} : tensor<64x{'i32' if whole else 'f32'}>"
    if name in CASTS:
        source, target = _cast_types(ROWS[name].kind)
        return f"%r = {name} %x : tensor<64x{source}>{CASTS[name]}tensor<64x{target}>"
    cls = OPERATIONS.get(name)
    if cls is None:
        return None
    definition = cls.get_irdl_definition()  # type: ignore[attr-defined]
    form = FORMS.get(name)
    left = ", ".join(f"%{r}" for r, _ in definition.results) + (" = " if definition.results else "")
    if form is None:
        operands, results = (
            ", ".join(f"{mark}%{g}{end}" for g, _ in groups)
            for groups, mark, end in ((definition.operands, "", ""), (definition.results, "type(", ")"))
        )
        types = ", ".join(f"type(%{g})" for g, _ in definition.operands)
        braces = _needed(cls, None)
        return f'{left}"{name}"({operands}){f" <{braces}>" if braces else ""} : ({types}) -> ({results})'
    pieces, braces = [_shown(piece) for piece in form.pieces], _needed(cls, form)
    for i, piece in enumerate(form.pieces):
        if isinstance(piece, elements.Attributes) and braces:
            pieces[i] = f" {braces}"
    return f"{left}{name} {''.join(pieces).strip()}".rstrip()
