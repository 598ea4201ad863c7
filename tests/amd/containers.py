"""Code objects as a HIP library sees them: read from an address, and small ones written for tests of the launch alone.

    image = written("gfx942", Kernel("add", 256, parameters=(Parameter(0, 8, True), Parameter(8, 4))))
    kernels_of(image)["add"].most_threads                       # 256

Those that are written have a header and the note of metadata, which is all that loading and launching looks at.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

from .code_object import CodeObject

_TARGET = "amdgcn-amd-amdhsa--"


@dataclass(frozen=True)
class Parameter:
    """One explicit parameter: where it lies among the arguments in memory, and its bytes."""

    offset: int
    size: int
    is_pointer: bool = False


@dataclass(frozen=True)
class Kernel:
    """What the metadata says of a kernel."""

    name: str
    most_threads: int
    shared: int = 0
    """Bytes of LDS that the code object fixes."""
    local_bytes: int = 0
    registers: int = 32
    lanes: int = 64
    parameters: tuple[Parameter, ...] = ()


def bytes_at(address: int) -> bytes | None:
    """A whole ELF file in memory, as far as its headers say; None where there is none."""
    if ctypes.string_at(address, 4) != b"\x7fELF":
        return None
    head = ctypes.string_at(address, 64)
    programs, sections = struct.unpack_from("<QQ", head, 32)
    size, number, section_size, section_number = struct.unpack_from("<HHHH", head, 54)
    end = max(64, sections + section_size * section_number, programs + size * number)
    for i in range(number):
        at, in_file = struct.unpack_from("<8xQ16xQ", ctypes.string_at(address + programs + i * size, 56))
        end = max(end, at + in_file)
    return ctypes.string_at(address, end)


def target_of(image: bytes) -> str:
    """The processor that it is for, with what must be on or off; that of the flags must be the same."""
    code = CodeObject(image)
    target = str(code.metadata["amdhsa.target"]).removeprefix(_TARGET)
    assert target.partition(":")[0] == code.processor, (target, code.processor)
    return target


def kernels_of(image: bytes) -> dict[str, Kernel]:
    """The kernels by name. The parameters have to lie apart, in order, each at a multiple of its size."""
    return {made.name: made for made in map(_kernel, CodeObject(image).metadata["amdhsa.kernels"])}


def variables_of(image: bytes) -> list[str]:
    """The names that are exported beside kernels and their descriptors; none of a file without code."""
    code = CodeObject(image)
    names = [k[".name"] for k in code.metadata["amdhsa.kernels"]]
    has_table = any(segment.kind == 2 for segment in code.segments)
    return [s for s in code.symbols if s.removesuffix(".kd") not in names] if has_table else []


def _kernel(facts: dict[str, Any]) -> Kernel:
    explicit = [a for a in facts.get(".args", ()) if not a[".value_kind"].startswith("hidden_")]
    parameters = tuple(Parameter(a[".offset"], a[".size"], a[".value_kind"] == "global_buffer") for a in explicit)
    end = 0
    for parameter in parameters:
        assert parameter.offset >= end and parameter.offset % parameter.size == 0, (facts[".name"], parameters)
        end = parameter.offset + parameter.size
    assert end <= facts[".kernarg_segment_size"], facts[".name"]
    return Kernel(
        facts[".name"],
        facts[".max_flat_workgroup_size"],
        facts[".group_segment_fixed_size"],
        facts[".private_segment_fixed_size"],
        facts[".vgpr_count"],
        facts[".wavefront_size"],
        parameters,
    )


def written(target: str, *kernels: Kernel) -> bytes:
    """A file with the metadata of these kernels, and no code."""
    flags = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx1100": 0x41, "gfx1201": 0x4E}[target.partition(":")[0]]
    described = [
        {
            ".name": k.name, ".symbol": f"{k.name}.kd", ".max_flat_workgroup_size": k.most_threads,
            ".group_segment_fixed_size": k.shared, ".private_segment_fixed_size": k.local_bytes,
            ".vgpr_count": k.registers, ".wavefront_size": k.lanes, ".kernarg_segment_align": 8,
            ".kernarg_segment_size": max((p.offset + p.size for p in k.parameters), default=0),
            ".args": [{".offset": p.offset, ".size": p.size,
                       ".value_kind": "global_buffer" if p.is_pointer else "by_value"} for p in k.parameters],
        }
        for k in kernels
    ]  # fmt: skip
    data = packed({"amdhsa.kernels": described, "amdhsa.target": _TARGET + target, "amdhsa.version": [1, 2]})
    note = struct.pack("<III8s", 7, len(data), 32, b"AMDGPU\0") + data
    head = struct.pack(
        "<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 64, 3, 3, 224, 1, 0, 64, 0, flags, 64, 56, 1, 64, 0, 0
    )
    return head + struct.pack("<IIQQQQQQ", 4, 4, 120, 120, 120, len(note), len(note), 4) + note


def packed(value: Any) -> bytes:
    """A value in MessagePack.

    >>> packed({"a": [1, 300]}).hex()
    'df00000001d90161dd00000002ce00000001ce0000012c'
    """
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value)]) + value.encode()
    if isinstance(value, int):
        return b"\xce" + value.to_bytes(4, "big")
    if isinstance(value, dict):
        return b"\xdf" + len(value).to_bytes(4, "big") + b"".join(packed(k) + packed(v) for k, v in value.items())
    return b"\xdd" + len(value).to_bytes(4, "big") + b"".join(map(packed, value))
