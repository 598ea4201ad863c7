"""Whether there is a GPU to run on: its name, or why there is none, and exit status 2.

    python tools/need_gpu.py

`make gpu-test` and its like ask first, so that they end here and not after thousands of skipped tests.
"""

from __future__ import annotations

import sys

from weft.base import NoDevice
from weft.compiler import devices


def main() -> int:
    """Print the answer; the exit status."""
    try:
        device = devices.current_device()
    except NoDevice as error:
        print(f"no GPU: {error}", file=sys.stderr)
        return 2
    print(f"{device.name}, compute capability {device.capability / 10:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
