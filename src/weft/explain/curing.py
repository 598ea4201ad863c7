"""Cures that are arguments or options of a launch, tried: each is compiled and explained, and times are compared."""

from __future__ import annotations

from dataclasses import replace

from weft.base import WeftError

from .record import Explanation, Finding

__all__ = ["with_cures"]


def with_cures(e: Explanation) -> Explanation:
    """The explanation with what those cures bring, the most first. A cure that cannot be compiled says so."""
    tried: dict[tuple[tuple[str, object], ...], Explanation | str] = {}
    findings = []
    for finding in e.findings:
        key = tuple(sorted(finding.change.items()))
        if key and key not in tried:
            try:
                tried[key] = e.what_if(**finding.change)
            except WeftError as error:
                tried[key] = next(iter(str(error).splitlines()), type(error).__name__)
        findings.append(_with_gain(e, finding, tried[key]) if key else finding)
    return replace(e, findings=tuple(sorted(findings, key=lambda f: -(f.microseconds or 0.0))))


def _with_gain(e: Explanation, finding: Finding, cured: Explanation | str) -> Finding:
    if isinstance(cured, str):
        return replace(finding, microseconds=None, no_figure=f"the cure cannot be compiled: {cured}")
    if e.time is None or cured.time is None:
        return finding
    gain = round(e.time.microseconds - cured.time.microseconds, 2)
    why_not = f"with it the launch takes {-gain:.1f} us more" if gain < 0 else ""
    return replace(finding, microseconds=max(0.0, gain), no_figure=why_not)
