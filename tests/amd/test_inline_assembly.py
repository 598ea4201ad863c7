"""Inline assembly on AMD's GPUs: what the simulator makes of it, and code objects by an assembler of this machine."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.amd import assembled, assembler, comgr, linked, object_code, processor_of
from weft.base import CompilationError, Unsupported
from weft.compiler import compile as compile_here
from weft.machines import machine_of
from weft.sim.amd.assembly import AssemblyError, executed

from .container import problems
from .suite import CASES, PROCESSORS
from .waits import check

RNG = np.random.default_rng(7)
A, B, C = RNG.integers(0, 2**32, (3, 64), dtype=np.uint32)
SMALL = RNG.integers(0, 32, 64, dtype=np.uint32)
X, Y, Z = RNG.uniform(-4, 4, (3, 64)).astype(np.float32)
OBJDUMP = shutil.which("llvm-objdump-19")


def signed(x: np.ndarray) -> np.ndarray:
    return x.view(np.int32)


def halves(x: np.ndarray) -> np.ndarray:
    return x.astype("<u4").view(np.float16).astype(np.float32)


def packed(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).view(np.uint32)


WORDS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Any]] = {
    "v_mov_b32 $0, $1": lambda a, b, c: a,
    "v_mov_b32 $0, 1.0": lambda a, b, c: 0x3F800000,
    "v_add_u32 $0, $1, $2": lambda a, b, c: a + b,
    "v_sub_nc_u32_e32 $0, $1, $2": lambda a, b, c: a - b,
    "v_subrev_u32 $0, $1, -3": lambda a, b, c: np.uint32(2**32 - 3) - a,
    "v_mul_lo_u32 $0, $1, $2": lambda a, b, c: a * b,
    "v_mul_hi_u32 $0, $1, $2": lambda a, b, c: a.astype(np.uint64) * b >> 32,
    "v_mul_hi_i32 $0, $1, $2": lambda a, b, c: signed(a).astype(np.int64) * signed(b) >> 32,
    "v_mul_i32_i24 $0, $1, $2": lambda a, b, c: (signed(a << 8) >> 8) * (signed(b << 8) >> 8),
    "v_mad_u32_u24 $0, $1, $2, $3": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_lshlrev_b32 $0, $4, $1": lambda a, b, c: a << SMALL,
    "v_ashrrev_i32 $0, $4, $1": lambda a, b, c: signed(a) >> SMALL.view(np.int32),
    "v_lshl_add_u32 $0, $1, $4, $2": lambda a, b, c: (a << SMALL) + b,
    "v_and_or_b32 $0, $1, $2, $3": lambda a, b, c: a & b | c,
    "v_xnor_b32 $0, $1, $2": lambda a, b, c: ~(a ^ b),
    "v_bfi_b32 $0, $1, $2, $3": lambda a, b, c: a & b | ~a & c,
    "v_bfe_u32 $0, $1, 3, 5": lambda a, b, c: a >> 3 & 31,
    "v_bfe_i32 $0, $1, 4, 8": lambda a, b, c: (a >> 4).astype(np.uint8).view(np.int8),
    "v_alignbit_b32 $0, $1, $2, 8": lambda a, b, c: a << 24 | b >> 8,
    "v_perm_b32 $0, $1, $2, 0x0c060501": lambda a, b, c: (a >> 16 & 0xFF) << 16 | (a & 0xFF00) | b >> 8 & 0xFF,
    "v_bfrev_b32 $0, $1": lambda a, b, c: [int(f"{x:032b}"[::-1], 2) for x in a],
    "v_bcnt_u32_b32 $0, $1, $4": lambda a, b, c: [int(x).bit_count() for x in a] + SMALL,
    "v_ffbl_b32 $0, $1": lambda a, b, c: [(int(x) & -int(x)).bit_length() - 1 for x in a],
    "v_clz_i32_u32 $0, $1": lambda a, b, c: [32 - int(x).bit_length() for x in a],
    "v_med3_i32 $0, $1, $2, $3": lambda a, b, c: np.median([signed(a), signed(b), signed(c)], axis=0),
    "v_min3_u32 $0, $1, $2, $3": lambda a, b, c: np.minimum(np.minimum(a, b), c),
    "v_cmp_lt_i32 vcc, $1, $2\nv_cndmask_b32 $0, $1, $2, vcc": lambda a, b, c: np.maximum(signed(a), signed(b)),
    "v_pk_add_u16 $0, $1, $2": lambda a, b, c: (a.view(np.uint16) + b.view(np.uint16)).view(np.uint32),
    "v_add_u32 $0, $1, $2 ; a sum\ns_nop 1\ns_waitcnt vmcnt(0)\nv_add_u32 $0, $0, 1": lambda a, b, c: a + b + 1,
}  # fmt: skip
FLOATS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Any]] = {
    "v_add_f32 $0, $1, $2": lambda x, y, z: x + y,
    "v_sub_f32 $0, -$1, |$2|": lambda x, y, z: -x - abs(y),
    "v_mul_f32 $0, 0.5, $1": lambda x, y, z: x * np.float32(0.5),
    "v_fma_f32 $0, $1, $2, $3": lambda x, y, z: (x.astype(float) * y + z).astype(np.float32),
    "v_mov_b32 $0, $3\nv_fmac_f32 $0, $1, $2": lambda x, y, z: (x.astype(float) * y + z).astype(np.float32),
    "v_max_f32 $0, $1, $2": lambda x, y, z: np.maximum(x, y),
    "v_med3_f32 $0, $1, $2, $3": lambda x, y, z: np.median([x, y, z], axis=0).astype(np.float32),
    "v_max3_f32 $0, $1, $2, $3": lambda x, y, z: np.maximum(np.maximum(x, y), z),
    "v_rcp_f32 $0, $1": lambda x, y, z: np.float32(1) / x,
    "v_exp_f32 $0, $1": lambda x, y, z: np.exp2(x.astype(float)).astype(np.float32),
    "v_rndne_f32 $0, $1": lambda x, y, z: np.rint(x),
    "v_fract_f32 $0, $1": lambda x, y, z: x - np.floor(x),
    "v_cvt_i32_f32 $0, $1\nv_cvt_f32_i32 $0, $0": lambda x, y, z: np.trunc(x),
    "v_cvt_f16_f32 $0, $1\nv_cvt_f32_f16 $0, $0": lambda x, y, z: x.astype(np.float16).astype(np.float32),
    "v_cvt_f32_ubyte2 $0, $1": lambda x, y, z: (x.view(np.uint32) >> 16 & 0xFF).astype(np.float32),
    "v_cmp_gt_f32 vcc_lo, $1, $2\nv_cndmask_b32 $0, $1, $2, vcc_lo": lambda x, y, z: np.minimum(x, y),
}  # fmt: skip
PACKED: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Any]] = {
    "v_pk_mul_f16 $0, $1, $2": lambda x, y, z: x * y,
    "v_pk_max_f16 $0, $1, $2": lambda x, y, z: np.maximum(x, y),
    "v_pk_fma_f16 $0, $1, $2, $3": lambda x, y, z: x.astype(float) * y + z,
}


def result(text: str, *operands: np.ndarray) -> np.ndarray:
    registers = {f"${i}": np.ascontiguousarray(x).view(np.uint32)[None, :, None] for i, x in enumerate(operands, 1)}
    executed(text, registers)
    return np.broadcast_to(registers["$0"], (1, 64, 1)).ravel()


@pytest.mark.parametrize("text", WORDS)
def test_instructions_on_words(text: str) -> None:
    expected = np.broadcast_to(np.asarray(WORDS[text](A, B, C)).astype(np.int64), 64).astype(np.uint32)
    assert np.array_equal(result(text, A, B, C, SMALL), expected)


@pytest.mark.parametrize("text", FLOATS)
def test_instructions_on_floats(text: str) -> None:
    expected = np.asarray(FLOATS[text](X, Y, Z), np.float32)
    assert np.array_equal(result(text, X, Y, Z).view(np.float32), expected)


@pytest.mark.parametrize("text", PACKED)
def test_instructions_on_halves(text: str) -> None:
    x, y, z = (RNG.uniform(-4, 4, 128).astype(np.float16) for _ in range(3))
    expected = np.asarray(PACKED[text](*(v.astype(np.float32) for v in (x, y, z)))).astype(np.float16)
    assert np.array_equal(result(text, x, y, z).view(np.float16), expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("v_frobnicate_b32 $0, $1", "`v_frobnicate_b32`"),
        ("v_mov_b32 v0, $1", "the result `v0` of `v_mov_b32`"),
        ("v_add_u32 $0, $1", "`v_add_u32` with 2 operands"),
        ("v_add_u32 $0, $1, exec", "the operand `exec`"),
        ("v_add_u32 $0, -$1, $1", "`-$1` as an integer"),
        ("v_cndmask_b32 $0, $1, $1, vcc", "`vcc`, which is read before it is written"),
    ],
)
def test_what_the_simulator_does_not_run_is_said(text: str, words: str) -> None:
    with pytest.raises(AssemblyError) as error:
        result(text, A)
    assert str(error.value) == words


@weft.jit
def several(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    total, product = tl.inline_asm_elementwise(
        "v_add_f32 $0, $2, $3\nv_mul_f32 $1, $2, $3", "=&v,=v,v,v", [a, a + 1],
        dtype=(tl.float32, tl.float32), is_pure=True, pack=1,
    )  # fmt: skip
    pairs = tl.inline_asm_elementwise(
        "v_pk_mul_f16 $0, $1, $2", "=v,v,v", [total.to(tl.float16), product.to(tl.float16)],
        dtype=tl.float16, is_pure=True, pack=2,
    )  # fmt: skip
    more = tl.inline_asm_elementwise("s_add_i32 $0, $1, 1", "=s,s,~{scc}", [n], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(y + i, pairs)
    bytes = tl.inline_asm_elementwise(
        "v_mov_b32 $0, $1", "=v,v", [i.to(tl.int8)], dtype=tl.int8, is_pure=False, pack=1
    )  # fmt: skip
    tl.store(z + i, bytes + more)


SEVERAL = {"x": "*fp32", "y": "*fp16", "z": "*i32", "n": "i32"}


@pytest.mark.parametrize("processor", ["gfx942", "gfx1201"])
def test_kernels_in_the_simulator(processor: str) -> None:
    x, y, z = X.repeat(2), np.zeros(128, np.float16), np.zeros(128, np.int32)
    with weft.target(f"sim:hip:{processor}"):
        several[(1,)](x, y, z, 41, BLOCK=128)
    total, product = (x + (x + 1)).astype(np.float16), (x * (x + 1)).astype(np.float16)
    assert np.array_equal(y, total * product)
    assert np.array_equal(z, np.arange(128).astype(np.int8).astype(np.int32) + 42)


def knows(processor: str) -> bool:
    """Whether some assembler here does."""
    return any(run("s_endpgm\n", processor)[1] is not None for _, run in assembler._assemblers())


def compiled(kernel: Any, processor: str, signature: dict[str, str], **constants: Any) -> Any:
    return compile_here(weft.ASTSource(kernel, signature, constants), f"hip:{processor}")


ALWAYS = ("gfx942", "gfx1201")


@pytest.mark.parametrize(
    "processor", [pytest.param(p, marks=() if p in ALWAYS else pytest.mark.slow) for p in PROCESSORS]
)
def test_code_objects_with_inline_assembly(processor: str, tmp_path: Path) -> None:
    if not knows(processor):
        pytest.skip(f"no assembler of this machine knows {processor}")
    kernel = compiled(several, processor, SEVERAL, BLOCK=128)
    image = kernel.asm["hsaco"]
    assert problems(image, processor, [8, 8, 8, 4]) == []
    assert not check(kernel.asm["amdgcn"])
    assert "v_pk_mul_f16" in kernel.asm["amdgcn"]
    if OBJDUMP and processor not in ("gfx950", "gfx1250"):
        (tmp_path / "k").write_bytes(image)
        text = subprocess.run([OBJDUMP, "-d", tmp_path / "k"], capture_output=True, text=True, check=True).stdout
        assert "v_pk_mul_f16" in text
        assert "s_add_i32" in text or "s_add_co_i32" in text


@pytest.mark.parametrize(("name", "processor"), [("softmax", "gfx942"), ("matmul_f16", "gfx1201")])
def test_an_assembler_makes_of_the_text_what_llvm_makes_of_the_kernel(name: str, processor: str) -> None:
    if not knows(processor):
        pytest.skip(f"no assembler of this machine knows {processor}")
    case = CASES[name]
    source = weft.ASTSource(case.kernel, *case.signature(case.make_inputs()))
    llir = compile_here(source, f"hip:{processor}", case.options).asm["llir"]
    of = processor_of(machine_of(f"hip:{processor}"))
    assert linked(*assembled(llir, of, ())) == linked(object_code(llir, of))


@weft.jit
def wrong(x, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):
    i = tl.arange(0, 64)
    a = tl.load(x + i)
    tl.store(x + i, tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [a], dtype=tl.float32, is_pure=True, pack=1))


def refused(processor: str, text: str, constraints: str) -> str:
    with pytest.raises(CompilationError) as error:
        compiled(wrong, processor, {"x": "*fp32"}, TEXT=text, CONSTRAINTS=constraints)
    assert error.value.span is not None
    assert "inline_asm_elementwise" in (error.value.source_line or "")
    return f"{error.value.message}\n{error.value.hint}"


def test_constraints_are_checked() -> None:
    assert refused("gfx1201", "v_mov_b32 $0, $1", "=a,v") == (
        "`=a` is no constraint for a result\n"
        "there are v (a vector register), s and r (a scalar one), of 32 bits, or pairs for 64; "
        "a result has = before it; an operand may be the number of a result"
    )
    assert "`f` is no constraint for an operand" in refused("gfx942", "v_mov_b32 $0, $1", "=v,f")
    assert "name 1 registers" in refused("gfx942", "v_mov_b32 $0, 1", "=v")
    assert "the assembly says $2" in refused("gfx942", "v_mov_b32 $0, $2", "=v,v")


def test_what_the_assembler_refuses_is_said_with_the_place() -> None:
    if not knows("gfx942"):
        pytest.skip("no assembler of this machine knows gfx942")
    said = refused("gfx942", "v_mov_b32 $0, $1\nv_frobnicate_b32 $0, $1", "=v,v")
    assert "the assembler refuses inline assembly: " in said
    assert "invalid instruction" in said
    assert "v_frobnicate_b32 v" in said


def test_without_an_assembler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(assembler, "folders", lambda: [tmp_path / "lib"])
    monkeypatch.setattr(assembler, "COMGR", ("libnobody_comgr.so",))
    with pytest.raises(Unsupported) as error:
        compiled(several, "gfx942", SEVERAL, BLOCK=128)
    assert error.value.message == "inline assembly is not supported on target hip:gfx942"
    assert error.value.hint == (
        "it needs an assembler that knows gfx942. ROCm has one in its library amd_comgr, which PyTorch for ROCm brings "
        f"along; so have LLVM's llvm-mc and clang. Tried: no libnobody_comgr.so, llvm-mc, clang in {tmp_path / 'lib'}, "
        f"{tmp_path / 'llvm/bin'}, {tmp_path / 'lib/llvm/bin'}, {tmp_path / 'bin'}, {tmp_path}, nor where the system "
        "looks"
    )


class FakeComgr:
    """The library's functions, as far as they are called; handles are numbers, and each is checked."""

    def __init__(self, version: int, log: bytes, code: bytes | None) -> None:
        self.version, self.answers, self.live = version, {5: log, 7: code or b""}, dict[int, str]()
        self.fails, self.source, self.asked = code is None, b"", [b"", b""]

    def __getattr__(self, name: str) -> Callable[..., int]:
        return getattr(self, f"_{name.removeprefix('amd_comgr_')}")  # type: ignore[no-any-return]

    def _new(self, kind: str, into: Any) -> int:
        into._obj.value = len(self.live) + 1000
        self.live[into._obj.value] = kind
        return 0

    def _end(self, handle: Any, kind: str) -> int:
        assert self.live.pop(handle.value) == kind
        return 0

    def _get_version(self, major: Any, minor: Any) -> None:
        major._obj.value = self.version

    def _create_action_info(self, into: Any) -> int:
        return self._new("action", into)

    def _create_data_set(self, into: Any) -> int:
        return self._new("set", into)

    def _create_data(self, kind: int, into: Any) -> int:
        assert kind == 1
        return self._new("data", into)

    def _destroy_action_info(self, handle: Any) -> int:
        return self._end(handle, "action")

    def _destroy_data_set(self, handle: Any) -> int:
        return self._end(handle, "set")

    def _release_data(self, handle: Any) -> int:
        return self._end(handle, "data")

    def _action_info_set_isa_name(self, action: Any, name: bytes) -> int:
        self.asked[0] = name
        return 0

    def _action_info_set_logging(self, action: Any, on: Any) -> int:
        return int(not on.value)

    def _set_data(self, data: Any, size: Any, text: bytes) -> int:
        assert self.live[data.value] == "data"
        self.source = text[: size.value]
        return 0

    def _set_data_name(self, data: Any, name: bytes) -> int:
        self.asked[1] = name
        return 0

    def _data_set_add(self, into: Any, data: Any) -> int:
        return int((self.live[into.value], self.live[data.value]) != ("set", "data"))

    def _do_action(self, action: int, info: Any, given: Any, made: Any) -> int:
        assert action == {2: 10, 3: 8}[self.version]
        assert [self.live[x.value] for x in (info, given, made)] == ["action", "set", "set"]
        return int(self.fails)

    def _action_data_count(self, of: Any, kind: int, into: Any) -> int:
        into._obj.value = int(bool(self.answers[kind]))
        return 0

    def _action_data_get_data(self, of: Any, kind: int, index: Any, into: Any) -> int:
        self.kind = kind
        return self._new("data", into)

    def _get_data(self, data: Any, size: Any, buffer: Any) -> int:
        answer = self.answers[self.kind]
        if buffer is None:
            size._obj.value = len(answer)
        else:
            ctypes.memmove(buffer, answer, size._obj.value)
        return 0


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("log", "code"), [(b"", b"\x7fELF and more"), (b"kernel.s:1:1: error: no", None)])
def test_the_library_of_rocm(version: int, log: bytes, code: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeComgr(version, log, code)
    monkeypatch.setattr(comgr.ctypes, "CDLL", lambda path: fake)
    assert comgr.Comgr("libamd_comgr.so").assembled("s_endpgm\n", "gfx942") == (log.decode(), code)
    assert (fake.source, fake.asked) == (b"s_endpgm\n", [b"amdgcn-amd-amdhsa--gfx942", b"kernel.s"])
    assert not fake.live


def test_a_version_of_it_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comgr.ctypes, "CDLL", lambda path: FakeComgr(4, b"", None))
    with pytest.raises(OSError, match=r"libamd_comgr.so is of version 4.0"):
        comgr.Comgr("libamd_comgr.so")
