"""PTX to machine code: by ptxas where there is one, else by nvJitLink; where there is neither, by the driver itself.

    code = assemble(ptx, "sm_90a")       # code.image is a cubin, code.registers what ptxas said
    code = assemble(ptx, "sm_90a", maxnreg=128)

ptxas runs as a child process with a time limit: whatever it does, this process lives. It is looked for where
`WEFT_PTXAS` or `TRITON_PTXAS_PATH` say, on PATH, under CUDA_HOME, and in the wheels of NVIDIA. The driver's compiler
takes half a second to wake up, so it is the last resort: `assemble` then gives the PTX back as the image, and the
driver assembles it when it is loaded.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from weft.base import CompilerCrash, OutOfResources

__all__ = ["MachineCode", "assemble", "disassemble", "find_tool"]

TIMEOUT_S = 300
"""The longest a child may take; the largest kernels take some tens of seconds."""


@dataclass(frozen=True)
class MachineCode:
    """A cubin, or PTX where nothing but the driver can assemble it; and what the assembler said of it."""

    image: bytes
    by: str
    """ptxas, nvjitlink or driver."""
    registers: int = 0
    spilled_bytes: int = 0
    """Bytes of spill stores and loads."""
    stack_bytes: int = 0
    shared_bytes: int = 0
    log: str = ""


def _places() -> list[Path]:
    """The folders where tools of a CUDA installation are looked for, after PATH."""
    places = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    for package in ("nvidia", "nvidia.cuda_nvcc", "nvidia.cu13", "nvidia.cu12"):
        try:
            spec = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            continue
        for root in (spec.submodule_search_locations or ()) if spec else ():
            places += [Path(root) / "bin", Path(root) / "cuda_nvcc" / "bin", Path(root) / "cu13" / "bin"]
    return [*places, Path("/usr/local/cuda/bin")]


@lru_cache(maxsize=8)
def find_tool(name: str = "ptxas") -> str | None:
    """The path of ptxas, nvdisasm or cuobjdump; None where there is none."""
    own = os.environ.get(f"WEFT_{name.upper()}") or os.environ.get(f"TRITON_{name.upper()}_PATH")
    if own:
        return own
    found = shutil.which(name)
    if found:
        return found
    suffix = ".exe" if sys.platform == "win32" else ""
    return next((str(place / (name + suffix)) for place in _places() if (place / (name + suffix)).is_file()), None)


def _run(arguments: list[str], what: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise CompilerCrash(f"{what} did not end within {TIMEOUT_S} seconds", "assembling") from None
    except OSError as error:
        raise CompilerCrash(f"{what} could not be run: {error}", "assembling") from error


def _facts(log: str) -> dict[str, int]:
    """Registers, spills and shared memory, from what `ptxas -v` says of the kernel."""

    def number(pattern: str) -> int:
        return max((int(n) for n in re.findall(pattern, log)), default=0)

    return {
        "registers": number(r"Used (\d+) registers"),
        "spilled_bytes": number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        "stack_bytes": number(r"(\d+) bytes stack frame"),
        "shared_bytes": number(r"(\d+) bytes smem"),
    }


def _refused(log: str, ptx: str) -> Exception:
    """The error for PTX that the assembler does not take."""
    lines = [line for line in log.splitlines() if "error" in line.lower() or "fatal" in line.lower()]
    text = "\n".join(lines[:5]) or log.strip()[-500:]
    if "uses too much shared data" in text:
        match = re.search(r"\((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)", text)
        if match:
            return OutOfResources(int(match[1], 16), int(match[2], 16), "shared memory")
    return CompilerCrash(f"ptxas refuses the PTX of this kernel:\n{text}", "assembling", ir=ptx)


def _with_ptxas(tool: str, ptx: str, arch: str, maxnreg: int | None, options: tuple[str, ...]) -> MachineCode:
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx, encoding="utf-8")
        limit = [f"--maxrregcount={maxnreg}"] if maxnreg else []
        command = [tool, "-v", "-lineinfo", f"--gpu-name={arch}", *limit, *options, str(source), "-o", str(target)]
        done = _run(command, "ptxas")
        log = done.stdout + done.stderr
        if done.returncode != 0 or not target.is_file():
            if done.returncode < 0:
                raise CompilerCrash(f"ptxas ended by signal {-done.returncode}", "assembling", ir=ptx)
            raise _refused(log.replace(str(source), "kernel.ptx"), ptx)
        return MachineCode(target.read_bytes(), "ptxas", log=log, **_facts(log))


def _with_nvjitlink(ptx: str, arch: str, maxnreg: int | None) -> MachineCode | None:
    """By NVIDIA's linker as a library; None where it is not installed."""
    try:
        from cuda.bindings import nvjitlink
    except ImportError:
        return None
    options = [f"-arch={arch}", "-lineinfo", *([f"-maxrregcount={maxnreg}"] if maxnreg else [])]
    try:
        handle = nvjitlink.create(len(options), options)
    except Exception:  # the library itself is missing: cuda-bindings only has its interface
        return None
    try:
        text = ptx.encode()
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), "kernel.ptx")
        nvjitlink.complete(handle)
        image = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, image)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, log)
        raise _refused(log.decode(errors="replace") or str(error), ptx) from error
    finally:
        nvjitlink.destroy(handle)
    return MachineCode(bytes(image), "nvjitlink")


def assemble(ptx: str, arch: str, *, maxnreg: int | None = None, options: tuple[str, ...] = ()) -> MachineCode:
    """Machine code for a processor (sm_80, sm_90a); the same bytes for the same PTX.

    Raises CompilerCrash with a reproducer where the PTX is refused: that is a mistake of the compiler.
    """
    tool = find_tool("ptxas")
    if tool is not None:
        return _with_ptxas(tool, ptx, arch, maxnreg, options)
    linked = _with_nvjitlink(ptx, arch, maxnreg)
    return linked if linked is not None else MachineCode(ptx.encode(), "driver")


def disassemble(image: bytes) -> str | None:
    """The machine code as SASS; None where no disassembler is found."""
    tool = find_tool("nvdisasm")
    if tool is None or image[:4] != b"\x7fELF":
        return None
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(image)
        done = _run([tool, "-c", str(path)], "nvdisasm")
        return done.stdout if done.returncode == 0 else None
