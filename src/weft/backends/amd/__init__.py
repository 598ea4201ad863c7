"""AMD GPUs: code objects of lane programs, and (in `driver` and `loaded_kernel`) the library that launches them.

Lane programs become LLVM IR (`AMDGPU`), that an object (`machine`), and that a code object (`hsaco`).
None of that needs a GPU, a driver or a linker.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .assembler import assembled
    from .dialect import AMDGPU
    from .hsaco import linked
    from .machine import assembly, begin, object_code
    from .notes import Facts, facts_of
    from .occupancy import Saving, registers_for_one_more
    from .processor import Processor, processor_of

__all__ = [
    "AMDGPU",
    "Facts",
    "Processor",
    "Saving",
    "assembled",
    "assembly",
    "begin",
    "facts_of",
    "linked",
    "object_code",
    "processor_of",
    "registers_for_one_more",
]

__getattr__ = lazy_face(
    __name__,
    {
        "assembler": "assembled",
        "dialect": "AMDGPU",
        "hsaco": "linked",
        "machine": "assembly begin object_code",
        "notes": "Facts facts_of",
        "occupancy": "Saving registers_for_one_more",
        "processor": "Processor processor_of",
    },
)
