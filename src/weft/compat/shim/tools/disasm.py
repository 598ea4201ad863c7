"""triton.tools.disasm: the machine code of a kernel, by NVIDIA's `cuobjdump`.

    print(get_sass(kernel.asm["cubin"]))

A line is the control code of an instruction and its text; the code is what it waits for (a bit for each of six
barriers), the barriers that it sets when it has read and written, `Y` if another warp may go on, and the cycles until
the next one: `--:-:0:Y:2`.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile

from weft.runtime import knobs

_FUNCTION = re.compile(r"\s*Function : (\S+)")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(\S[^;]*;)\s*/\* 0x[0-9a-f]{16} \*/")
_SECOND_HALF = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_CONTROL_SHIFT = 41
"""Of the second 64 bits of an instruction, the bits from here on are its control code."""


def path_to_cuobjdump() -> str:
    """Where the program is: `knobs.nvidia.cuobjdump`, or on the path."""
    return knobs.nvidia.cuobjdump.path


def get_sass(cubin_asm: bytes, fun: str | None = None) -> str:
    """The machine code in an object file for a GPU, as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.cubin")
        with open(path, "wb") as file:
            file.write(cubin_asm)
        return extract(path, fun)


def extract(file_path: str, fun: str | None) -> str:
    """The machine code in a file; of the function `fun` alone where one is named."""
    chosen = ["-fun", fun] if fun else []
    told = subprocess.check_output([path_to_cuobjdump(), "-sass", *chosen, file_path]).decode(errors="replace")
    lines: list[str] = []
    text = ""
    for line in told.splitlines():
        if match := _FUNCTION.match(line):
            lines.append(f"Function:{match[1]}")
        elif match := _INSTRUCTION.match(line):
            text = match[1].replace(" ;", ";")
        elif text and (match := _SECOND_HALF.match(line)):
            lines.append(f"{_control(int(match[1], 16) >> _CONTROL_SHIFT)}\t{text}")
            text = ""
    return "".join(f"{line}\n" for line in lines)


def _control(code: int) -> str:
    stall, no_switch, write, read, wait = code & 15, code >> 4 & 1, code >> 5 & 7, code >> 8 & 7, code >> 11 & 63
    barriers = ["-" if barrier == 7 else str(barrier) for barrier in (read, write)]  # 7: none
    return ":".join([f"{wait:02d}" if wait else "--", *barriers, "-" if no_switch else "Y", f"{stall:x}"])
