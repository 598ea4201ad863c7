"""PTX to machine code: by ptxas where there is one, else by nvJitLink; where there is neither, by the driver itself.

    code = assemble(ptx, "sm_90a")       # code.image is a cubin, code.registers what ptxas said
    code = assemble(ptx, "sm_90a", maxnreg=128)

ptxas runs as a child process with a time limit: whatever it does, this process lives. It is looked for where
`WEFT_PTXAS` or `TRITON_PTXAS_PATH` say, on PATH, under CUDA_HOME, and in the wheels of NVIDIA. The driver's compiler
takes half a second to wake up, so it is the last resort: `assemble` then gives the PTX back as the image, and the
driver assembles it when it is loaded. `assembler` says which it is, for those who keep what it made.
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

from weft.base import LaunchError, OutOfResources, PTXASError, Span, Unsupported

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

    @property
    def cubin(self) -> bytes:
        """The machine code; nothing where the driver is to make it, which keeps it to itself."""
        return b"" if self.by == "driver" else self.image


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


def find_tool(name: str = "ptxas") -> str | None:
    """The path of ptxas, nvdisasm or cuobjdump, as the environment is now; None where there is none."""
    configured = os.environ.get(f"WEFT_{name.upper()}") or os.environ.get(f"TRITON_{name.upper()}_PATH")
    return configured or _found(name, *map(os.environ.get, ("PATH", "CUDA_HOME", "CUDA_PATH")))


def assembler() -> str:
    """What tells one assembler from another: path, size and time of change of ptxas; nothing where there is none."""
    tool = find_tool("ptxas")
    try:
        path = tool and shutil.which(tool)
        facts = os.stat(path) if path else None
    except OSError:
        facts = None
    return f"{tool} {facts.st_size} {facts.st_mtime_ns}" if facts else str(tool or "")


@lru_cache(maxsize=64)
def _found(name: str, *places: str | None) -> str | None:
    """The path of a tool that is not named itself; `places` are what it is looked for in."""
    path = shutil.which(name)
    if path:
        return path
    suffix = ".exe" if sys.platform == "win32" else ""
    return next((str(place / (name + suffix)) for place in _places() if (place / (name + suffix)).is_file()), None)


def _run(arguments: list[str], task: str) -> subprocess.CompletedProcess[str]:
    """Run a tool. PTXASError where it cannot be, takes too long, or is killed."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise PTXASError(
            f"{task} did not end within {TIMEOUT_S} seconds",
            "assembling",
            hint="it takes long where a thread holds far more than its registers: smaller tiles, or more warps",
        ) from None
    except OSError as error:
        raise PTXASError(
            f"{task} could not be run: {error}",
            "assembling",
            hint=f"WEFT_{task.upper()}, TRITON_{task.upper()}_PATH, PATH or CUDA_HOME name the one to use",
        ) from error
    if -done.returncode in (2, 9, 15):
        raise PTXASError(
            f"{task} was ended from outside, by signal {-done.returncode}",
            "assembling",
            hint="9 is what a system sends that runs out of memory: smaller tiles, or fewer kernels at a time",
        )
    return done


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


def source_of(ptx: str, log: str) -> Span | None:
    """The place in the kernel's source that a line of PTX comes from, the first that the assembler names; None where
    nothing says it."""
    line = re.search(r"line (\d+)", log)
    above = "\n".join(ptx.splitlines()[: int(line[1])]) if line else ""
    marks = re.findall(r"^\s*\.loc\s+(\d+) (\d+) (\d+)", above, re.MULTILINE)
    files = dict(re.findall(r'^\s*\.file\s+(\d+) "([^"]*)"', ptx, re.MULTILINE))
    if not marks or marks[-1][0] not in files or marks[-1][1] == "0":
        return None
    file, number, column = marks[-1]
    return Span(files[file], int(number), max(0, int(column) - 1))


def _too_few_registers(text: str, ptx: str) -> OutOfResources | None:
    """The error where the assembler says that the registers of a thread are not enough (C7600, C7602)."""
    count = re.search(r"\(C760\d\)[^\n]*?(?:registers \(|count of ')(\d+)", text)
    if count is None:
        return None
    limit, more = int(count[1]), re.search(r"target of (\d+)", text)
    needed = int(more[1]) if more else limit + 1
    place = source_of(ptx, text)
    way = "smaller tiles, or more warps (num_warps) that share them"
    hint = f"maxnreg={needed} or more; or {way}" if ".maxnreg" in ptx else way
    details = [f"  {place.file}:{place.line} needs {needed} registers of a thread"] if place else []
    return OutOfResources(needed, limit, "registers", hint, details=details)


