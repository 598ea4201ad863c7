"""Kernels compiled for AArch64 and run by `qemu-aarch64`, with a driver program that `aarch64-linux-gnu-gcc` compiles.

    with Emulator(folder) as emulator:                          # Debian: qemu-user, gcc-aarch64-linux-gnu
        emulator.launch(kernel, (4,), {"x": x, "n": 1000}, cpu="neoverse-v1")
"""

from .emulator import MISSING, Emulator

__all__ = ["MISSING", "Emulator"]
