"""Malformed IR: tile IR and layout IR of the tests, with tokens, types, attributes, operands or lines changed."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

from weft.ir.text.tokens import _TOKEN

from .operations import readable
from .tokens import change, pool_of

__all__ = ["LARGEST", "text"]

DATA = Path(__file__).parents[1] / "data"
FOLDERS = {"ttir": ("ttir",), "ttgir": ("ttgir", "ttgir/unresolved", "gluon")}
LARGEST = 12_000
"""Characters of a text that is changed."""
ELEMENTS = re.compile(r"\b(?:i1|i8|i16|i32|i64|f16|bf16|f32|f64|f8E4M3FN|f8E5M2)\b")


@cache
def corpus(kind: str) -> list[str]:
    """The good texts of a kind."""
    files = [path for folder in FOLDERS[kind] for path in sorted((DATA / folder).glob(f"*.{kind}"))]
    return [t for t in (path.read_text(encoding="utf-8") for path in files) if len(t) <= LARGEST]


@cache
def pool(kind: str) -> dict[str, list[str]]:
    """The tokens of a kind's corpus."""
    return pool_of(corpus(kind), _TOKEN)


def text(kind: str, seed: int) -> str:
    """A text of a kind, `ttir` or `ttgir`, that is probably wrong."""
    draw = random.Random(f"{kind} {seed}")
    found = draw.choice(corpus(kind))
    if draw.random() < 0.5:
        return readable(found, draw)
    how = draw.random()
    if how < 0.1:  # another element type in one place
        places = list(ELEMENTS.finditer(found))
        if places:
            at = draw.choice(places)
            new = draw.choice(["i1", "i8", "i32", "i64", "f16", "bf16", "f32", "f64", "f8E5M2", "i7", "index"])
            return found[: at.start()] + new + found[at.end() :]
    if how < 0.2:  # an operation of another text
        other = [line for line in draw.choice(corpus(kind)).split("\n") if " = " in line or "tt." in line]
        lines = found.split("\n")
        lines.insert(draw.randrange(len(lines)), draw.choice(other or [""]))
        return "\n".join(lines)
    if how < 0.3:  # an operation by another's name: `arith.addi` as `arith.addf`
        names = sorted(set(re.findall(r"\b(?:arith|math|tt|ttg|ttng|scf|cf)\.[\w.]+", found)))
        known = sorted({w for w in pool(kind)["i"] if "." in w})
        if names:
            return re.sub(rf"\b{re.escape(draw.choice(names))}\b", draw.choice(known), found, count=draw.choice((0, 1)))
    return change(found, _TOKEN, draw, pool(kind))
