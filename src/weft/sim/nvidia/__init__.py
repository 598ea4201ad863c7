"""What only NVIDIA's GPUs do, simulated: mbarriers, the copy engine, products of warp groups, PTX in kernels."""

from .meaning import Nvidia

__all__ = ["MEANING"]

MEANING = Nvidia()
