"""The text of tile IR, read and written: Triton's own form, and MLIR's generic one.

Why not xDSL's parser: a kernel of a few hundred lines takes it most of a second; here types are read once each and an
operation costs some tens of microseconds.

    tokens     one pass of a regular expression, and a cursor
    types      a type's text, each read once
    values     attributes, locations, aliases       spelling   the same, written
    elements   the pieces of an operation's text    forms      the table of all operations
    special    operations with regions or branches
    reader     parse_module                         writer     print_module
"""

from . import special  # fills the tables of the reader and the writer
from .forms import OPERATIONS, property_names, register
from .reader import parse_module
from .spelling import OpaqueAttr
from .tokens import ParseError
from .types import type_text
from .writer import print_module

__all__ = [
    "OPERATIONS",
    "OpaqueAttr",
    "ParseError",
    "parse_module",
    "print_module",
    "property_names",
    "register",
    "type_text",
]

_ = special
