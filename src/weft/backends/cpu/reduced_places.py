"""Reductions of values together with their places, such as `argmax`: what is known as places rise along the axis.

    larger = value1 > value2
    equal = value1 == value2
    first = larger or (equal and place1 < place2)
    return (value1 if first else value2), (place1 if first else place2)

A loop along the axis combines what it has so far (1) with an element further on (2). So `place1 < place2` holds there,
and the condition becomes `value1 >= value2`: one comparison instead of three, and nothing that waits for the place.

The loop may also end where only padding follows (paddings.py). If `first` is true of two equal values, an accumulator
that has had an element of padding stays as it is when another one comes, at a greater place.
"""

from __future__ import annotations

from weft.backends.cpu.coords import row_major
from weft.backends.cpu.extents import counts
from weft.backends.cpu.program import Op, Value

EQUAL_FLOATS = (1, 3, 5, 7, 8, 10, 12, 15)
"""Predicates of `arith.cmpf` that hold for a number and itself."""
EQUAL_INTEGERS = (0, 3, 5, 7, 9)
"""The same of `arith.cmpi`."""
RISING, FALLING = (1, 2, 3), (1, 4, 5)
"""Predicates that hold for a place and a greater one, and for a place and a lesser one: signed ones and inequality."""


def known_of_places(op: Op) -> set[Value]:
    """The comparisons in the region of a reduction that hold where the second element is further along the axis."""
    block, axis = op.regions[0][0], op.attrs["axis"]
    coords = row_major(op.args[0].shape)
    number = len(op.args)
    kept, new = block.args[:number], block.args[number:]
    places = [k for k, value in enumerate(op.args) if counts(value, coords, coords[axis])]
    ordered = {(kept[k], new[k]): RISING for k in places} | {(new[k], kept[k]): FALLING for k in places}
    return {
        o.result
        for o in block.ops
        if o.name == "arith.cmpi" and o.attrs["predicate"] in ordered.get((o.args[0], o.args[1]), ())
    }


def keeps_first(op: Op, data: float | int) -> bool:
    """Whether a reduction of values and places, once it has combined a constant in, keeps what it has when the same
    constant follows further along the axis.
    """
    block = op.regions[0][0]
    if len(op.args) != 2 or data != data:
        return False
    kept, new = block.args[:2], block.args[2:]
    known = known_of_places(op)
    condition = None
    for value, a, b in zip(block.ops[-1].args, kept, new, strict=True):
        chosen = value.op
        if chosen is None or chosen.name != "arith.select" or chosen.args[1:] != [a, b]:
            return False
        if condition not in (None, chosen.args[0]):
            return False
        condition = chosen.args[0]
    return condition is not None and bool(known) and _of_equals(condition, {kept[0], new[0]}, known) is True


def _of_equals(condition: Value, values: set[Value], known: set[Value]) -> bool | None:
    """Whether a condition holds if two values are the same number, and so do comparisons of places; None if that is
    not known, or a comparison of places that holds might make it false.
    """
    if condition in known:
        return True
    op = condition.op
    if op is None:
        return None
    if op.name == "arith.constant":
        return bool(op.attrs["value"])
    if op.name in ("arith.cmpf", "arith.cmpi"):
        equal = EQUAL_FLOATS if op.name == "arith.cmpf" else EQUAL_INTEGERS
        return op.attrs["predicate"] in equal if set(op.args) <= values else None
    if op.name not in ("arith.andi", "arith.ori"):
        return None
    x, y = (_of_equals(a, values, known) for a in op.args)
    if x is None or y is None:
        return None
    return x and y if op.name == "arith.andi" else x or y
