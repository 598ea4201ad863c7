"""Meanings of instructions that tinygrad's emulator lacks or has wrong, from AMD's published descriptions.

    install(module, "gfx942", own)        # from now on these are executed by the functions below; `own` collects names

What is executed by a function of this file is no evidence of the emulator's: reports say so (`formula only`). Found in
the emulator of August 2026:

    32x32 MFMA put rows 16 to a half of the wave; int8, xf32 and f64 MFMA do not build; fp8 of gfx942 is taken for OCP;
    opcodes of gfx90a are read as gfx950's; WMMA take fp8 for f16; scaled MFMA have one
    scale for a sum, and no fp4; buffer accesses of 8, 16 and 96 bits move words,
    buffer atomics are loads; buffer accesses of RDNA are not decoded; ds_swizzle, invalidations of caches, DPP by
    row_share and row_xmask do not build; loads of 16 bits into the upper half write the lower; permlane swaps and
    global loads into local memory are absent; v_permlane16 takes no literals; permutations that write the register
    that they read go by what was written before; lanes that take no part read and write where their address registers
    happen to point; atomics return nothing but on gfx11; MFMA and accesses of local memory take accumulators for
    other registers.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
EXEC, PC, LITERAL = 126, 256, 255
M0 = {"cdna": 124, "rdna3": 125, "rdna4": 125}
NULL = {"cdna": None, "rdna3": 124, "rdna4": 124}
"""Where the emulator's scalar registers have what is special."""
ALL_BUFFERS = list(range(6))
"""The emulator's numbers of what an instruction may want: scalars, vectors, memory, local, scratch, accumulators."""
GFX90A = {0x54: "V_MFMA_I32_32X32X8_I8", 0x55: "V_MFMA_I32_16X16X16_I8",
          0x66: "V_MFMA_F32_32X32X8_BF16", 0x67: "V_MFMA_F32_16X16X16_BF16"}  # fmt: skip
"""MFMA of gfx90a whose opcodes mean something else on gfx950."""
GFX90A_CACHES = {0x28: "BUFFER_WBL2", 0x29: "BUFFER_INVL2", 0x3E: "BUFFER_WBINVL1", 0x3F: "BUFFER_WBINVL1_VOL"}


class Wave:
    """The registers and local memory of a wave, as the emulator's buffers."""

    def __init__(self, pointers: tuple[int, ...], architecture: str) -> None:
        lanes = 64 if architecture == "cdna" else 32

        def words(address: int, count: int) -> Array:
            return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address))

        self.architecture, self.lanes = architecture, lanes
        self.s = words(pointers[0], 260)
        self.v = words(pointers[1], 256 * lanes).reshape(256, lanes)
        self.a = words(pointers[5], 256 * lanes).reshape(256, lanes)
        self.local_address = pointers[3]

    @property
    def active(self) -> list[int]:
        """The lanes that take part."""
        mask = int(self.s[EXEC]) | int(self.s[EXEC + 1]) << 32
        return [lane for lane in range(self.lanes) if mask >> lane & 1]

    def source(self, code: int, count: int, accumulators: bool = False) -> Array:
        """`count` registers [register, lane] of an operand: vector registers from 256 on."""
        if code >= 256:
            return (self.a if accumulators else self.v)[code - 256 : code - 256 + count].copy()
        return np.broadcast_to(self.s[code], (count, self.lanes)).copy()  # constants are never more than a word

    def skip(self, size: int) -> None:
        """Go on behind an instruction of so many bytes."""
        counter = (int(self.s[PC]) | int(self.s[PC + 1]) << 32) + size
        self.s[PC], self.s[PC + 1] = counter & 0xFFFFFFFF, counter >> 32

    def scalar(self, code: int) -> int:
        """A scalar operand."""
        return 0 if code == NULL[self.architecture] else int(self.s[code])


def bits(word: int, high: int, low: int) -> int:
    """A field of an encoding."""
    return word >> low & (1 << high - low + 1) - 1


# Products ---------------------------------------------------------------------------------------------------------

