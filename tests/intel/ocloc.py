"""Instructions of products in real code of Intel's GPUs, counted: what `ocloc` makes of SPIR-V, without a GPU.

    make intel-counts                       a table; or, with PYTHONPATH=tests: python -m intel.ocloc [--device pvc]

Debian's package intel-opencl-icd brings `ocloc`. It is of 2023, and takes DPAS as functions that a module imports
(`imported_products`); 2D blocks of memory it does not know, so that operands are loaded as without them.

    tile            a block's part of the result, and how much is summed in an iteration; warps
    dpas            instructions in the code, and those that an iteration of a warp needs
    spilled         registers for which the compiler found no room, as it says itself (128 of 64 bytes a thread; 256)
    loads           messages to memory, and to shared memory
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import weft
import weft.language as tl

IGA = "libiga64.so"
"""The disassembler's library, by the name that `ocloc` looks for; Debian has it with a number behind."""
WHERE = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")


@weft.jit
def matmul(
    a, b, c, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SUM: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    at_a = a + rows[:, None] * stride_a + depth[None, :]
    at_b = b + depth[:, None] * stride_b + columns[None, :]
    total = tl.zeros((BM, BN), SUM)
    for _ in range(tl.cdiv(K, BK)):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total, input_precision="tf32")
        at_a += BK
        at_b += BK * stride_b
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total, mask=inside)


@dataclass(frozen=True)
class Case:
    """A product: the type of its operands, a block's tile, warps."""

    elem: str
    rows: int
    columns: int
    depth: int
    warps: int

    @property
    def needed(self) -> int:
        """DPAS of one warp in one iteration: 8 rows by 16 columns by 8 words each."""
        bytes = {"fp16": 2, "bf16": 2, "i8": 1, "fp32": 4}[self.elem]
        return self.rows * self.columns * self.depth * bytes // (8 * 16 * 32) // self.warps

    def __str__(self) -> str:
        return f"{self.elem} {self.rows}x{self.columns}x{self.depth}, {self.warps} warps"


CASES = [
    Case(elem, rows, columns, depth * (4 if elem == "i8" else 1 if elem == "fp32" else 2), warps)
    for elem in ("fp16", "bf16", "i8", "fp32")
    for rows, columns, depth, warps in ((32, 32, 16, 4), (64, 64, 16, 8), (128, 128, 16, 32))
]


@dataclass(frozen=True)
class Counts:
    """What the code of a kernel has."""

    dpas: int
    spilled: int
    messages: dict[str, int]


def ocloc() -> str | None:
    """Where the compiler is, if its disassembler has its library."""
    found = shutil.which("ocloc")
    return found if found and _iga() is not None else None


def _iga() -> Path | None:
    return next((file for folder in WHERE for file in sorted(Path(folder).glob(f"{IGA}*"))), None)


def spirv_of(case: Case) -> bytes:
    """The module of a product."""
    names = ("M", "N", "K", "stride_a", "stride_b", "stride_c")
    result = "i32" if case.elem == "i8" else "fp32"
    types = {"a": f"*{case.elem}", "b": f"*{case.elem}", "c": f"*{result}", **dict.fromkeys(names, "i32")}
    values = {"BM": case.rows, "BN": case.columns, "BK": case.depth, "SUM": tl.int32 if result == "i32" else tl.float32}
    facts = {(i,): [["tt.divisibility", 16]] for i in range(len(types))}
    options = {"num_warps": case.warps, "imported_products": True}
    code: bytes = weft.compile(weft.ASTSource(matmul, types, values, facts), "xpu:pvc", options).asm["spirv"]
    return code


def counts_of(code: bytes, device: str = "pvc", registers: int = 128) -> Counts:
    """Compile and disassemble a module, for 128 or 256 registers of a thread.

    RuntimeError, with what the compiler says, where it does not take it.
    """
    with tempfile.TemporaryDirectory() as folder:
        place, iga = Path(folder), _iga()
        assert iga is not None
        (place / IGA).symlink_to(iga)
        (place / "kernel.spv").write_bytes(code)
        many = ("-options", "-cl-intel-256-GRF-per-thread") if registers == 256 else ()
        compiled = _run(place, "compile", "-spirv_input", "-file", "kernel.spv", "-device", device, "-output", "code",
                        "-output_no_suffix", "-out_dir", ".", *many)  # fmt: skip
        _run(place, "disasm", "-file", "code", "-device", device, "-dump", "dump")
        text = "\n".join(file.read_text("latin-1") for file in (place / "dump").glob("*.asm"))
    spilled = re.search(r"spilled around (\d+)", compiled)
    sends = re.findall(r"\b(send\w*\.\w+)", text)
    return Counts(
        len(re.findall(r"\bdpas\.8x8", text)),
        int(spilled[1]) if spilled else 0,
        {kind: sends.count(kind) for kind in sorted(set(sends))},
    )


def _run(place: Path, *words: str) -> str:
    path = os.pathsep.join(p for p in (str(place), os.environ.get("LD_LIBRARY_PATH", "")) if p)
    done = subprocess.run([ocloc() or "ocloc", *words], cwd=place, env={**os.environ, "LD_LIBRARY_PATH": path},
                          capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"ocloc {words[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main() -> None:
    """The table."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--device", default="pvc")
    device = arguments.parse_args().device
    if ocloc() is None:
        raise SystemExit("ocloc, or libiga64.so for it, is not installed: Debian has them in intel-opencl-icd")
    print(f"| product on {device} | dpas.8x8 | needed | spilled of 128 registers | of 256 | messages |")
    print("|---|---:|---:|---:|---:|---|")
    for case in CASES:
        code = spirv_of(case)
        counts, of_256 = counts_of(code, device), counts_of(code, device, 256)
        messages = ", ".join(f"{n} {kind}" for kind, n in counts.messages.items())
        spilled = f"{counts.spilled} | {of_256.spilled}"
        print(f"| {case} | {counts.dpas} | {case.needed} | {spilled} | {messages} |", flush=True)


if __name__ == "__main__":
    main()
