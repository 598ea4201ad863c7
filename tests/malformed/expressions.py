"""Malformed layout expressions: what `weft layout` is given, with tokens or parameters changed."""

from __future__ import annotations

import random
import re
from functools import cache

from layouts import random_named
from weft.view.expressions import MAKERS, METHODS
from weft.view.grammar import TOKEN

from .tokens import change, pool_of

__all__ = ["command"]

WRITTEN = (
    "LinearLayout({'register': [[0, 1], [0, 2]], 'lane': [[1, 0], [2, 0]]}, {'dim0': 4, 'dim1': 4})",
    "LinearLayout.identity_1d(4, 'lane', 'dim0') * LinearLayout.strided_1d(4, 2, 'register', 'dim1')",
    "LinearLayout.zeros_1d(4, 'warp', 'dim0', 2) * LinearLayout.identity_1d(8, 'lane', 'dim0')",
    "LinearLayout.empty()",
    "(4,(2,4)):(8,(1,2))",
    "Swizzle<2,0,3> o 0 o (8,8):(8,1)",
    "(8,8):(8,1).flatten_ins().invert()",
    "{'lane': [[1], [2]], 'register': [[4]]}",
    "SharedLinearLayout([[0, 1], [0, 2], [1, 0], [2, 2]], [], 16)",
    "DistributedLinearLayout([[0, 1]], [[1, 0], [2, 0], [4, 0], [8, 0], [0, 2]], [[0, 4]], [], [16, 8])",
    "PaddedSharedLayout.with_identity_for([[32, 4]], [16, 32], [1, 0])",
    "NVMMASharedLayout.get_default_for([64, 64], 16)",
    "make_cga_layout([2, 1], [2, 1], [1, 0])",
    "NVMMASharedLayout(128, 16, 2, False)",
    "SwizzledSharedLayout(4, 2, 8, [1, 0])",
)
ODD = (
    "None", "True", "[]", "{}", "[[]]", "''", "'lane'", "-1", "0", "3", str(2**40), "[0, 0]", "[3, 5]", "[1]",
    "[1, 2, 3, 4, 5, 6, 7, 8]", "[[1, 1]]", "{'lane': 3}", "{'lane': [[0]]}", "(4):(1)", "BlockedLayout", "[-2, 4]",
    "['lane', 'lane']", "LinearLayout.empty()",
)  # fmt: skip
SHAPES = (
    "1", "4", "16", "16x16", "32x32", "32x16", "64x64", "2x8x16", "1x1", "128x128", "512x512", "2x2x2x2", "3x4", "0",
    "x", "16,16", "65536x65536", "-4x4",
)  # fmt: skip


def _named(seed: int) -> str:
    draw = random.Random(f"named {seed}")
    layout, _ = draw.choice((random_named.distributed, random_named.shared))(draw)
    return repr(layout)


@cache
def corpus() -> list[str]:
    """Good expressions."""
    return [*WRITTEN, *sorted({_named(seed) for seed in range(150)})]


@cache
def pool() -> dict[str, list[str]]:
    """Their tokens, and the names of what can be called."""
    found = pool_of(corpus(), TOKEN)
    found["name"] = sorted({*found["name"], *METHODS, *MAKERS, "to_linear"})
    found["odd"] = list(ODD)
    return found


def _expression(draw: random.Random) -> str:
    text = draw.choice(corpus())
    how = draw.random()
    if how < 0.35:  # a parameter of another kind
        values = list(re.finditer(r"\[[^\[\]]*\]|\b\d+\b|'\w+'|\b(?:True|False|None)\b", text))
        if values:
            at = draw.choice(values)
            text = text[: at.start()] + draw.choice(ODD) + text[at.end() :]
    elif how < 0.5:  # a method, with parameters that fit or do not
        method = draw.choice(list(METHODS))
        given = ", ".join(draw.choice([*ODD, draw.choice(corpus()), "['dim1', 'dim0']"]) for _ in METHODS[method])
        text = f"({text}).{method}({given})"
    elif how < 0.6:
        text = f"{text} * {draw.choice(corpus())}"
    if how >= 0.5 or draw.random() < 0.3:
        text = change(text, TOKEN, draw, pool())
    if draw.random() < 0.01:
        text = draw.choice(["(" * 5000, "[" * 200 + "]" * 200, text * 400, "-" * 1000, "\x00", "é" + text, ""])
    return text


def command(seed: int) -> list[str]:
    """The arguments of `weft layout` of a seed."""
    draw = random.Random(f"expression {seed}")
    what = draw.choice(("show", "show", "show", "convert", "conflicts"))
    given = [what, _expression(draw)]
    if what != "show" or draw.random() < 0.1:
        given.append(draw.choice([_expression(draw), draw.choice(corpus())]))
    if draw.random() < 0.6:
        given += ["--shape", draw.choice(SHAPES)]
    if draw.random() < 0.3:
        given += ["--bits", draw.choice(("8", "16", "64", "1"))]
    if what == "show" and draw.random() < 0.3:
        given.append(draw.choice(("--hardware", "--matrix")))
    if draw.random() < 0.3:
        given.append("--json")
    return given
