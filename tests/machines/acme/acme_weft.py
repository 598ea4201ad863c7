"""A vendor of a GPU, as somebody else's package would have it: 16 lanes, an instruction set that is the host's.

Its threads run one after the other on this processor, so that there is nothing that they could tell each other. All
else is as `weft.backends.gpu.Dialect` and `weft.compiler.backends` want it, and nothing of another vendor is imported.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm

from weft.backends.gpu import emit_llvm, emitted_of
from weft.backends.gpu.memory import address_text, instead_of
from weft.base import Unsupported
from weft.compiler.gpu_kernels import GPUKernel
from weft.machines import Machine

MACHINE = Machine("acme:one", "acme", 1, lanes=16, shared_bytes=16 << 10)
PLACES = ["thread", *(f"{what}.{axis}" for what in ("block", "blocks") for axis in "xyz")]
C_TYPES = {"i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
           "i64": ctypes.c_int64, "fp32": ctypes.c_float, "fp64": ctypes.c_double}  # fmt: skip


class Dialect:
    """Indices stand in a global array, accesses with a mask are branches around LLVM's own."""

    processor, convention, tensor_map, adds_bf16 = "one", "ccc", "", True
    scopes: Mapping[str, str] = {}
    scalars: Mapping[str, Any] = {}

    def attributes(self, program: Any, registers: int) -> str:
        return ""

    def shared_memory(self, program: Any, alignment: int) -> str:
        return f"@shared_memory = internal global [{program.shared_bytes} x i8] zeroinitializer, align {alignment}"

    def begin(self, e: Any) -> None:
        e.module.globals.append(f"@places = global [{len(PLACES)} x i32] zeroinitializer")

    def place(self, e: Any, what: str, below: int = 0) -> str:
        index = PLACES.index(what.replace("program", "block"))
        where = e.pure(f"getelementptr [{len(PLACES)} x i32], ptr @places, i32 0, i32 {index}")
        found = e.pure(f"load i32, ptr {where}")
        if below:
            e.largest[found] = below - 1
        return found

    def hints(self, e: Any, op: Any) -> Any:
        return None

    @contextmanager
    def _where(self, e: Any, mask: Any) -> Iterator[list[str]]:
        inside, after, before = e.f.new_label("held"), e.f.new_label("after"), e.f.block
        e.do(f"br i1 {e.name(mask)}, label %{inside}, label %{after}")
        e.f.start(inside)
        mark = e.mark()
        yield [before, inside]
        e.forget(mark)
        e.do(f"br label %{after}")
        e.f.start(after)

    def _pointer(self, e: Any, access: Any) -> str:
        type, base, offset = address_text(e, access.address, True)
        name = e.pure(f"inttoptr {type} {base} to ptr")
        return e.pure(f"getelementptr i8, ptr {name}, i64 {offset + access.more}")

    def masked_load(self, e: Any, access: Any, hints: Any, other: Any) -> list[str]:
        shape = access.shape
        assert access.space == "global" and shape.bits > 8
        pointer, instead = self._pointer(e, access), instead_of(e, access, other)
        with self._where(e, access.mask) as (before, inside):
            size = shape.bits // 8
            places = [e.ins(f"getelementptr i8, ptr {pointer}, i64 {k * size}") for k in range(shape.words)]
            words = [e.ins(f"load {shape.word}, ptr {p}, align {size}") for p in places]
        pairs = zip(words, instead, strict=True)
        return [e.ins(f"phi {shape.word} [ {w}, %{inside} ], [ {i}, %{before} ]") for w, i in pairs]

    def masked_store(self, e: Any, access: Any, hints: Any, words: Sequence[str]) -> None:
        assert access.space == "global" and access.shape.bits > 8
        size, pointer = access.shape.bits // 8, self._pointer(e, access)
        with self._where(e, access.mask):
            for k, word in enumerate(words):
                place = e.ins(f"getelementptr i8, ptr {pointer}, i64 {k * size}")
                e.do(f"store {access.shape.word} {word}, ptr {place}, align {size}")

    def approximation(self, f: Any, name: str, operands: list[Any]) -> Any:
        type = operands[0].type
        if name == "quotient":
            return f.emit(type, f"fdiv {type} {operands[0].name}, {operands[1].name}")
        return f.intrinsic({"exp2 of denormals": "exp2"}.get(name, name), type, operands)

    def hidden(self, name: str, a: str, b: str) -> str:
        return f"{name} i64 {a}, {b}"

    def pair_conversion(self, source: str, target: str) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        def missing(e: Any, *_: Any, **__: Any) -> Any:
            raise Unsupported(f"`{name}`", MACHINE.name)

        return missing


