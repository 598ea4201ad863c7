"""What a machine says is asked of the machine: below `compiler/` no target is a string, no pass spells an instruction.

`SEEN` lists, by rule and file, what users see: names that they may give, tables that are published. More is an error,
and so is less until the list says it. A vendor's own folders may say what the vendor's things are called.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "weft"
BELOW = ("ops", "layouts", "targets", "ir", "analysis", "passes", "lower", "sim")
"""The rooms that are handed a machine."""
VENDORS = {"nvidia", "amd", "intel"}
"""Folders in rooms for what one vendor has: its things are called there what the vendor calls them."""

NAMES = re.compile(r"^(sim:)?(cuda|hip|xpu):|^sm_?\d")
INSTRUCTIONS = re.compile(
    r"^(mma\.sync|wgmma|ldmatrix|stmatrix|cp\.async|mbarrier\.|setmaxnreg|tensormap\.|barrier\.cluster|st\.async)[\w.:]*$"
)


@cache
def parsed(path: Path) -> ast.AST:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def literals(tree: ast.AST) -> Iterator[str]:
    """Strings in code; not those that are statements."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def targets_as_strings(tree: ast.AST) -> Iterator[str]:
    """`target: str`, `capability: int` and the like in signatures and fields; not beside `source`, of a conversion."""
    fields: list[tuple[str, ast.expr | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            fields.append((getattr(node.target, "id", ""), node.annotation))
        elif isinstance(node, ast.arguments):
            given = {x.arg: x.annotation for x in (*node.posonlyargs, *node.args, *node.kwonlyargs)}
            fields += [x for x in given.items() if "source" not in given and "name" not in given]
    for name, annotation in fields:
        if name in ("target", "arch", "capability") and annotation is not None:
            if re.search(r"\b(str|int)\b", ast.unparse(annotation)):
                yield name


def names_of_targets(tree: ast.AST) -> Iterator[str]:
    """`cuda:80`, `sm_90` in code."""
    yield from (text for text in literals(tree) if NAMES.search(text))


def widths_of_warps(tree: ast.AST) -> Iterator[str]:
    """`32 * warps`, `threads // 32`, `lanes=32`, `lanes: int = 32`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.FloorDiv | ast.Mod):
            sides = (ast.unparse(node.left), ast.unparse(node.right))
            if "32" in sides and re.search(r"warps|threads|lanes", " ".join(sides)):
                yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and node.arg in ("lanes", "warp_size") and ast.unparse(node.value) == "32":
            yield ast.unparse(node.value)
        elif isinstance(node, ast.arguments):
            plain = [*node.posonlyargs, *node.args]
            given = [*plain[len(plain) - len(node.defaults) :], *node.kwonlyargs]
            for argument, value in zip(given, [*node.defaults, *node.kw_defaults], strict=True):
                if argument.arg == "lanes" and value is not None and ast.unparse(value) == "32":
                    yield "lanes=32"


def kinds_of_machines(tree: ast.AST) -> Iterator[str]:
    """The vendor or generation of a machine is looked at, or its name compared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ("vendor", "generation"):
            yield node.attr
        elif isinstance(node, ast.Compare):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            yield from (side for side in sides if re.search(r"machine\.name$|program\.target$", side))


def mnemonics(tree: ast.AST) -> Iterator[str]:
    """`wgmma.fence`, `mma.sync.m16n8k16` in code."""
    yield from (text for text in literals(tree) if INSTRUCTIONS.search(text))


RULES: dict[Callable[[ast.AST], Iterator[str]], tuple[str, ...]] = {
    targets_as_strings: BELOW,
    names_of_targets: BELOW,
    widths_of_warps: (*BELOW, "backends/nvidia", "compiler", "runtime"),
    kinds_of_machines: ("analysis", "passes", "lower", "sim", "layouts"),
    mnemonics: ("analysis", "passes", "lower", "sim", "ir", "layouts"),
}
SEEN: dict[str, dict[str, int]] = {
    "targets_as_strings": {  # those who use `weft.layouts` alone name a machine, or pass one
        "layouts/plan/conversion.py": 1, "layouts/plan/local.py": 1, "layouts/plan/reduction.py": 1,
    },
    # the tables of docs/, which say of which machine they are; a message
    "names_of_targets": {"layouts/tables.py": 2, "ir/check/attributes.py": 1},
    "widths_of_warps": {"layouts/tables.py": 1},
    "mnemonics": {"layouts/tables.py": 1},
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_is_asked_of_the_machine(rule: Callable[[ast.AST], Iterator[str]]) -> None:
    found: Counter[str] = Counter()
    where: dict[str, list[str]] = {}
    for room in RULES[rule]:
        for path in sorted((SOURCE / room).rglob("*.py")):
            name = str(path.relative_to(SOURCE))
            if set(path.relative_to(SOURCE).parts[1:-1]) & VENDORS:
                continue
            broken = list(rule(parsed(path)))
            if broken:
                found[name], where[name] = len(broken), broken
    known = Counter(SEEN.get(rule.__name__, {}))
    more = [f"{name}: {where[name]}, allowed: {known[name]}" for name, n in found.items() if n > known[name]]
    less = [f"{name}: {found[name]} are left of {n}; shorten the list" for name, n in known.items() if found[name] < n]
    assert not more and not less, "\n" + "\n".join([f"{rule.__doc__}", *more, *less])
