"""What AMD's instructions do beside their meaning on registers, simulated: exchanges keep which lanes hold nothing."""

from .meaning import Amd

__all__ = ["MEANING"]

MEANING = Amd()