class Loaded:
    """A kernel in memory."""

    def __init__(self, text: str, metadata: Mapping[str, Any]) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(text)
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(module, machine, use_lmm=True)
        self.engine.finalize_object()
        self.address, self.threads = self.engine.get_function_address(metadata["name"]), metadata["threads"]
        types = [ctypes.c_void_p if p[0] == "*" else C_TYPES[p] for p in metadata["params"]]
        self.function = ctypes.CFUNCTYPE(None, *types)(self.address)
        self.places = (ctypes.c_int32 * len(PLACES)).from_address(self.engine.get_global_value_address("places"))

    def launcher(self, codes: str, stream: Callable[[], int]) -> Callable[..., None]:
        def launch(nx: int, ny: int, nz: int, *values: Any) -> None:
            for block in range(nx * ny * nz):
                for thread in range(self.threads):
                    self.places[:] = [thread, block % nx, block // nx % ny, block // nx // ny, nx, ny, nz]
                    self.function(*values)

        return launch


@dataclass
class Device:
    """The only one."""

    index: int = 0
    name: str = "Acme One"
    target: str = "acme:one"
    memory_bytes: int = 1 << 30
    l2_bytes: int = 1 << 20

    def make_current(self) -> None:
        """It is."""

    def synchronize(self) -> None:
        """Launches wait."""


class Event:
    """A point in time: launches wait."""

    def record(self, stream: Any = 0) -> None:
        self.at = perf_counter()

    def synchronize(self) -> None:
        """It is past."""

    def elapsed_time(self, end: Any) -> float:
        return 1e3 * (end.at - self.at)


class Driver:
    """Memory of the host's that is taken for the GPU's."""

    def __init__(self) -> None:
        self.memory: dict[int, Any] = {}

    def installed(self) -> bool:
        return True

    available = in_use = installed

    def device_count(self) -> int:
        return 1

    def device(self, index: int) -> Device:
        return Device(index)

    def current_device(self) -> Device:
        return Device()

    @contextmanager
    def entered(self, where: Device) -> Iterator[None]:
        yield

    def on(self, where: Device, launch: Callable[..., None]) -> Callable[..., None]:
        return launch

    def allocate(self, size: int, where: Device) -> int:
        block = (ctypes.c_char * (size + 256))()
        address = -(-ctypes.addressof(block) // 256) * 256
        self.memory[address] = block
        return address

    def free(self, address: int, where: Device) -> None:
        del self.memory[address]

    def gpu_of_address(self, address: int) -> int | None:
        return 0 if address in self.memory else None

    def to_device(self, address: int, host: int, size: int, where: Device) -> None:
        ctypes.memmove(address, host, size)

    to_host = to_device

    def event(self, enable_timing: bool = True) -> Event:
        return Event()


class Backend:
    """See `weft.compiler.backends.Backend`."""

    machines, texts, parts = (MACHINE,), ("llir",), {}  # type: ignore[var-annotated]
    driver, kernel = Driver(), GPUKernel

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def begin(self, machine: Machine) -> None:
        """Nothing takes long."""

    def make(self, program: Any, language: Any, given: Any, timings: Any) -> tuple[dict[str, Any], dict[str, str]]:
        dialect: Any = Dialect()
        llir = emit_llvm(program, dialect, language.enable_fp_fusion, lines=False)
        return emitted_of(program, dialect, llir, llir).metadata, {"llir": llir}

    def load(self, kernel: Any) -> Loaded:
        return Loaded(kernel.asm["llir"], kernel.metadata._asdict())


BACKEND = Backend()
