"""A fault made by a rule, at a place drawn at random among all places where a rule applies.

    mutant = drawn(17, ROOT)
    mutant.rule, mutant.path, mutant.line     # "< is <=", "src/weft/analysis/axis.py", 212
    mutant.applied(source)                    # the file with the fault

The places are those of the syntax tree, so that every faulty file still parses; text of errors and documentation is
left alone. A seed draws a file first, in proportion to its size, and then a place in it.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOMS = (
    "analysis", "backends", "compiler", "frontend", "gluon", "ir", "language", "layouts", "lower", "passes", "runtime",
    "sim", "targets",
)  # fmt: skip
"""Where what a kernel computes is decided. `view` draws, `compat` renames, `base` has classes of errors."""

CHOICES = (
    "analysis/samples.py", "backends/cpu/pool.py", "backends/cpu/prefetch.py",
    "backends/llvm/names.py", "lower/depth_first.py", "backends/nvidia/loaded_words.py",
    "backends/nvidia/occupancy.py", "backends/gpu/registers.py", "lower/few_blocks.py",
    "layouts/plan/search.py", "lower/grouping.py", "passes/blocks_of_clusters.py", "passes/buffer_counts.py",
    "passes/layout_choices.py", "passes/recoalesce.py", "runtime/clock.py", "runtime/testing.py",
)  # fmt: skip
"""Files that choose among right answers by their cost, or that measure: benchmarks watch these."""

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}  # fmt: skip
WORDS = {
    "sext": "zext", "zext": "sext", "ashr": "lshr", "lshr": "ashr", "sdiv": "udiv", "udiv": "sdiv", "srem": "urem",
    "slt": "ult", "sle": "ule", "sgt": "ugt", "sge": "uge", "smin": "umin", "smax": "umax", "olt": "ult", "oeq": "ueq",
    "minnum": "minimum", "maximum": "maxnum", "acquire": "monotonic", "release": "monotonic", "fptosi": "fptoui",
}  # fmt: skip
"""Names of LLVM's that are easily taken for one another."""
SAYS_NOTHING = frozenset({"strict", "slots", "frozen", "kw_only"})
"""Keywords of `zip` and `dataclass` that check what is so anyway, or save memory."""


@dataclass(frozen=True)
class Mutant:
    """One fault: `old` is replaced by `new` at an offset of a file."""

    name: str
    """`rule:17`, or a name of `written.py`."""
    path: str
    line: int
    rule: str
    """What is wrong, in a few words."""
    offset: int
    old: str
    new: str

    def applied(self, source: str) -> str:
        """The faulty file. ValueError where the file is not the one that the fault was made for."""
        if not source.startswith(self.old, self.offset):
            raise ValueError(f"{self.path} has no {self.old!r} at {self.offset}")
        return source[: self.offset] + self.new + source[self.offset + len(self.old) :]

    def told(self) -> str:
        """A line for people."""
        return f"{self.name}: {self.path}:{self.line}: {self.rule}"


def files(root: Path) -> list[str]:
    """The files that faults are put into, below `src/weft`."""
    source = root / "src" / "weft"
    every = sorted(str(p.relative_to(source)) for room in ROOMS for p in (source / room).rglob("*.py"))
    return [path for path in every if path not in CHOICES and not path.endswith("__init__.py")]


def drawn(seed: int, root: Path) -> Mutant:
    """The fault of a seed; the same one for the same sources."""
    rng = random.Random(seed)
    paths = files(root)
    sources = {path: (root / "src" / "weft" / path).read_text(encoding="utf-8") for path in paths}
    while True:
        path = rng.choices(paths, [len(sources[p]) for p in paths])[0]
        places = list(_places(sources[path]))
        if places:
            offset, old, new, rule = rng.choice(places)
            line = sources[path].count("\n", 0, offset) + 1
            return Mutant(f"rule:{seed}", f"src/weft/{path}", line, rule, offset, old, new)


class _Offsets:
    """From line and column of the syntax tree to an offset in the text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def __call__(self, line: int, column: int) -> int:
        """Columns of the tree count bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def of(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self(node.lineno, node.col_offset), self(node.end_lineno, node.end_col_offset)


def _places(source: str) -> Iterator[tuple[int, str, str, str]]:
    """Offset, old text, new text and rule of every fault that a file can be given."""
    at = _Offsets(source)
    tree = ast.parse(source)
    for node in _reached(tree):
        if isinstance(node, ast.Compare):
            left = node.left
            for operator, right in zip(node.ops, node.comparators, strict=True):
                yield from _between(at, left, right, COMPARISONS.get(type(operator)))
                left = right
        elif isinstance(node, ast.BinOp):
            yield from _between(at, node.left, node.right, ARITHMETIC.get(type(node.op)))
        elif isinstance(node, ast.BoolOp):
            pair = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            yield from _between(at, node.values[0], node.values[1], pair)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start, _ = at.of(node)
            yield start, "not ", "", "not is left out"
        elif isinstance(node, ast.Constant):
            start, end = at.of(node)
            text = source[start:end]
            if type(node.value) is int and text.isdecimal():
                yield start, text, str(node.value + 1), f"{text} is {node.value + 1}"
            elif type(node.value) is bool:
                yield start, text, str(not node.value), f"{text} is {not node.value}"
            elif isinstance(node.value, str) and node.value in WORDS and text[1:-1] == node.value:
                yield start + 1, node.value, WORDS[node.value], f"{node.value} is {WORDS[node.value]}"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            start, end = at.of(node)
            yield start, source[start:end], "pass", "a call is left out"
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)) and not isinstance(node.test, ast.Constant):
            start, end = at.of(node.test)
            yield start, source[start:end], f"(not ({source[start:end]}))", "a condition is turned around"


def _between(
    at: _Offsets, left: ast.expr, right: ast.expr, pair: tuple[str, str] | None
) -> Iterator[tuple[int, str, str, str]]:
    if pair is None:
        return
    start, end = at.of(left)[1], at.of(right)[0]
    found = at.source.find(pair[0], start, end)
    between = at.source[start:end].replace("(", "").replace(")", "").strip()
    if found >= 0 and between == pair[0]:
        yield found, *pair, f"{pair[0]} is {pair[1]}"


def _reached(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes, but for types, documentation, what raises, and what is said in errors."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.keyword) and node.arg in SAYS_NOTHING:
            continue
        yield node
        children: list[ast.AST] = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.AnnAssign):
            children = [node.value] if node.value is not None else []
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            children = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None), *node.body]
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id[:1].isupper():
            children = []  # a type
        stack.extend(reversed(children))