def _refused(log: str, ptx: str, tool: str = "") -> Exception:
    """The error for PTX that the assembler does not take."""
    lines = [line for line in log.splitlines() if "error" in line.lower() or "fatal" in line.lower()]
    text = "\n".join(lines[:5]) or log.strip()[-500:] or "(it says nothing)"
    match = re.search(r"uses too much shared data \((0x[0-9a-f]+) bytes, (0x[0-9a-f]+) max\)", text)
    if match:
        return OutOfResources(int(match[1], 16), int(match[2], 16), "shared memory")
    registers = _too_few_registers(text, ptx)
    if registers is not None:
        return registers
    hint = None
    if "is not defined for option 'gpu-name'" in text or "Unsupported .version" in text:
        hint = f"{tool} is too old for this GPU: install a newer CUDA, or name a newer ptxas by WEFT_PTXAS"
    elif tool and "ptxas" not in log.replace(tool, ""):
        hint = f"is {tool} NVIDIA's ptxas? WEFT_PTXAS, TRITON_PTXAS_PATH, PATH or CUDA_HOME name the one to use"
    return PTXASError(f"ptxas refuses the PTX of this kernel:\n{text}", "assembling", ir=ptx, hint=hint)


def _with_ptxas(tool: str, ptx: str, arch: str, maxnreg: int | None, options: tuple[str, ...]) -> MachineCode:
    limit = [f"--maxrregcount={maxnreg}"] if maxnreg else []
    try:
        with tempfile.TemporaryDirectory(prefix="weft-") as folder:
            source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
            source.write_text(ptx, encoding="utf-8")
            command = [tool, "-v", "-lineinfo", f"--gpu-name={arch}", *limit, *options, str(source), "-o", str(target)]
            done = _run(command, "ptxas")
            log = (done.stdout + done.stderr).replace(str(source), "kernel.ptx")
            if done.returncode == 0 and target.is_file():
                return MachineCode(target.read_bytes(), "ptxas", log=log, **_facts(log))
    except OSError as error:
        raise LaunchError(
            f"ptxas has no place for its files in {tempfile.gettempdir()}: {error}",
            hint="TMPDIR names a folder that can be written to",
        ) from error
    if done.returncode < 0:
        raise PTXASError(f"ptxas ended by signal {-done.returncode}", "assembling", ir=ptx)
    raise _refused(log, ptx, tool)


def _with_nvjitlink(ptx: str, arch: str, maxnreg: int | None) -> MachineCode | None:
    """By NVIDIA's linker as a library; None where it is not installed."""
    try:
        from cuda.bindings import nvjitlink
    except ImportError:
        return None
    options = [f"-arch={arch}", "-lineinfo", "-Xptxas=-v", *([f"-maxrregcount={maxnreg}"] if maxnreg else [])]
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
        message = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, message)
    except nvjitlink.nvJitLinkError as error:
        message = bytearray(nvjitlink.get_error_log_size(handle))
        nvjitlink.get_error_log(handle, message)
        raise _refused(_text(message) or str(error), ptx) from error
    finally:
        nvjitlink.destroy(handle)
    log = _text(message)
    return MachineCode(bytes(image), "nvjitlink", log=log, **_facts(log))


def _text(log: bytearray) -> str:
    return bytes(log).rstrip(b"\0").decode(errors="replace")


def assemble(ptx: str, arch: str, *, maxnreg: int | None = None, options: tuple[str, ...] = ()) -> MachineCode:
    """Machine code for a processor (sm_80, sm_90a); the same bytes for the same PTX.

    Raises PTXASError with a reproducer where the PTX is refused, which is a mistake of the compiler; OutOfResources
    where a thread's registers or the block's shared memory are not enough.
    """
    tool = find_tool("ptxas")
    if tool is not None:
        return _with_ptxas(tool, ptx, arch, maxnreg, options)
    linked = _with_nvjitlink(ptx, arch, maxnreg)
    return linked if linked is not None else MachineCode(ptx.encode(), "driver")


def disassemble(image: bytes) -> str:
    """The machine code as SASS. Unsupported where there is none to look at, or nothing to look at it with."""
    if image[:4] != b"\x7fELF":
        hint = "where ptxas is on PATH (or named by WEFT_PTXAS), Weft has the machine code itself"
        raise Unsupported("SASS of machine code that the driver makes", hint=hint)
    tool = find_tool("nvdisasm")
    if tool is None:
        hint = "nvdisasm is one of the tools of the CUDA toolkit: put it on PATH, or its path into WEFT_NVDISASM"
        raise Unsupported("SASS without nvdisasm, which is not found,", hint=hint)
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(image)
        done = _run([tool, "-c", str(path)], "nvdisasm")
        if done.returncode != 0:
            raise Unsupported(f"SASS of this machine code: {tool} says {done.stderr.strip() or done.returncode}; it")
        return done.stdout
