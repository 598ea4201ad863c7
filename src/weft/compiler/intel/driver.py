"""Intel's `Driver` (see `compiler/backends.py`): there is none yet. Kernels are compiled and simulated.

Every question is answered as on a machine that has no such GPU.
"""

from __future__ import annotations

from typing import Any, NoReturn

from weft.base import NoDevice

memory_kinds = ("xpu", "oneapi")


def no_device(*_: Any, **__: Any) -> NoReturn:
    """Launches on Intel's GPUs are not built."""
    raise NoDevice(
        "kernels for Intel GPUs are compiled and simulated, not launched yet",
        hint="use the target cpu, or sim:xpu:pvc to simulate one",
    )


def available() -> bool:
    """No."""
    return False


installed = in_use = available


def gpu_of_address(address: int) -> int | None:
    """None is known to be one."""
    return None


def found() -> dict[str, str]:
    """Nothing is looked for."""
    return {"Intel GPUs": "not launched on yet"}


device_count = device = current_device = entered = on = event = allocate = free = no_device
to_device = to_host = copy = fill = load = map_maker = no_device
