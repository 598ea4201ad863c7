"""The layout IR: tiles that have layouts, shared memory, and the operations of Triton's dialect `ttg`.

What tile IR is, this is too, and more: a tile's type has an encoding, and between the operations of `tt` stand those
that move tiles between layouts and memory. `weft.ir.parse_module`, `print_module` and `verify(module, "layout")` know
all of it once this is imported; compilations for the CPU do not import it.

encoding    a layout in a tile's type           memory     descriptors of memory, tokens
names       named layouts as text               reading    types and attributes, read
ttg         the operations                      forms, regions   their text
products    what passes see of products in shared memory; `ttng` and `amdg` are of `ir/nvidia/` and `ir/amd/`
described   descriptors of the Triton language, in a kernel that has layouts
rows        rows that begin at any address, read and written by aligned vectors
naming      the named layout of what an operation on shapes gives
check       what layout IR must be, layouts first; check_memory   memory and what is asynchronous
"""

from weft.base import publish as _publish
from weft.machines.vendors import after_joining, part_of, vendors_with

# These fill the tables of the reader, the writer and the verifier.
from . import (
    check as check,
    check_memory as check_memory,
    described as described,
    forms as forms,
    naming as naming,
    reading as reading,
    regions as regions,
    rows as rows,
    ttg as ttg,
)
from .check import threads_at as threads_at
from .encoding import *
from .memory import *
from .names import layout_text as layout_text

_publish(globals(), "naming rows ttg")


def _add(vendor: str) -> None:
    """A vendor's dialect, with its text and its rules."""
    part_of("ir", vendor)


after_joining.append(_add)
for _vendor in vendors_with("ir"):
    _add(_vendor)
