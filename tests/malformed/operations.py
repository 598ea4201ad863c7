"""IR that can be read, and is wrong in what it says: operands, properties, sizes and layouts changed in operations.

What only the reader sees is in `texts`; this gets as far as the verifier, the passes and the lowering.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from weft.ir import parse_module, print_module

__all__ = ["readable"]

NUMBERS = (0, 1, 2, 3, 4, 5, 7, 16, 31, 32, 64, 127, 128, 1024, -1, -2, 2**31 - 1)


def readable(text: str, draw: random.Random) -> str:
    """The text with one to three changes."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        if draw.random() < 0.4:
            text = draw.choice((_sizes, _layout))(text, draw)
            continue
        try:
            module = parse_module(text)
            draw.choice(RULES)(module, draw)
            text = print_module(module, draw.random() < 0.5)
        except Exception:
            continue  # it cannot be read any more, or not be written so
    return text


def _sizes(text: str, draw: random.Random) -> str:
    """Another size, wherever it is one of a tile."""
    found = sorted(set(re.findall(r"(?<=[<x])\d+(?=x)", text)))
    if not found:
        return text
    old, new = draw.choice(found), draw.choice(("1", "2", "8", "16", "32", "64", "128", "256", "33", "0"))
    text = re.sub(rf"(?<=[<x]){old}(?=x)", new, text)
    return re.sub(rf"\bend = {old} ", f"end = {new} ", text) if draw.random() < 0.7 else text


def _layout(text: str, draw: random.Random) -> str:
    """Another parameter of a layout."""
    lines = [k for k, line in enumerate(text.split("\n")) if re.match(r"#\w+ = #tt", line)]
    if not lines:
        return text
    at, parts = draw.choice(lines), text.split("\n")
    numbers = list(re.finditer(r"(?<![\w.])\d+", parts[at].partition("=")[2]))
    if numbers:
        chosen, offset = draw.choice(numbers), parts[at].index("=") + 1
        new = draw.choice(("0", "1", "2", "4", "8", "16", "32", "64", "3"))
        parts[at] = parts[at][: offset + chosen.start()] + new + parts[at][offset + chosen.end() :]
    return "\n".join(parts)


def _operations(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op is not module and op.name != "tt.func"]


def _like(module: ModuleOp, type: Attribute, draw: random.Random) -> SSAValue | None:
    """Some value of a type."""
    values = [r for op in module.walk() for r in op.results if r.type == type]
    values += [a for op in module.walk() for g in op.regions for b in g.blocks for a in b.args if a.type == type]
    return draw.choice(values) if values else None


def _operand(module: ModuleOp, draw: random.Random) -> None:
    """Another value of the same type."""
    op = draw.choice([op for op in _operations(module) if op.operands])
    at = draw.randrange(len(op.operands))
    found = _like(module, op.operands[at].type, draw)
    if found is not None:
        op.operands[at] = found


def _property(module: ModuleOp, draw: random.Random) -> None:
    """Another number or word, or none."""
    op = draw.choice([op for op in _operations(module) if op.properties])
    name = draw.choice(sorted(op.properties))
    value = op.properties[name]
    if draw.random() < 0.15:
        del op.properties[name]
    elif isinstance(value, IntegerAttr):
        kind = value.type
        width = kind.width.data if isinstance(kind, IntegerType) else 64
        op.properties[name] = IntegerAttr(draw.choice([n for n in NUMBERS if n.bit_length() < max(width, 2)]), kind)
    elif isinstance(value, DenseArrayBase):
        numbers = [int(n) for n in value.get_values()]
        if numbers and draw.random() < 0.7:
            numbers[draw.randrange(len(numbers))] = draw.choice(NUMBERS)
        else:
            numbers.append(draw.choice(NUMBERS))
        op.properties[name] = DenseArrayBase.from_list(value.elt_type, numbers)
    elif isinstance(value, StringAttr):
        op.properties[name] = StringAttr(draw.choice(("", "x", "=r,r", "add.f32 $0, $1;", "__nv_no_such", "a b")))


def _gone(module: ModuleOp, draw: random.Random) -> None:
    """An operation less; what used its results uses others."""
    op = draw.choice(_operations(module))
    others = [_like(module, r.type, draw) for r in op.results]
    if any(other is None or other in op.results for other in others):
        return
    for result, other in zip(op.results, others, strict=True):
        assert other is not None
        result.replace_all_uses_with(other)
    op.detach()


def _moved(module: ModuleOp, draw: random.Random) -> None:
    """An operation in another place, perhaps in or out of a loop."""
    op, to = draw.choice(_operations(module)), draw.choice(_operations(module))
    if op is to or any(inner is to for inner in op.walk()) or to.parent is None:
        return
    op.detach()
    to.parent.insert_ops_before([op], to)


def _doubled(module: ModuleOp, draw: random.Random) -> None:
    """An operation a second time, elsewhere."""
    op, to = draw.choice(_operations(module)), draw.choice(_operations(module))
    if to.parent is not None:
        to.parent.insert_ops_before([op.clone()], to)


RULES: tuple[Callable[[ModuleOp, random.Random], None], ...] = (
    _operand, _operand, _property, _property, _gone, _moved, _doubled,
)  # fmt: skip
