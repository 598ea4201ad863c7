"""Back ends: whatever makes code of lane programs for a vendor's GPUs, loads it and launches it.

    backend_of(machine).make(program, language, given, timings)     LLVM IR, the vendor's assembly, facts
    backend_of(machine).load(kernel)                                the kernel in a GPU's memory
    backend_of(machine).driver                                      GPUs: their memory, streams, events

The registry is `machines/vendors.py`. Somebody else's package joins by an entry point of the group `weft.backends`,
whose name is that of the vendor and which is such a `Backend`:

    [project.entry-points."weft.backends"]
    acme = "acme_weft:BACKEND"

Entry points are looked at when a target is asked for that nobody knows: reading what is installed takes some
milliseconds. A vendor that has operations or instructions of its own names the modules for them in `parts`, as the
registry does for Weft's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from weft import machines as known
from weft.base import CompileOptions, Unsupported, load
from weft.machines import Machine
from weft.machines.vendors import SIGNS, part, part_of, vendors_with

if TYPE_CHECKING:
    from weft.ir.lane import LaneProgram

GROUP = "weft.backends"


class Device(Protocol):
    """A GPU."""

    index: int
    name: str
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    """Shared memory that a block may have."""
    registers: int
    """Registers of a multiprocessor."""
    multiprocessors: int
    major: int
    minor: int
    """What libraries call its capability: (9, 0) of `cuda:90`."""
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    """The width of the bus to its memory."""

    @property
    def capability(self) -> int:
        """The number by which the vendor orders its processors."""

    @property
    def target(self) -> str:
        """What is compiled for it: `cuda:90`."""

    def make_current(self) -> None:
        """Make it the one of this thread."""

    def synchronize(self) -> None:
        """Wait for everything that was queued. DeviceLost when a kernel went wrong."""


class Event(Protocol):
    """A point in time on a stream."""

    def record(self, stream: Any = 0) -> None:
        """Now, behind what is queued on a stream."""

    def query(self) -> bool:
        """Whether it is past."""

    def synchronize(self) -> None:
        """Wait until it is."""

    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from it to another one."""


class Loaded(Protocol):
    """A kernel in a GPU's memory.

    It may also have `queued(stream, gpu, parameters)`, by which native code queues launches: `backends/gpu/queued.py`.
    """

    address: int
    registers: int
    """Of a thread."""
    local_bytes: int
    """What a thread has in memory, since its registers were too few."""
    max_threads: int
    """The most that a block may have."""

    def launcher(self, codes: str, stream: Callable[[], int]) -> Callable[..., None]:
        """A function (nx, ny, nz, *values) that queues a launch of so many blocks. `codes` has a letter of `struct` for
        each parameter, `stream` gives the handle of the stream."""

    def frozen(
        self, codes: str, stream: Callable[[], int], grid: Sequence[int], values: Sequence[Any]
    ) -> Callable[[], None]:
        """The same with all values given."""


class Driver(Protocol):
    """The GPUs of a vendor. Sizes are in bytes; addresses and handles of streams are numbers; there is a stream 0."""

    memory_kinds: tuple[str, ...]
    """What libraries call their memory: first the type of PyTorch's device, then DLPack's name; `cuda` of NVIDIA's,
    `cuda` and `rocm` of AMD's, `xpu` and `oneapi` of Intel's."""

    def event(self, enable_timing: bool = True) -> Event:
        """A point in time, to be recorded."""

    def installed(self) -> bool:
        """Whether the package that talks to the driver is there."""

    def available(self) -> bool:
        """Whether there is a GPU, a driver for it, and the package that talks to it."""

    def device_count(self) -> int:
        """How many GPUs there are. NoDevice where there is no driver."""

    def device(self, index: int) -> Device:
        """One of them."""

    def current_device(self) -> Device:
        """That of this thread. NoDevice where there is none."""

    def entered(self, where: Any) -> AbstractContextManager[None]:
        """What is done inside is done on this GPU."""

    def on(self, where: Any, launch: Callable[..., None]) -> Callable[..., None]:
        """A launch that is done on this GPU, whichever the thread has."""

    def in_use(self) -> bool:
        """Whether this thread has used a GPU, by whatever library; nothing is started to find out."""

    def allocate(self, size: int, where: Any) -> int:
        """The address of new memory."""

    def free(self, address: int, where: Any) -> None:
        """Give memory back."""

    def gpu_of_address(self, address: int) -> int | None:
        """The number of the GPU whose memory an address is in; None for the host's."""

    def to_device(self, address: int, host: int, size: int, where: Any) -> None:
        """Copy from the host's memory; done when it returns."""

    def to_host(self, host: int, address: int, size: int, where: Any) -> None:
        """Copy to the host's memory; done when it returns."""

    def copy(self, target: int, source: int, size: int, where: Any, stream: int = 0) -> None:
        """Queue a copy within a GPU's memory."""

    def fill(self, address: int, size: int, where: Any, stream: int = 0, value: int = 0) -> None:
        """Queue that bytes are written."""

    def load(self, image: bytes, metadata: Mapping[str, Any]) -> Loaded:
        """Machine code in the memory of the current GPU."""

    def map_maker(self, *facts: Any) -> Callable[..., tuple[Any, ...]]:
        """What makes the slots of a descriptor that a kernel has tensor maps of: (its name, the maps)."""

    def found(self) -> dict[str, str]:
        """What there is, in words, for `weft info`."""


