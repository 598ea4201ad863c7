"""What descriptors that the host makes for NVIDIA's copy engine may say."""

from weft.targets.nvidia import CORNERS

__all__ = ["CORNERS"]
