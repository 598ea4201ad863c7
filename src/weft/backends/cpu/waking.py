"""What it costs on this machine to have a worker take part: measured once, and kept with what tuning has measured.

    wake   from the launch until a worker that slept begins       5 to 100 us; more on virtual machines
    tell   what waking one takes of its caller's time             1 to 20 us
    hot    from the launch until a worker that is awake begins    0.1 to 1 us

They are measured by the first process that has launches with workers for a while, in a millisecond between two
launches; where others keep the cores busy, workers do not come when they are called, nothing is learnt, and it is tried
again.
"""

from __future__ import annotations

import ctypes
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from .engine import ENGINE
from .host import host_cpu
from .keeping import kept_at
from .native import native
from .state import STATE_BYTES

ROUNDS = 5
ASLEEP_S = 1e-4
"""When a worker sleeps after it has seen nothing to do (`limits.SPIN_NS`)."""
SPIN_NS, PATIENCE_S = 40_000, 2e-4
"""For how long who measures waits for a worker: busily, so that it is awake still for the next call, and then not."""
USUAL_HOT_NS = 1_000
"""Where a worker sleeps again before it can be called awake."""
LIMITS = {"wake": (2_000, 200_000), "tell": (200, 50_000), "hot": (100, 5_000)}
"""Nanoseconds beyond which a figure is none of the machine's."""


@dataclass(frozen=True)
class Costs:
    """Nanoseconds."""

    wake: int
    tell: int
    hot: int


_known: Costs | None = None


def know_costs(pool: int) -> bool:
    """Have the engine decide by what waking costs here, if that can be known; `pool` is the address of one."""
    global _known
    if _known is None:
        _known = _costs(pool)
    if _known is not None:
        ENGINE.set_costs(**asdict(_known))
    return _known is not None


def _costs(pool: int) -> Costs | None:
    store, key = kept_at("waking", host_cpu().fingerprint(), str(host_cpu().cores), platform.release())
    entry = store.get(key) if store is not None else None
    if entry is not None:
        return Costs(**{name: int(entry[0][name]) for name in LIMITS})
    costs = measured(pool)
    if costs is not None and store is not None:
        store.put(key, {"name": "waking", **asdict(costs)}, {})
    return costs


def measured(pool: int) -> Costs | None:
    """Measure; None where workers do not come when they are called."""
    samples: dict[str, list[int]] = {name: [] for name in LIMITS}
    for _ in range(ROUNDS):
        time.sleep(ASLEEP_S)
        wake, tell = _called(pool)
        if not wake:
            return None
        samples["wake"].append(wake)
        samples["tell"].append(tell)
        hot = _called(pool)[0] if wake < SPIN_NS else 0
        samples["hot"].append(hot or USUAL_HOT_NS)
    return Costs(**{name: _usual(samples[name], *limits) for name, limits in LIMITS.items()})


def _called(pool: int) -> tuple[int, int]:
    """Nanoseconds until a worker that is called has begun, 0 if it has not in time, and for which it was called."""
    words = (ctypes.c_int64 * (2 + STATE_BYTES // 8))()
    address = ctypes.addressof(words)
    begun = native().call_one(pool, address + 16, address)
    if not begun:
        return 0, 0
    until = begun + SPIN_NS
    while not words[0] and time.monotonic_ns() < until:
        pass
    if not words[0]:
        time.sleep(PATIENCE_S)
    native().settle(pool)
    return max(0, words[0] - begun) if words[0] else 0, words[1] - begun


def _usual(samples: Sequence[int], least: int, most: int) -> int:
    """Of some measurements, what is seldom undercut: the longest were disturbed."""
    return min(max(sorted(samples)[len(samples) // 4], least), most)
