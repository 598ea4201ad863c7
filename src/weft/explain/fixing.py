"""Fixes that are arguments or options of a launch, tried: each is compiled and explained, and times are compared."""

from __future__ import annotations

from dataclasses import replace

from weft.base import WeftError

from .record import Explanation, Finding

__all__ = ["with_fixes"]


def with_fixes(e: Explanation) -> Explanation:
    """The explanation with what those fixes bring, the most first. A fix that cannot be compiled says so."""
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


def _with_gain(e: Explanation, finding: Finding, fixed: Explanation | str) -> Finding:
    if isinstance(fixed, str):
        return replace(finding, microseconds=None, no_figure=f"the fix cannot be compiled: {fixed}")
    if e.time is None or fixed.time is None:
        return finding
    gain = round(e.time.microseconds - fixed.time.microseconds, 2)
    why_not = f"with it the launch takes {-gain:.1f} us more" if gain < 0 else ""
    return replace(finding, microseconds=max(0.0, gain), no_figure=why_not, is_at_most=False)
