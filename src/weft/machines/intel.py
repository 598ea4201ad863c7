"""Intel's GPUs: the planner of layouts knows them, nothing is compiled for them yet."""

from .machine import KIB, Machine

ROWS = (Machine("xpu:pvc", "intel", lanes=16, shared_bytes=64 * KIB),)
