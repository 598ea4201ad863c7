"""An assembler for kernels with inline assembly: LLVM's library, as it is installed with Weft, has none for AMD's GPUs.

    data, code = assembled(llir, processor)
    image = linked(data, code)

LLVM writes the kernel as text, where inline assembly stands as its author wrote it, with registers filled in; an
assembler of this machine makes its instructions of that. All else (descriptor, notes, constants) LLVM writes by itself,
into an object of the same kernel with the assembly left empty: so the assembler need only know the processor and its
instructions, not the directives of LLVM's newest version.

Taken is ROCm's library `amd_comgr`, which PyTorch for ROCm brings along too, or an `llvm-mc` or `clang` of ROCm or of
the system: the first that takes the whole text. Where none does, the error says what each has said.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from weft.base import CompilationError, CompilerCrash, Unsupported
from weft.ir.lane import LaneOp

from .comgr import Comgr
from .library import WINDOWS, folders
from .machine import TRIPLE, assembly, object_code
from .processor import Processor

COMGR = ("amd_comgr_3.dll", "amd_comgr_2.dll", "amd_comgr.dll") if WINDOWS else tuple(
    f"libamd_comgr.so{version}" for version in ("", ".3", ".2")
)  # fmt: skip
TOOLS = ("llvm-mc", "clang")
NEWEST, OLDEST = 24, 15
"""Versions of LLVM that a system may have side by side, as `llvm-mc-19`."""
SECONDS = 120
HINT = "ROCm has one in its library amd_comgr, which PyTorch for ROCm brings along; so have LLVM's llvm-mc and clang"
_DROPPED = re.compile(r"\s*\.(?:loc|file|cfi_\w+|amdgcn_target|amdhsa_code_object_version)\b")
_BLOCKS = {".amdhsa_kernel": ".end_amdhsa_kernel", ".amdgpu_metadata": ".end_amdgpu_metadata"}
_OTHERS = re.compile(r"\s*\.section\s+\"?\.(?:debug|AMDGPU|note)")
_SECTION = re.compile(r"\s*\.(?:section|text|data|bss)\b")
_SAID = re.compile(r"(?:^|[:.])(\d+):\d+: error: (.*)", re.MULTILINE)
_ASM = re.compile(r'(call [^\n]* asm (?:sideeffect )?)"[^"]*"')
_PLACE = re.compile(r"\s*\.loc\s+\d+ (\d+) ")

Assembler = Callable[[str, str], tuple[str, bytes | None]]
"""(text, processor) to what it says and the object file."""


def assembled(llir: str, processor: Processor, inlined: Sequence[LaneOp]) -> tuple[bytes, bytes]:
    """(an object file of LLVM's without the assembly, one with all instructions) of a module with inline assembly."""
    text = assembly(llir, processor)
    emptied = _ASM.sub(r'\1""', llir)
    if _kernel_block(text) != _kernel_block(assembly(emptied, processor)):
        raise CompilerCrash("LLVM gives a kernel other registers than without its inline assembly", "amdgcn", ir=llir)
    lines, numbers = _code(text)
    refusals, places = [], {}
    for name, run in _assemblers():
        said, code = run("\n".join(lines) + "\n", processor.name)
        if code is not None:
            return object_code(emptied, processor), code
        error = _SAID.search(said)
        if error is None or int(error[1]) > len(lines):
            refusals.append(f"{name}: {said.strip().splitlines()[0] if said.strip() else 'it fails'}")
        else:
            places[name] = numbers[int(error[1]) - 1]
            refusals.append(f"{name}: {error[2]}: `{text.splitlines()[places[name]].strip()}`")
    span = next((op.span for op in inlined), None)
    if places and all(_is_inlined(text, line) for line in places.values()):
        line = next(iter(places.values()))
        span = next((op.span for op in inlined if op.span and op.span.line == _source_line(text, line)), span)
        raise CompilationError(f"the assembler refuses inline assembly: {'; '.join(refusals)}", span)
    names, places_searched = ", ".join((*COMGR, *TOOLS)), ", ".join(map(str, _roots()))
    tried = "; ".join(refusals) or f"no {names} in {places_searched}, nor where the system looks"
    hint = f"it needs an assembler that knows {processor.name}. {HINT}. Tried: {tried}"
    raise Unsupported("inline assembly", f"hip:{processor.name}", span, hint=hint)


def _code(text: str) -> tuple[list[str], list[int]]:
    """The lines that are code or constants, as every version of LLVM reads them, and their numbers in the text."""
    lines, numbers = [], []
    until, elsewhere = "", False
    for number, line in enumerate(text.splitlines()):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        if until:
            until = "" if word == until else until
        elif word in _BLOCKS:
            until = _BLOCKS[word]
        else:
            if _SECTION.match(line):
                elsewhere = bool(_OTHERS.match(line))
            if not elsewhere and not _DROPPED.match(line):
                lines.append(line)
                numbers.append(number)
    return lines, numbers


def _kernel_block(text: str) -> list[str]:
    """What a text says of the kernel's resources; how much code is fetched ahead depends on the code."""
    block = text.partition(".amdhsa_kernel")[2].partition(".end_amdhsa_kernel")[0]
    return [line for line in block.splitlines() if "inst_pref_size" not in line]


def _is_inlined(text: str, line: int) -> bool:
    """Whether a line is the author's."""
    before = [x.strip() for x in text.splitlines()[: line + 1]]
    begins = max((i for i, x in enumerate(before) if x == ";;#ASMSTART"), default=-1)
    return begins >= 0 and ";;#ASMEND" not in before[begins:]


def _source_line(text: str, line: int) -> int:
    """The line of the kernel's source that a line of the text is of; 0 where nothing says so."""
    places = (_PLACE.match(x) for x in reversed(text.splitlines()[: line + 1]))
    return next((int(place[1]) for place in places if place), 0)


# -- where there is one -----------------------------------------------------------------------------------------------


def _roots() -> list[Path]:
    """Folders that are looked in: libraries, then programs beside them, then those of the system."""
    libraries = folders()
    programs = [folder.parent / part / "bin" for folder in libraries for part in ("llvm", "lib/llvm", "")]
    return list(dict.fromkeys([*libraries, *programs, *map(Path, os.environ.get("PATH", "").split(os.pathsep))]))


def _assemblers() -> Iterator[tuple[str, Assembler]]:
    """(path, assembler) of each that there is."""
    seen = set()
    for name in [str(p) for folder in folders() for n in COMGR if (p := folder / n).is_file()] or COMGR:
        try:
            comgr = Comgr(name)
        except OSError:
            continue
        yield name, _by_comgr(comgr)
        break
    versions = [f"-{n}" for n in range(NEWEST, OLDEST - 1, -1)]
    search = os.pathsep.join(map(str, _roots()))
    for tool in (f"{t}{version}" for t in TOOLS for version in ("", *versions)):
        path = shutil.which(tool, path=search)
        if path is not None and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            yield path, _by_program(path, "clang" in tool)


def paths() -> Iterator[str]:
    """Where the assemblers of this machine are."""
    return (path for path, _ in _assemblers())


def _by_comgr(comgr: Comgr) -> Assembler:
    def run(text: str, processor: str) -> tuple[str, bytes | None]:
        known = comgr.processors()
        if processor not in known:
            return f"it does not know {processor}", None
        return comgr.assembled(text, processor)

    return run


def _by_program(path: str, is_clang: bool) -> Assembler:
    def run(text: str, processor: str) -> tuple[str, bytes | None]:
        with tempfile.TemporaryDirectory(prefix="weft-") as folder:
            source, target = Path(folder, "kernel.s"), Path(folder, "kernel.o")
            source.write_text(text, encoding="utf-8")
            given = [f"--target={TRIPLE}", "-c"] if is_clang else [f"-triple={TRIPLE}", "-filetype=obj"]
            command = [path, *given, f"-mcpu={processor}", str(source), "-o", str(target)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                return str(error), None
            if done.returncode or "not a recognized processor" in done.stderr:
                unknown = re.search(r"invalid target ID|not a recognized processor", done.stderr)
                return f"it does not know {processor}" if unknown else done.stderr, None
            return done.stderr, target.read_bytes()

    return run
