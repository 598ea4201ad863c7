"""`weft calibrate`: the rates of this machine's CPU, measured once, by which explanations for `cpu` predict times.

weft calibrate                    some ten seconds; kept in the cache
WEFT_NUM_THREADS=1 weft calibrate for launches on one thread
weft calibrate --show             what was measured before
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from weft.backends.cpu.driver import get_num_threads
from weft.explain.processor import Rates
from weft.runtime.calibrating import calibrate, calibrated, path_of

__all__ = ["main", "parser"]


def parser(name: str = "weft calibrate") -> argparse.ArgumentParser:
    """What the command takes."""
    made = argparse.ArgumentParser(
        name, description="Measure this machine's CPU, so that explanations for it predict times."
    )
    made.add_argument("--show", action="store_true", help="print the last measurement instead of measuring")
    made.add_argument("--json", action="store_true", help="print the rates as JSON")
    return made


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    options = parser().parse_args(arguments)
    rates = calibrated() if options.show else calibrate()
    if rates is None:
        print(f"weft calibrate: nothing was measured for {get_num_threads()} threads", file=sys.stderr)
        return 1
    print(json.dumps(asdict(rates), indent=1) if options.json else _text(rates))
    return 0


def _text(rates: Rates) -> str:
    lines = [f"{rates.processor}, {rates.threads} threads: {path_of(rates.threads)}"]
    lines.append(f"a launch takes {rates.launch:.1f} us, a program {1000 * rates.program:.0f} ns")
    lines.append(f"{'bytes':>12}  {'read, GB/s':>10}  {'written':>8}")
    for size, read, written in zip(rates.sizes, rates.read, rates.written, strict=True):
        lines.append(f"{size:>12,}  {read / 1000:>10.2f}  {written / 1000:>8.2f}")
    lines.append(f"from the nearest cache {rates.again / 1000:.1f} GB/s, from the next {rates.far / 1000:.1f}")
    rows = zip(rates.lengths, rates.slow_read, rates.slow_written, strict=True)
    lines += [f"rows of {n:,} bytes on different pages: {a:.2f} times as long, stored {b:.2f}" for n, a, b in rows]
    ways = f"four arrays at a time {rates.of_four:.2f}, in loops that carry a tile {rates.looped:.2f} times as long"
    lines.append(ways)
    short, long = rates.by_rows
    lines.append(f"rows of 4 KiB reduced and stored {short:.2f}, of 16 KiB {long:.2f} times as long as a copy")
    alike, apart = (" and ".join(f"{times:.2f}" for times in ways) for ways in (rates.turned, rates.turned_apart))
    lines.append(f"tiles of 32 and 64 transposed {alike} times as long as a copy, where rows begin alike in pages")
    lines.append(f"and {apart} times as long where they do not; one thread reads {rates.alone:.2f} of what all read")
    lines.append(f"memory and arithmetic together: a mean of power {rates.together:.1f}")
    lines.append(f"divisions and other arithmetic together: a mean of power {rates.beside:.1f}")
    rest = f"{rates.simple / 1000:.1f} simple operations, {rates.divided / 1000:.2f} divisions"
    rest += f", {rates.rounded / 1000:.2f} roundings to bfloat16"
    lines.append(f"{rest} and {rates.special / 1000:.2f} exponentials a nanosecond")
    product, product_16 = rates.product / 1000, rates.product_16 / 1000
    lines.append(f"products of {product:.0f} GFLOP/s in float32 and {product_16:.0f} in float16")
    return "\n".join(lines)
