"""Back ends write LLVM IR and do not read it: order is decided on lane operations. These may read text, and why."""

from __future__ import annotations

import ast
from pathlib import Path

BACKENDS = Path(__file__).resolve().parents[1] / "src/weft/backends"
READERS = {
    "llvm/names.py": "between two of LLVM's passes, which leave the text",
    "llvm/parts.py": "long functions of the CPU, in several",
    "llvm/aborts.py": "the name of a kernel, for the last words of the process",
    "cpu/native_code.py": "names of constants, in files of LLVM IR",
    "cpu/host.py": "what the processor says of itself",
    "nvidia/machine.py": "numbers of calls, which LLVM puts into comments of PTX",
    "nvidia/assembler_faults.py": "PTX, for faults of ptxas",
    "nvidia/loaded_words.py": "PTX, for options of ptxas",
    "nvidia/occupancy.py": "PTX, for options of ptxas",
    "nvidia/ptxas.py": "what ptxas says",
    "nvidia/loaded_kernel.py": "the version of PTX that a driver refuses",
    "gpu/branches.py": "what was written behind a branch, so that more can be put into it",
    "amd/assembler.py": "assembly that LLVM writes for an assembler, and what that says of it",
    "amd/local_size.py": "the size of shared memory in assembly that LLVM wrote",
    "amd/printing.py": "formats of C's, for Python's",
    "amd/inline.py": "inline assembly, which the kernel's author wrote",
    "intel/ir_text.py": "types and constants, for widening",
    "intel/widening.py": "instructions of a lane, each of which becomes one of a warp (decision 43)",
    "gpu/inline.py": "inline assembly, which the kernel's author wrote",
    "nvidia/inline.py": "inline assembly, which the kernel's author wrote",
    "nvidia/kept_operands.py": "PTX as LLVM wrote it: which registers hold operands is known only there",
}


def _imports_re(path: Path) -> bool:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return any(isinstance(node, ast.Import) and any(a.name == "re" for a in node.names) for node in found)


def test_nothing_else_reads_text() -> None:
    readers = {path.relative_to(BACKENDS).as_posix() for path in BACKENDS.rglob("*.py") if _imports_re(path)}
    assert readers == READERS.keys()
