"""Facts about machines: sizes, costs, instructions. Nothing here asks the machine it runs on."""

from .cpu import CPU

__all__ = ["CPU"]
