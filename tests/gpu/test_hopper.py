"""What hopper.test_kernels checks in the simulator, on the GPU."""

# ruff: noqa: F403
from hopper.test_kernels import *

from .elsewhere import on_the_gpu_instead

on_gpu = on_the_gpu_instead("hopper.running")