class Backend(Protocol):
    """What a vendor gives, as `BACKEND` of its part of the compiler."""

    machines: Sequence[Machine]
    """What is compiled for: `cuda:90` is the machine of that name."""
    parts: Mapping[str, str]
    """The modules, by room, that have what is the vendor's own (see `machines/vendors.py`); none for one without."""
    texts: tuple[str, ...]
    """What `make` gives beside facts, in order: keys of `asm`, such as llir and ptx."""
    binary: str
    """The key of `asm` of the machine code that `make` gives too; "" where it is made later."""
    shown: tuple[str, ...]
    """Keys of `asm` that can be dumped beside those of all back ends, such as llir and ptx."""
    codes: tuple[str, ...]
    """Keys of `asm` that its kernels have of machine code, such as cubin and sass."""
    in_worker: bool
    """Whether code is made in a compile worker, because what makes it may end its process."""
    small_arrays: int
    """Bytes up to which arrays have code of their own, as distances within them are short (`tt.pointer_range` of 32
    bits); 0 where that makes no difference. The driver then says by `allocation_bytes(address)` how long the allocation
    is that an address is in, for arrays that say nothing of it."""
    driver: Driver

    def options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Its own options of a launch, checked; code depends on them, and they are facts of the kernel."""

    def begin(self, machine: Machine) -> None:
        """Begin what takes long and is done once, while a kernel is traced."""

    def tell(self, module: Any, options: Mapping[str, Any]) -> None:
        """Say in tile IR what its passes have to know of these options."""

    def make(
        self,
        program: LaneProgram,
        language: CompileOptions,
        options: Mapping[str, Any],
        timings: dict[str, float],
    ) -> tuple[dict[str, Any], dict[str, str | bytes]]:
        """(facts, texts) of a program: `name`, `shared`, `threads` ... as `backends.gpu.Emitted.metadata` has them."""

    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """The class of its kernels, a `gpu_kernels.GPUKernel`."""

    def tool(self, name: str) -> Any:
        """Where the program of this name is, such as an assembler; None where it is not installed."""

    def load(self, kernel: Any) -> Loaded:
        """A kernel in the memory of the current GPU."""


class OfVendor:
    """What the back ends of this tree have alike: code by one step, for the rows of a `vendor`."""

    vendor: str
    binary: str
    driver: Any
    parts: Mapping[str, str] = {}
    small_arrays = 0

    def tell(self, module: Any, options: Mapping[str, Any]) -> None:
        """Nothing."""

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The vendor's rows."""
        rows: tuple[Machine, ...] = part_of("machines", self.vendor).ROWS
        return rows

    def tool(self, name: str) -> Any:
        """No program is needed."""
        return None

    def load(self, kernel: Any) -> Any:
        """Its machine code in the memory of the current GPU."""
        self.driver.current_device()  # says what is missing, before anything else is
        with kernel.itemising():
            return self.driver.load(kernel.asm[self.binary], kernel.metadata._asdict())


def backend_of(machine: Machine) -> Backend:
    """What makes code for a machine. Unsupported where nobody does."""
    vendor_backend = part("compiler", machine)
    if vendor_backend is None:
        raise Unsupported("compiling", machine.name)
    backend: Backend = vendor_backend.BACKEND
    return backend


def _signs(vendor: str) -> int:
    """How much speaks for a vendor's GPUs being here; nothing of it is loaded to find out, but of one that joined."""
    if vendor not in SIGNS:
        return 2 * bool(part_of("compiler", vendor).BACKEND.driver.available())
    built_for, file = SIGNS[vendor]
    torch = sys.modules.get("torch")
    return 2 * os.path.exists(file) + (getattr(getattr(torch, "version", None), built_for, None) is not None)


def first_backend() -> Backend:
    """That of the first vendor whose GPUs are here, the one that PyTorch is for before others; else of the first
    vendor. One that is alone is not asked."""
    vendors = [*vendors_with("compiler")]
    chosen = max(vendors, key=_signs) if len(vendors) > 1 else vendors[0]
    backend: Backend = part_of("compiler", chosen).BACKEND
    return backend


@lru_cache(maxsize=1)
def find_others() -> bool:
    """Let the back ends join that other packages have; whether there are any."""
    others = [(point.name, point.load()) for point in load("importlib.metadata").entry_points(group=GROUP)]
    for vendor, backend in others:
        known.join(vendor, backend)
    return bool(others)
