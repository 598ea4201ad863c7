"""What Intel's instructions do beside their meaning on registers and memory, simulated: surfaces are checked."""

from .meaning import Intel

__all__ = ["MEANING"]

MEANING = Intel()
