"""What the pretended libraries of vendors have in common: a whole process sees their GPUs, and PyTorch on them.

    yield from pretended(monkeypatch, hip, "amd", "hsaco", (library, faults), forget)
    class Torch(PretendedTorch): ...             # torch.of(array) is a tensor there, torch.to_numpy(tensor) a copy
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest

from weft.backends.gpu import libraries
from weft.compiler import backends, gpu_kernels
from weft.compiler.gpu import lowered
from weft.compiler.options import make_options
from weft.compiler.sources import IRSource
from weft.ir.lane import LaneProgram
from weft.runtime import clock

from .pretended_torch import Tensor

F = TypeVar("F")
SIGNS = {"nvidia": ("cuda", ""), "amd": ("hip", ""), "intel": ("xpu", "")}


def pretended(
    monkeypatch: pytest.MonkeyPatch, fake: F, vendor: str, code: str, modules: Any, forget: Callable[[], None]
) -> Iterator[F]:
    """The whole process sees a vendor's GPUs until the iterator is ended. PyTorch is not there, whatever has been
    imported. Kernels that Weft compiles run in the simulator: `code` names their machine code.

    `modules` are where the vendor's libraries are looked for and where its faults are kept; `forget` drops what was
    found out of the machine's GPUs.
    """
    library: Any = fake
    where, faults = modules
    monkeypatch.setattr(libraries, "ctypes", SimpleNamespace(CDLL=library.library))
    monkeypatch.setattr(where, "folders", list)
    monkeypatch.setattr(backends, "SIGNS", {**SIGNS, vendor: (SIGNS[vendor][0], "/")})  # there is such a file
    for name in ("torch", "cupy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    into_memory = gpu_kernels.GPUKernel._into_memory

    def told(kernel: gpu_kernels.GPUKernel) -> Any:
        if code in kernel.asm:
            digest = hashlib.sha256(kernel.asm[code]).hexdigest()
            library.programs[digest], library.messages[digest] = program_of(kernel), kernel.metadata.messages
        return into_memory(kernel)

    monkeypatch.setattr(gpu_kernels.GPUKernel, "_into_memory", told)
    monkeypatch.setattr(clock.GPUClock, "_flushed", {})
    faults.launches.clear()
    forget()
    gc.freeze()  # what there was before is not looked through again each time
    yield fake
    gc.collect()  # events and arrays are given back
    gc.unfreeze()
    forget()
    assert not library.problems, library.problems


def program_of(kernel: Any) -> LaneProgram:
    """The lane program that a kernel's machine code was made of."""
    target, language = kernel.metadata.target, make_options(kernel.given_options).language
    made = IRSource(kernel.asm["ttir"]).make_ir(language, target)
    return lowered(made, target.machine, language)


def prototypes(text: str, types: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """The functions of a library with the types of their arguments, from lines of C."""
    found = []
    for line in text.strip().splitlines():
        name, _, rest = line.partition("(")
        arguments = [a.strip() for a in rest.rstrip(")").split(",") if a.strip()]
        found.append((name, [ctypes.c_void_p if "*" in a else types[a.split()[0]] for a in arguments]))
    return found


class PretendedTorch(ModuleType):
    """The module, with tensors in the memory of a vendor's driver."""

    def __init__(self, driver: Any, tensor: type[Tensor]) -> None:
        super().__init__("torch")
        self.__version__ = "2.13.0"
        self.driver, self.Tensor = driver, tensor

    @staticmethod
    def device(kind: str, index: int) -> Any:
        """As text and two fields."""
        return SimpleNamespace(type=kind, index=index)

    def of(self, array: Any, device: int = 0) -> Tensor:
        """A copy of an array on a GPU; its memory is PyTorch's to give back."""
        gpu, host = self.driver.device(device), np.ascontiguousarray(array)
        address = self.driver.allocate(host.nbytes, gpu)
        self.driver.to_device(address, host.ctypes.data, host.nbytes, gpu)
        return self.Tensor(address, host.dtype, host.size, device)

    def to_numpy(self, tensor: Tensor) -> Any:
        """A copy of it."""
        host = np.empty(tensor.size, tensor.dtype)
        self.driver.to_host(host.ctypes.data, tensor.address, host.nbytes, self.driver.device(tensor.get_device()))
        return host
