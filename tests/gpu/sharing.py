"""Several processes on a machine with several GPUs: each begins with another one.

CUDA numbers the GPUs as `CUDA_VISIBLE_DEVICES` lists them. Process 5 of a machine with four sees "1,2,3,0": all of
them, so that a test that needs two finds two, but device 0 is another GPU for each of its neighbours.
"""

from __future__ import annotations

import os
import subprocess


def in_order(process: int, gpus: int) -> str:
    """The GPUs of a process, its own one first.

    >>> in_order(5, 4)
    '1,2,3,0'
    """
    return ",".join(str((process + i) % gpus) for i in range(gpus))


def how_many() -> int:
    """The GPUs of this machine; 1 where that cannot be said, or where somebody has chosen already."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return 1
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return 1
    return max(1, sum(line.startswith("GPU ") for line in listed.splitlines()))


def variables(process: int, gpus: int) -> dict[str, str]:
    """What to add to the environment of a process; nothing where there is one GPU."""
    return {"CUDA_VISIBLE_DEVICES": in_order(process, gpus)} if gpus > 1 else {}