MFMA = re.compile(r"V_MFMA_\w+?_(\d+)X(\d+)X(\d+)_(?:(?:(BF8|FP8)_)?(F16|BF16|F32|XF32|F64|I8|BF8|FP8))$")
FP8 = {"gfx942": {"FP8": ml_dtypes.float8_e4m3fnuz, "BF8": ml_dtypes.float8_e5m2fnuz}}
OCP = {"FP8": ml_dtypes.float8_e4m3fn, "BF8": ml_dtypes.float8_e5m2}
PER_WORD = {"F16": 2, "BF16": 2, "F32": 1, "XF32": 1, "I8": 4, "FP8": 4, "BF8": 4}


def elements(registers: Array, kind: str, processor: str) -> Array:
    """[register, lane] to [lane, element], as f64 or integers."""
    raw = np.ascontiguousarray(registers.T)
    if kind == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind in OCP:
        return raw.view(FP8.get(processor, OCP)[kind]).astype(np.float64)
    known = {"F16": np.float16, "F32": np.float32, "XF32": np.float32, "F64": np.float64, "I8": np.int8}[kind]
    return raw.view(known).astype(np.int64 if kind == "I8" else np.float64)


def mfma(wave: Wave, word: int, name: str, processor: str) -> None:
    """D = A B + C: lane l has row l mod M of A (column of B), elements of k from (l div M) * width on."""
    match = MFMA.match(name)
    assert match is not None, name
    m, _, k = (int(match[i]) for i in (1, 2, 3))
    left, right = match[4] or match[5], match[5]
    width, groups = k * m // 64, 64 // m
    f64 = right == "F64"
    count = 2 * width if f64 else max(1, width // PER_WORD[right])
    a_codes, b_codes = bits(word, 60, 59) & 1, bits(word, 60, 59) >> 1
    a = elements(wave.source(bits(word, 40, 32), count, bool(a_codes)), left, processor)
    b = elements(wave.source(bits(word, 49, 41), count, bool(b_codes)), right, processor)
    rows = np.concatenate([a[group * m : group * m + m] for group in range(groups)], axis=1)
    columns = np.concatenate([b[group * m : group * m + m] for group in range(groups)], axis=1)
    product = rows @ columns.T
    _accumulate(wave, word, product, m, "F64" if f64 else "I32" if right == "I8" else "F32")


def _accumulate(wave: Wave, word: int, product: Array, m: int, kind: str) -> None:
    """D = C + the product, by the fields of an MFMA and the places of its result."""
    f64 = kind == "F64"
    per_lane, in_accumulators, groups = m * m // 64, bool(bits(word, 15, 15)), 64 // m
    c = wave.source(bits(word, 58, 50), per_lane * (2 if f64 else 1), in_accumulators)
    total = np.ascontiguousarray(c.T).view({"F64": np.float64, "I32": np.int32, "F32": np.float32}[kind]).copy()
    for lane in range(64):
        for r in range(per_lane):
            row = 4 * r + lane // 16 if f64 else (r // 4) * 4 * groups + 4 * (lane // m) + r % 4
            total[lane, r] += product[row, lane % m].astype(total.dtype)
    out = np.ascontiguousarray(total.view(np.uint32).T)
    (wave.a if in_accumulators else wave.v)[bits(word, 7, 0) : bits(word, 7, 0) + len(out)] = out


NARROW = {2: (6, ml_dtypes.float6_e2m3fn), 3: (6, ml_dtypes.float6_e3m2fn), 4: (4, ml_dtypes.float4_e2m1fn)}
"""Bits and type of elements of less than 8 bits, by the numbers of cbsz and blgp."""


def mfma_f8f6f4(wave: Wave, word: int, name: str, processor: str) -> None:
    """gfx950: a lane has 32 elements along k of the kinds of cbsz and blgp: of 4 and 6 bits one after the other, of 8
    bits 16 and, half of k further, 16. Scales, 2^(byte - 127), are of 32 along k: a lane has that of block lane div M.
    """
    scaled = "SCALE" in name
    main, m = word >> 64 if scaled else word, 32 if "32X32" in name else 16
    lane, element = np.indices((64, 32))
    matrices = []
    for i, (kind, field) in enumerate(((bits(main, 10, 8), 40), (bits(main, 63, 61), 49))):
        registers = wave.source(bits(main, field, field - 8), NARROW[kind][0] if kind in NARROW else 8)
        if kind in NARROW:
            size, type = NARROW[kind]
            raw = np.unpackbits(np.ascontiguousarray(registers.T).view(np.uint8), axis=1, bitorder="little")
            codes = raw.reshape(64, 32, size) @ (1 << np.arange(size))
            values = codes.astype(np.uint8).view(type).astype(np.float64)
            along = 32 * (lane // m) + element
        else:
            values = elements(registers, ("FP8", "BF8")[kind], processor)
            along = element // 16 * (1024 // m) + 16 * (lane // m) + element % 16
        matrix = np.zeros((m, 2048 // m))
        matrix[lane % m, along] = values
        if scaled:
            byte = bits(word, 11 + i, 11 + i) | bits(word, 59 + i, 59 + i) << 1
            scale = wave.source(bits(word, field, field - 8), 1)[0] >> 8 * byte & 255
            factors = 2.0 ** (scale.astype(np.float64) - 127).reshape(64 // m, m)
            matrix *= np.repeat(factors.T, 32, axis=1)
        matrices.append(matrix)
    _accumulate(wave, main, matrices[0] @ matrices[1].T, m, "F32")


def mfma_is_wrong(name: str, processor: str) -> bool:
    """Whether the emulator has this MFMA not or not right."""
    match = MFMA.match(name)
    if match is None:
        return False
    kind = match[5]
    return (
        match[1] == "32"
        or kind in ("I8", "XF32", "F64")
        or (kind in OCP and processor == "gfx942")
        or (kind == "BF16" and processor == "gfx90a")
    )


def wmma_of_fp8(wave: Wave, word: int, name: str, processor: str) -> None:
    """gfx12: lane l has row l mod 16 of A (column of B), k from 8 (l div 16) on; of D likewise."""
    kinds = name.removesuffix("_w32").split("_")[-2:]
    a, b = (
        elements(wave.source(bits(word, high, high - 8), 2), kind, processor)
        for high, kind in zip((40, 49), kinds, strict=True)
    )
    rows, columns = (np.concatenate([x[:16], x[16:]], axis=1) for x in (a, b))
    product = rows @ columns.T
    total = np.ascontiguousarray(wave.source(bits(word, 58, 50), 8).T).view(np.float32)
    for lane in range(32):
        for r in range(8):
            total[lane, r] += np.float32(product[8 * (lane // 16) + r, lane % 16])
    wave.v[bits(word, 7, 0) : bits(word, 7, 0) + 8] = np.ascontiguousarray(total.view(np.uint32).T)


# Buffers ----------------------------------------------------------------------------------------------------------

SIZES = {"UBYTE": 1, "SBYTE": -1, "USHORT": 2, "SSHORT": -2, "SHORT": 2, "BYTE": 1, "U8": 1, "I8": -1, "U16": 2,
         "I16": -2, "B8": 1, "B16": 2, "DWORD": 4, "DWORDX2": 8, "DWORDX3": 12, "DWORDX4": 16, "B32": 4, "B64": 8,
         "B96": 12, "B128": 16}  # fmt: skip
"""Bytes of an access; negative where they are extended with the sign."""
ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "ADD": lambda old, x: old + x, "SUB": lambda old, x: old - x, "SWAP": lambda old, x: x,
    "SMIN": min, "SMAX": max, "MIN": min, "MAX": max, "UMIN": min, "UMAX": max,
    "AND": lambda old, x: old & x, "OR": lambda old, x: old | x, "XOR": lambda old, x: old ^ x,
}  # fmt: skip


class Buffer:
    """The fields of a buffer instruction, whose places differ from generation to generation."""

    def __init__(self, wave: Wave, word: int) -> None:
        if wave.architecture == "rdna4":
            self.data, self.address, resource = bits(word, 39, 32), bits(word, 71, 64), bits(word, 49, 41)
            self.offset, scalar, self.offen, self.idxen = (
                bits(word, 94, 72), bits(word, 6, 0), bits(word, 62, 62), bits(word, 63, 63),
            )  # fmt: skip
            self.returns, self.to_local, self.accumulators = bits(word, 52, 52), 0, 0
        else:
            self.data, self.address, resource = bits(word, 47, 40), bits(word, 39, 32), 4 * bits(word, 52, 48)
            self.offset, scalar, self.returns = bits(word, 11, 0), bits(word, 63, 56), bits(word, 14, 14)
            cdna = wave.architecture == "cdna"
            self.offen, self.idxen = (
                bits(word, 12 if cdna else 54, 12 if cdna else 54),
                bits(word, 13 if cdna else 55, 13 if cdna else 55),
            )
            self.to_local = bits(word, 16, 16) if cdna else 0
            self.accumulators = bits(word, 55, 55) if cdna else 0
        words = [int(w) for w in wave.s[resource : resource + 4]]
        self.base = (words[0] | words[1] << 32) & 0xFFFFFFFFFFFF
        self.records, self.stride = words[2], words[1] >> 16 & 0x3FFF
        self.scalar = wave.scalar(scalar)
        assert not self.idxen and not self.stride, "buffers with an index are not looked at here"

    def place(self, wave: Wave, lane: int) -> int:
        """The offset that is compared with the size."""
        return self.offset + (int(wave.v[self.address, lane]) if self.offen else 0)


def buffer(wave: Wave, word: int, name: str, processor: str) -> None:
    """A load, store or atomic through a descriptor: what lies outside of it is 0 and is not written."""
    fields = Buffer(wave, word)
    file = wave.a if fields.accumulators else wave.v
    if "ATOMIC" in name:
        _buffer_atomic(wave, fields, file, name)
        return
    high = "D16_HI" in name
    kind = re.sub(r"_?D16|_?HI|BUFFER_(LOAD|STORE)_", "", name).strip("_")
    size = abs(SIZES[kind])
    for lane in wave.active:
        at = fields.place(wave, lane)
        address = fields.base + fields.scalar + at
        if "STORE" in name:
            raw = np.ascontiguousarray(file[fields.data : fields.data + (size + 3) // 4, lane]).tobytes()
            if high:
                raw = raw[2:]
            for part in range(0, size, 4):
                piece = raw[part : min(part + 4, size)]
                if at + part + len(piece) <= fields.records:
                    ctypes.memmove(address + part, piece, len(piece))
            continue
        raw = b"".join(
            ctypes.string_at(address + part, min(4, size - part)) if at + part + min(4, size - part) <= fields.records
            else bytes(min(4, size - part)) for part in range(0, size, 4)
        )  # fmt: skip
        value = int.from_bytes(raw, "little", signed=SIZES[kind] < 0)
        if fields.to_local:
            base = int(wave.s[M0[wave.architecture]]) & 0xFFFFFF
            ctypes.memmove(wave.local_address + base + fields.offset + size * lane, raw, size)
        elif "D16" in name:
            old = int(file[fields.data, lane])
            file[fields.data, lane] = (
                old & 0xFFFF | (value & 0xFFFF) << 16 if high else old & 0xFFFF0000 | value & 0xFFFF
            )
        else:
            for i in range((size + 3) // 4):
                file[fields.data + i, lane] = value >> 32 * i & 0xFFFFFFFF


def _buffer_atomic(wave: Wave, fields: Buffer, file: Array, name: str) -> None:
    kind = re.sub(r"BUFFER_ATOMIC_", "", name)
    size = 8 if re.search(r"X2|64", kind) else 4
    words = size // 4
    number: Any = {"F32": np.float32, "F64": np.float64}.get(kind.rsplit("_", 1)[-1])
    for lane in wave.active:
        at = fields.place(wave, lane)
        if at + size > fields.records:
            continue
        address = fields.base + fields.scalar + at
        given = np.ascontiguousarray(file[fields.data : fields.data + 2 * words, lane]).tobytes()
        old, new = ctypes.string_at(address, size), given[:size]
        operation = kind.split("_")[0]
        if operation == "CMPSWAP":
            result = given[:size] if old == given[size : 2 * size] else old
        elif operation == "PK":
            half: Any = np.float16 if kind.endswith("_F16") else ml_dtypes.bfloat16
            result = (np.frombuffer(old, half) + np.frombuffer(new, half)).astype(half).tobytes()
        elif number is not None:
            result = number(ATOMICS[operation](np.frombuffer(old, number)[0], np.frombuffer(new, number)[0])).tobytes()
        else:
            signed = operation in ("SMIN", "SMAX") or kind.endswith(("_I32", "_I64"))
            x, y = (int.from_bytes(raw, "little", signed=signed) for raw in (old, new))
            result = (ATOMICS[operation](x, y) & (1 << 8 * size) - 1).to_bytes(size, "little")
        ctypes.memmove(address, result, size)
        if fields.returns:
            file[fields.data : fields.data + words, lane] = np.frombuffer(old, np.uint32)


# Exchanges and local memory ---------------------------------------------------------------------------------------


def swizzle(wave: Wave, word: int, name: str, processor: str) -> None:
    """ds_swizzle: a lane of the same 32 by and, or, xor of its number; or by two bits each within four lanes."""
    pattern = bits(word, 15, 0)
    data, out = bits(word, 39, 32), bits(word, 63, 56)
    values = wave.v[data].copy()
    for lane in wave.active:
        if pattern >> 15 & 1:
            other = lane & ~3 | pattern >> 2 * (lane & 3) & 3
        else:
            inner = lane & 31
            other = lane & ~31 | ((inner & pattern & 31) | pattern >> 5 & 31) ^ (pattern >> 10 & 31)
        wave.v[out, lane] = values[other]


def swap(wave: Wave, word: int, name: str, processor: str) -> None:
    """v_permlane16_swap, v_permlane32_swap: odd rows of the first change places with even rows of the second."""
    first, second = (
        (bits(word, 24, 17), bits(word, 7, 0)) if word >> 25 & 0x7F == 0x3F else (bits(word, 7, 0), bits(word, 39, 32))
    )
    rows = 16 if "16" in name else 32
    x, y = wave.v[first].reshape(-1, 2, rows).copy(), wave.v[second].reshape(-1, 2, rows).copy()
    x[:, 1], y[:, 0] = y[:, 0].copy(), x[:, 1].copy()
    wave.v[first], wave.v[second] = x.reshape(-1), y.reshape(-1)


def permlane(wave: Wave, word: int, name: str, processor: str) -> None:
    """v_permlane16, v_permlanex16: any lane of the own row, or of the other of two, by half bytes of two scalars."""
    codes = bits(word, 49, 41), bits(word, 58, 50)
    low, high = (bits(word, 95, 64) if code == LITERAL else int(wave.s[code]) for code in codes)
    values, active = wave.v[bits(word, 40, 32) - 256].copy(), wave.active
    for lane in active:
        row = lane & ~15 ^ (16 if "X16" in name else 0)
        other = row | (high << 32 | low) >> 4 * (lane & 15) & 15
        assert other in active or bits(word, 12, 11), "a lane reads one that takes no part"
        wave.v[bits(word, 7, 0), lane] = values[other] if other in active or bits(word, 11, 11) else 0


def upper_half(wave: Wave, word: int, name: str, processor: str) -> None:
    """ds_read_u16_d16_hi and its like: the upper half of a register; the lower stays."""
    size = 1 if "8" in name.split("D16")[0] else 2
    for lane in wave.active:
        address = int(wave.v[bits(word, 39, 32), lane]) + bits(word, 15, 0)
        raw = ctypes.string_at(wave.local_address + address, size)
        value = int.from_bytes(raw, "little", signed="_I8" in name) & 0xFFFF
        out = bits(word, 63, 56)
        wave.v[out, lane] = int(wave.v[out, lane]) & 0xFFFF | value << 16


def global_to_local(wave: Wave, word: int, name: str, processor: str) -> None:
    """global_load_lds_dword: lane by lane behind each other, from the base in M0 on."""
    size = SIZES[name.rsplit("_", 1)[-1]]
    scalar, offset = bits(word, 54, 48), bits(word, 12, 0)
    offset -= (offset & 0x1000) << 1
    base = int(wave.s[M0[wave.architecture]]) & 0xFFFFFF
    for lane in wave.active:
        register = bits(word, 39, 32)
        if scalar == 0x7F:
            address = int(wave.v[register, lane]) | int(wave.v[register + 1, lane]) << 32
        else:
            address = (int(wave.s[scalar]) | int(wave.s[scalar + 1]) << 32) + int(wave.v[register, lane])
        ctypes.memmove(wave.local_address + base + size * lane, ctypes.string_at(address + offset, size), size)


def place_of_code(wave: Wave, word: int, name: str, processor: str) -> None:
    """s_getpc_b64: where the next instruction is."""
    place, target = (int(wave.s[PC]) | int(wave.s[PC + 1]) << 32) + 4, bits(word, 22, 16)
    wave.s[target], wave.s[target + 1] = place & 0xFFFFFFFF, place >> 32


def nothing(wave: Wave, word: int, name: str, processor: str) -> None:
    """What changes only the state of caches."""


OWN: tuple[tuple[str, Callable[[Wave, int, str, str], None]], ...] = (
    (r"BUFFER_(INV|INVL2|WBL2|WBINV\w*|GL[01]_INV)$|GLOBAL_(INV|WB|WBINV)$", nothing),
    (r"BUFFER_(LOAD|STORE|ATOMIC)_(?!FORMAT)", buffer),
    (r"DS_SWIZZLE_B32$", swizzle),
    (r"DS_(READ|LOAD)_[UI](8|16)_D16_HI$", upper_half),
    (r"V_PERMLANEX?16_B32(_E64)?$", permlane),
    (r"V_WMMA_F32_16X16X16_(FP8|BF8)_(FP8|BF8)", wmma_of_fp8),
    (r"V_PERMLANE(16|32)_SWAP_B32", swap),
    (r"GLOBAL_LOAD_LDS_\w+$", global_to_local),
    (r"S_GETPC_B64$", place_of_code),
)
"""By a beginning of the instruction's name."""


def is_dpp_in_place(word: int) -> bool:
    """Whether an instruction of one or two operands reads other lanes of the register that it writes (DPP)."""
    return not word >> 31 & 1 and bits(word, 8, 0) == 0xFA and bits(word, 24, 17) == bits(word, 39, 32)


def _around(found: Any, architecture: str, do: Callable[[Wave, Callable[[], None]], None]) -> Any:
    """What the emulator made of an instruction, called by `do`."""
    (program, runtime), instruction = found

    def execute(*pointers: Any) -> None:
        chosen = [pointers[kind] for kind in program.arg.globals]
        do(Wave(tuple(p.value for p in pointers), architecture), lambda: runtime.fxn(*chosen))

    return (SimpleNamespace(arg=SimpleNamespace(globals=ALL_BUFFERS)), SimpleNamespace(fxn=execute)), instruction


def _rewritten(place: int, word: int, fields: Sequence[tuple[int, int, int]]) -> Callable[[Callable[[], None]], None]:
    """A call with other bits in the instruction, whose fields are read from memory whenever it is executed."""
    other = word
    for high, low, value in fields:
        other = other & ~((1 << high - low + 1) - 1 << low) | value << low
    texts = [w.to_bytes(16, "little")[:8] for w in (other, word)]

    def call(run: Callable[[], None]) -> None:
        ctypes.memmove(place, texts[0], 8)
        run()
        ctypes.memmove(place, texts[1], 8)

    return call


def _apart(found: Any, place: int, word: int, architecture: str) -> Any:
    """DPP in place: the emulator goes lane by lane, so that a lane reads what one before it wrote. Write elsewhere."""
    out, other = bits(word, 24, 17), 255 if bits(word, 16, 9) != 255 else 254
    call = _rewritten(place, word, [(24, 17, other)])

    def do(wave: Wave, run: Callable[[], None]) -> None:
        kept = wave.v[other].copy()
        wave.v[other] = wave.v[out]
        call(run)
        wave.v[out], wave.v[other] = wave.v[other].copy(), kept

    return _around(found, architecture, do)


def _other_source(found: Any, place: int, word: int, high: int, low: int, architecture: str) -> Any:
    """A permutation in place: read a copy of the register that is written, for the same reason."""
    source = bits(word, high, low)
    others = {bits(word, 7, 0), bits(word, 63, 56), bits(word, 39, 32), source & 0xFF}
    other = next(r for r in range(255, 240, -1) if r not in others)
    call = _rewritten(place, word, [(high, low, source & 0x100 | other)])

    def do(wave: Wave, run: Callable[[], None]) -> None:
        kept = wave.v[other].copy()
        wave.v[other] = wave.v[source & 0xFF]
        call(run)
        wave.v[other] = kept

    return _around(found, architecture, do)


def rows_of_dpp(control: int, lanes: int) -> Array | None:
    """The lane that each lane reads by a control that the emulator does not know: row_share and row_xmask."""
    lane = np.arange(lanes)
    if control >> 4 == 0x15:
        return lane & ~15 | control & 15
    return lane ^ control & 15 if control >> 4 == 0x16 else None


def _through_rows(original: Any, place: int, word: int, architecture: str) -> Any:
    """DPP by such a control: the instruction without DPP, of a register that has what the lanes read."""
    assert bits(word, 63, 56) == 0xFF and not bits(word, 55, 52), "part of the rows, or a sign, is not looked at here"
    other = next(r for r in (255, 254, 253) if r not in (bits(word, 24, 17), bits(word, 16, 9)))
    call = _rewritten(place, word, [(8, 0, 256 + other)])
    found: list[Any] = []
    call(lambda: found.append(original(place, architecture)))

    def do(wave: Wave, run: Callable[[], None]) -> None:
        source = rows_of_dpp(bits(word, 48, 40), wave.lanes)
        assert source is not None
        active = set(wave.active)
        kept, values = wave.v[other].copy(), wave.v[bits(word, 39, 32)][source]
        assert bits(word, 51, 51) or active >= set(source[list(active)].tolist()), "a lane reads one that takes no part"
        wave.v[other] = np.where(np.isin(source, list(active)), values, 0)
        call(run)
        wave.v[other] = kept
        wave.skip(4)  # of the instruction the emulator saw the first half

    return _around(found[0], architecture, do)


def _from_accumulators(original: Any, place: int, word: int) -> Any:
    """Accesses of local memory by accumulators, whose bit the emulator does not look at: through other registers."""
    base = 240 if bits(word, 39, 32) < 240 else 224
    data, more, out = bits(word, 47, 40), bits(word, 55, 48), bits(word, 63, 56)
    call = _rewritten(place, word, [(25, 25, 0), (47, 40, base), (55, 48, base + 4), (63, 56, base + 8)])
    found: list[Any] = []
    call(lambda: found.append(original(place, "cdna")))

    def do(wave: Wave, run: Callable[[], None]) -> None:
        kept = wave.v[base : base + 16].copy()
        for at, register in ((0, data), (4, more), (8, out)):
            part = wave.a[register : register + 4]
            wave.v[base + at : base + at + len(part)] = part
        call(run)
        wave.a[out : out + 4] = wave.v[base + 8 : base + 8 + len(wave.a[out : out + 4])]
        wave.v[base : base + 16] = kept

    return _around(found[0], "cdna", do)


def _by_active_lanes(found: Any, address: int, architecture: str) -> Any:
    """The emulator reads at the addresses of lanes that take no part, whatever they are: give them one that does."""
    size = found[1].size()

    def do(wave: Wave, run: Callable[[], None]) -> None:
        active = wave.active
        if not active:
            wave.skip(size)
            return
        idle = [lane for lane in range(wave.lanes) if lane not in active]
        kept = wave.v[address : address + 2, idle]
        wave.v[address : address + 2, idle] = wave.v[address : address + 2, active[:1]]
        run()
        wave.v[address : address + 2, idle] = kept

    return _around(found, architecture, do)


def install(module: ModuleType, processor: Callable[[], str], own: set[str]) -> None:
    """Make the emulator execute these by the functions here; `processor()` says what the code is for."""
    for kind in (module.irc.GLOBAL, module.irc.FLAT):  # it asks for `glc` whether an atomic returns what was there
        kind.glc = property(lambda instruction: instruction.sc0)
    for kind in (module.ir4.VGLOBAL, module.ir4.VFLAT):
        kind.glc = property(lambda instruction: instruction.th & 1)
    original = module._decode_at
    waves: dict[tuple[int, ...], Wave] = {}

    def decoded(data: bytes, architecture: str) -> Any:
        if data[3] >> 2 == 0b110001 and architecture == "rdna4":
            return module.ir4.VBUFFER.from_bytes(data)
        if data[3] >> 2 == 0b111000 and architecture == "rdna3":
            return module.ir3.MUBUF.from_bytes(data)
        return module.decode_inst(data, architecture)

    def name_of(word: int, data: bytes, architecture: str) -> tuple[str, Any]:
        if processor() == "gfx90a" and bits(word, 31, 23) == 0b110100111 and bits(word, 22, 16) in GFX90A:
            return GFX90A[bits(word, 22, 16)], SimpleNamespace(size=lambda: 8)
        if processor() == "gfx90a" and data[3] >> 2 == 0b111000 and bits(word, 24, 18) in GFX90A_CACHES:
            return GFX90A_CACHES[bits(word, 24, 18)], SimpleNamespace(size=lambda: 8)
        instruction = decoded(data, architecture)
        return getattr(getattr(instruction, "op", None), "name", ""), instruction

    def decode_at(place: int, architecture: str) -> Any:
        data = ctypes.string_at(place, 16)
        word = int.from_bytes(data, "little")
        name, instruction = name_of(word, data, architecture)
        run = next((function for pattern, function in OWN if re.match(pattern, name)), None)
        if "F8F6F4" in name:
            main = word >> 64 if "SCALE" in name else word
            plain = "16X16" in name and "SCALE" not in name and max(bits(main, 10, 8), bits(main, 63, 61)) < 2
            run = None if plain else mfma_f8f6f4
        elif mfma_is_wrong(name, processor()) or (MFMA.match(name) and bits(word, 60, 59)):  # A or B an accumulator
            run = mfma
        if run is None:
            kind = type(instruction).__name__
            is_dpp = not word >> 31 & 1 and bits(word, 8, 0) == 0xFA
            if is_dpp and rows_of_dpp(bits(word, 48, 40), 16) is not None:
                own.add("DPP by row_share, row_xmask")
                return _through_rows(original, place, word, architecture)
            if kind == "DS" and architecture == "cdna" and word >> 25 & 1:
                found = _from_accumulators(original, place, word)
            else:
                found = original(place, architecture)
            if kind == "DS" and "PERMUTE" in name and bits(word, 47, 40) == bits(word, 63, 56):
                return _other_source(found, place, word, 47, 40, architecture)
            if is_dpp_in_place(word):
                return _apart(found, place, word, architecture)
            if kind in ("DS", "FLAT", "GLOBAL", "VFLAT", "VGLOBAL") and "PERMUTE" not in name:
                return _by_active_lanes(
                    found, bits(word, 71, 64) if kind[0] == "V" else bits(word, 39, 32), architecture
                )
            return found
        if run is not nothing:
            own.add(name.removesuffix("_E32"))
        size = instruction.size()
        if run is permlane:
            size = 12 if LITERAL in (bits(word, 49, 41), bits(word, 58, 50)) else 8

        def execute(*pointers: Any) -> None:
            key = tuple(p.value for p in pointers)
            wave = waves.setdefault(key, Wave(key, architecture))
            run(wave, word, name, processor())
            wave.skip(size)

        return (SimpleNamespace(arg=SimpleNamespace(globals=ALL_BUFFERS)), SimpleNamespace(fxn=execute)), instruction

    module._decode_at = decode_at  # type: ignore[attr-defined]
