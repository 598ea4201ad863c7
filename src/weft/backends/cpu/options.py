"""What decides the code of a kernel for the CPU, beside the kernel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CPUOptions:
    """What decides the code: the host, and the launcher's promise about overlapping arrays."""

    cpu: str = ""  # as LLVM names it; empty for this host
    features: str = ""
    triple: str = ""  # of the system, as LLVM names it; empty for this one, or where the processor is at home
    vector_bits: int = 0  # 0: the widest the host has
    assume_no_alias: bool = True
    enable_fp_fusion: bool = True
    matrix_units: bool = True
    """Whether products may use instructions that multiply several elements at once (AMX, AVX512-BF16, AVX512-VNNI)."""
