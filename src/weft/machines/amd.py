"""AMD's GPUs: the planner of layouts knows them, nothing is compiled for them yet."""

from .machine import KIB, Machine

ROWS = (
    Machine("hip:gfx942", "amd", 942, lanes=64, shared_bytes=64 * KIB),
    Machine("hip:gfx950", "amd", 950, lanes=64, banks=64, shared_bytes=160 * KIB),
    Machine("hip:gfx1100", "amd", 1100, shared_bytes=64 * KIB),
)
