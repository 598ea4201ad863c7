"""The layout IR: tiles that have layouts, shared memory, and the operations of Triton's dialects `ttg` and `ttng`.

What tile IR is, this is too, and more: a tile's type has an encoding, and between the operations of `tt` stand those
that move tiles between layouts and memory. `weft.ir.parse_module`, `print_module` and `verify(module, "layout")` know
all of it once this is imported; compilations for the CPU do not import it.

encoding    a layout in a tile's type           memory     descriptors of memory, tokens
names       named layouts as text               reading    types and attributes, read
ttg, ttng   the operations                      forms, regions   their text
amdg        some operations for AMD, with their text
rows        rows that begin at any address, read and written by aligned vectors
respell     names of layouts as Triton asks for them
naming      the named layout of what an operation on shapes gives
check       what layout IR must be, layouts first; check_memory   memory and what is asynchronous
"""

from . import (  # fill the tables of the reader, the writer and the verifier
    amdg,
    check,
    check_memory,
    forms,
    naming,
    reading,
    regions,
    rows,
    ttg,
    ttng,
)
from .check import threads_at
from .encoding import (
    LayoutAttr,
    NamedLayoutAttr,
    encoding_for,
    encoding_of,
    laid_tensor,
    layout_of,
    linear_encoding,
    name_of,
    told_layout,
)
from .memory import (
    SHARED_MEMORY,
    TENSOR_MEMORY,
    AsyncTokenType,
    MemDesc,
    MemDescType,
    MemorySpaceAttr,
    allocated_bytes,
    async_token,
    memdesc,
)
from .names import layout_text
from .respell import respell_layouts

__all__ = [
    # dialects
    "amdg",
    "rows",
    "ttg",
    "ttng",
    # tiles with layouts
    "told_layout",
    "LayoutAttr",
    "NamedLayoutAttr",
    "encoding_for",
    "encoding_of",
    "laid_tensor",
    "layout_of",
    "layout_text",
    "linear_encoding",
    "naming",
    "name_of",
    "respell_layouts",
    "threads_at",
    # memory
    "AsyncTokenType",
    "MemDesc",
    "MemDescType",
    "MemorySpaceAttr",
    "SHARED_MEMORY",
    "TENSOR_MEMORY",
    "allocated_bytes",
    "async_token",
    "memdesc",
]

_ = (check, check_memory, forms, reading, regions)
