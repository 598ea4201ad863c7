"""Misuses of every builtin are refused where Triton 3.6.0 refuses them, but for differences that have a reason."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest

from .cases import FOLDER, Case, cases, values
from .examples import fault, misuses
from .verdicts import faults, read_differences, read_refused

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "semantics.md"


def sample() -> list[Case]:
    """Of each argument of each call the valid call or a wrong one that Triton refuses, and one that it takes."""
    refused = read_refused()
    chosen: dict[tuple[str, str, bool], Case] = {}
    for case in sorted(cases(), key=lambda c: zlib.crc32(c.key.encode())):
        if case.value != "large":  # loops unrolled 2**40 times take their time to be refused
            chosen.setdefault((case.call, case.argument, case.key in refused), case)
    return list(chosen.values())


def test_a_sample() -> None:
    found = faults(sample())
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_all() -> None:
    found = faults(cases())
    assert not found, "\n".join(found)


def test_examples_with_a_wrong_argument() -> None:
    """A few of `test_all_examples`, of Gluon and of `tl`."""
    for name in ("allocate_shared_memory", "sum"):
        for misuse in [m for m in misuses(name) if zlib.crc32(m.key.encode()) % 8 == 0]:
            assert fault(misuse) is None, misuse


@pytest.mark.slow
def test_all_examples() -> None:
    found = {misuse.key: why for misuse in misuses() if (why := fault(misuse)) is not None}
    assert not found


def test_the_tables_name_cases() -> None:
    keys = {case.key for case in cases()}
    assert len(values()) > 60 and len(keys) == len(cases()) > 25_000
    assert read_refused() <= keys
    assert read_differences().keys() <= keys


def test_each_difference_differs_for_a_reason_that_is_told() -> None:
    refused = read_refused()
    for key, verb in read_differences().items():
        assert (verb == "accepts") == (key in refused), key
    text = (FOLDER / "differences.txt").read_text(encoding="utf-8")
    reasons = {line.split(" ")[0] for line in text.splitlines() if line[0] != "#"}
    told = set(re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert reasons <= told
