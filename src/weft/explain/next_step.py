"""Where to go next: the finding that brings the most, or what the resource that a launch is bound by leaves to do."""

from __future__ import annotations

from .record import Explanation, Finding

__all__ = ["next_text"]

WORTH = 0.02
"""The part of the time from which on a finding is the next thing to do."""
LONG = 1.2
"""The instructions of the longest program by the mean, from which on programs are called uneven."""
BY_BOUND = {
    "DRAM": "only fewer bytes make it faster: fuse it with its neighbours, read once what is read twice, smaller types",
    "memory": "only fewer bytes make it faster: fuse it with its neighbours, read once what is read twice, small types",
    "caches": "read less often what is read again: larger tiles, or several rows in each program",
    "arithmetic": "fewer operations for each element: one reciprocal for many divisions, exp2, nothing computed twice",
    "programs": "fewer and larger programs: each does several rows or blocks",
    "L2": "let programs that read the same run one after the other, or larger blocks read less often",
    "L1": "let each lane have more bytes at a time, and keep what is read again in registers",
    "shared memory": "keep operands in registers, take larger tiles in each warp, or fewer exchanges between threads",
    "issue": "fewer instructions for each element: hoist what does not change, fewer masks, simpler indices",
    "integers and choices": "simplify indices and masks: compute them before loops, in 32 bits, without division",
    "matrix units": "it is where a product should be: smaller types are what is left",
    "special functions": "fewer exp, log, divisions and conversions of integers: exp2, one reciprocal for many",
    "double precision": "compute in float32",
    "atomics": "combine more before each atomic operation, or spread them over more addresses",
    "starting blocks": "fewer and larger programs: each does several rows or blocks",
    "latency": "let more go on at a time: more programs or warps on a multiprocessor, more stages, parallel chains",
    "launch": "it is too small to matter by itself: do more in one launch",
}
"""What is left to do where a resource is what a launch waits for."""


def next_text(e: Explanation) -> str:
    """One sentence; empty where no time is predicted."""
    time = e.time
    if time is None:
        return ""
    for finding in e.findings:
        if (finding.microseconds or 0.0) >= WORTH * time.microseconds:
            about = "at most" if finding.is_at_most else "about"
            gain = f"{about} {finding.microseconds:.1f} us of {time.microseconds:.1f}"
            return f"next: {finding.code}{_on(finding)}, {gain}"
    text = f"next: bound by {time.bound} at {time.part:.0%}{_line(e)}; {BY_BOUND.get(time.bound, '')}"
    if e.counts.longest >= LONG:
        text += f"; the longest program does {e.counts.longest:.2g} times the mean, so let the longest begin first"
    return text


def _on(finding: Finding) -> str:
    return f" on line {finding.span.line}" if finding.span is not None else ""


def _line(e: Explanation) -> str:
    """The line on which a warp spends the most time, where programs wait for themselves."""
    lines = e.time.lines if e.time is not None else {}
    if not lines or e.time is None or e.time.bound in ("DRAM", "memory", "programs"):
        return ""
    line = max(lines, key=lambda key: lines[key])
    if e.occupancy is None:  # on a CPU shares are those of bytes
        return f", most bytes on line {line} ({lines[line]:.0%})"
    return f", most of a warp's time on line {line} ({lines[line]:.0%})"
