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
from .forms import OPERATIONS as OPERATIONS, property_names as property_names, register as register
from .reader import parse_module as parse_module
from .spelling import OpaqueAttr as OpaqueAttr
from .tokens import ParseError as ParseError
from .types import type_text as type_text
from .writer import print_module as print_module

_ = special
