"""Kernels for NVIDIA GPUs: their machine code, assembled when it is asked for or when the kernel is loaded.

    kernel.asm["ptx"], kernel.asm["cubin"], kernel.asm["sass"]

What the cache keeps of machine code is an entry of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

from weft.backends.nvidia.driver import current_device
from weft.backends.nvidia.loaded_kernel import LoadedKernel
from weft.backends.nvidia.ptxas import MachineCode, assembler, disassemble, source_of
from weft.base import CompilationError, PTXASError, load

from ..gpu_kernels import GPUKernel


class CudaKernel(GPUKernel):
    """A kernel compiled for an NVIDIA GPU; assembled and loaded when it is launched."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._code: MachineCode | None = None
        self.asm.add("cubin", lambda: self.assemble().cubin)
        self.asm.add("sass", lambda: disassemble(self.assemble().image))

    def assemble(self, processor: str = "") -> MachineCode:
        """The machine code, from the cache if it is there. PTXASError where ptxas refuses the PTX.

        `processor` is the one to run on, where it is newer than the one that the PTX is for.
        """
        if self._code is None:
            processor = processor or self.metadata.arch
            description = f"{self.hash} machine code for {processor} by {assembler()}"
            key = hashlib.sha256(description.encode("utf-8", "surrogatepass")).hexdigest()
            entry = self._store.get(key) if self._store is not None else None
            if entry is not None and "image" in entry[1]:
                self._code = MachineCode(bytes(entry[1]["image"]), **entry[0])
            else:
                self._code = self._assembled(processor)
                facts = {k: v for k, v in asdict(self._code).items() if k != "image"}
                if self._store is not None and self._code.by != "driver":
                    self._store.put(key, facts, {"image": self._code.image})
            self.kernel = self._code.image
        return self._code

    def _assembled(self, processor: str) -> MachineCode:
        try:
            facts = self.metadata
            code: MachineCode = load("weft.backends.nvidia.occupancy").assemble_for(
                self.asm["ptx"],
                processor,
                threads=facts.warp_size * facts.num_warps,
                shared=facts.shared,
                maxnreg=facts.maxnreg,
            )
            return code
        except PTXASError as error:
            if error.hint or "refuses" not in error.message or "tt.elementwise_inline_asm" not in self.asm["ttir"]:
                raise
            raise CompilationError(
                f"the assembler refuses {self.name}, which has inline assembly: {error.message.partition(chr(10))[2]}",
                source_of(self.asm["ptx"], error.message),
                hint="the lines are those of kernel.asm['ptx']",
            ) from error

    def in_memory(self) -> LoadedKernel:
        """It in the memory of this thread's GPU."""
        gpu = current_device()  # says what is missing before anything is assembled
        newer = f"sm_{gpu.capability}" if gpu.capability > int(self.metadata.target.arch) else ""
        image = self.assemble(newer).image
        with self.itemising():
            return LoadedKernel(image, self.metadata._asdict())

    @property
    def machine_code(self) -> bytes:
        """The cubin; nothing where the driver is to make it."""
        return self.assemble().cubin

    @property
    def n_regs(self) -> int:
        """Registers of a thread, as the assembler counts them; where that is the driver, the kernel is loaded."""
        code = self.assemble()
        return int(self.load().registers) if code.by == "driver" else code.registers

    @property
    def n_spills(self) -> int:
        """Words that a thread spills, as the assembler counts them; by the driver, words that it has in memory."""
        code = self.assemble()
        return int(self.load().local_bytes if code.by == "driver" else code.spilled_bytes) // 4

    @property
    def n_max_threads(self) -> int:
        """The largest number of threads a block may have."""
        return int(self.load().max_threads)

    @property
    def n_max_programs(self) -> int:
        """How many programs (clusters, with num_ctas > 1) this GPU runs at once: a grid for a persistent kernel."""
        return int(self.load().programs_at_once())
