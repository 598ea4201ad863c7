"""What lower.test_indexed checks in the simulator, on the GPU."""

# ruff: noqa: F403
from lower.test_indexed import *

from .elsewhere import on_the_gpu_instead

on_gpu = on_the_gpu_instead("lower.tile_text")
