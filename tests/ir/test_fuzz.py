"""Nothing but our own errors, whatever the text: mutated kernels through reader, verifier, passes and writer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from weft.base import WeftError
from weft.ir import parse_module, print_module, verify
from weft.ir.text.tokens import tokenize
from weft.passes import cpu_pipeline, tile_pipeline

FILES = [p for p in sorted((Path(__file__).parent / "data").glob("*.ttir")) if p.stat().st_size < 12_000]
TOKENS = [tokenize(path.read_text(), path.name)[:2] for path in FILES]
WORDS = sorted({word for _, words in TOKENS for word in words})


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A kernel with a few tokens dropped, replaced, swapped, or one text replaced everywhere."""
    kinds, words = TOKENS[draw(st.integers(0, len(TOKENS) - 1))]
    found = list(words)
    for _ in range(draw(st.integers(1, 3))):
        how = draw(st.sampled_from(["drop", "replace", "insert", "everywhere", "shape"]))
        at = draw(st.integers(0, len(found) - 1))
        if how == "drop":
            del found[at]
        elif how == "replace":
            found[at] = draw(st.sampled_from(WORDS))
        elif how == "insert":
            found.insert(at, draw(st.sampled_from(WORDS)))
        elif how == "everywhere":
            kind = draw(st.sampled_from("tnv"))
            same = sorted({w for k, w in zip(kinds, words, strict=True) if k == kind}) or ["0"]
            old, new = draw(st.sampled_from(same)), draw(st.sampled_from(same))
            found = [new if w == old else w for w in found]
        else:
            old, new = (
                draw(st.sampled_from(["64", "32", "16", "128"])),
                draw(st.sampled_from(["1", "2", "33", "0", "8"])),
            )
            found = [re.sub(rf"\b{old}(?=x)", new, w) if "<" in w else w for w in found]
    return " ".join(found)


def run(text: str) -> None:
    try:
        module = parse_module(text, "fuzz")
        print_module(module)
        verify(module)
    except WeftError:
        return
    try:
        module, _ = cpu_pipeline(tile_pipeline(module))
    except WeftError:
        return
    verify(module, "cpu")
    parse_module(print_module(module))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_mutated_kernels(text: str) -> None:
    run(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    run(text)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join))
def test_any_words(text: str) -> None:
    run("module { tt.func public @f() { " + text)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_many_mutated_kernels(text: str) -> None:
    run(text)
