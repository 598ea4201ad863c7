"""Where an operation came from: MLIR's locations to and from spans.

>>> from weft.base import Span
>>> loc_of(Span("k.py", 3, 4))
FileLineColLoc(filename=StringAttr(data='k.py'), line=IntAttr(data=3), column=IntAttr(data=4))
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects import builtin
from xdsl.ir import Attribute, BlockArgument, Operation

from weft.base import Span

UNKNOWN_LOC = builtin.UnknownLoc()
"""The location of what came from nowhere."""


@lru_cache(maxsize=8192)
def file_loc(file: str, line: int, col: int) -> builtin.FileLineColLoc:
    """`loc("file":line:col)`: lines from one, columns from zero, as Triton writes them."""
    return builtin.FileLineColLoc(builtin.StringAttr(file), builtin.IntAttr(line), builtin.IntAttr(col))


def loc_of(span: Span | None) -> builtin.FileLineColLoc | builtin.UnknownLoc:
    """The location that stands for a span (its beginning; the end is not kept)."""
    return UNKNOWN_LOC if span is None else file_loc(span.file, span.line, span.col)


def name_loc(name: str, inner: Attribute = UNKNOWN_LOC) -> builtin.NameLoc:
    """`loc("name"(inner))`: how Triton keeps the names of arguments and variables."""
    return builtin.NameLoc(builtin.StringAttr(name), inner)


def argument_name(argument: BlockArgument) -> str:
    """The name of a function's argument in the source, as far as its location or the text of the IR tells it."""
    loc = argument.location
    if isinstance(loc, builtin.NameLoc):
        return loc.desc.data
    return argument.name_hint or f"arg{argument.index}"


def hint_of(name: str) -> str | None:
    """How a value that a variable of the source holds may be called in the text of the IR, if at all.

    The text takes a number at the end of a name (`x_1`) for its own, so nothing would be left of `_0`.
    """
    return name if name.isascii() and name.lstrip("_0123456789") else None


def call_site_loc(callee: Attribute, caller: Attribute) -> builtin.CallSiteLoc:
    """`loc(callsite(callee at caller))`: code that was inlined."""
    return builtin.CallSiteLoc(callee, caller)


def span_of_loc(loc: Attribute) -> Span | None:
    """The innermost place in a file that a location names, or None."""
    while True:
        if isinstance(loc, builtin.FileLineColLoc):
            return Span(loc.filename.data, loc.line.data, loc.column.data)
        if isinstance(loc, builtin.NameLoc):
            loc = loc.location
        elif isinstance(loc, builtin.CallSiteLoc):
            loc = loc.callee
        elif isinstance(loc, builtin.FusedLoc) and isinstance(loc.locations, builtin.ArrayAttr) and loc.locations.data:
            loc = loc.locations.data[0]
        else:
            return None


def span_of(op: Operation) -> Span | None:
    """Where an operation came from; if it does not say, where the one around it did."""
    at: Operation | None = op
    while at is not None:
        span = span_of_loc(at.location)
        if span is not None:
            return span
        at = at.parent_op()
    return None
