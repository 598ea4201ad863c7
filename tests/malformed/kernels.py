"""Malformed kernels: those of the tests, in both languages, with statements, arguments, names or types changed.

made = kernel(17)                 # a Mutant: .source() is what weft.compile takes, .text what was made
"""

from __future__ import annotations

import ast
import copy
import linecache
import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import weft
from gluon.sources import arguments_of, sources
from kernels import load_cases
from weft.gluon import jit as gluon_jit

__all__ = ["Mutant", "kernel"]

VALUES = (
    "None", "True", "0", "1", "-1", "3", "2**40", "1.5", "float('nan')", "'text'", "b'1'", "[]", "()", "[1, 2]", "{}",
    "(1, (2, 3))", "...", "1j", "tl", "tl.float32", "tl.constexpr(3)", "tl.constexpr(None)", "tl.arange(0, 16)",
    "lambda: 0", "tl.zeros([4, 4], tl.float32)", "tl.zeros([16], tl.int1)", "tl.program_id(0)", "print", "int",
    "tl.full([2], 1, tl.int8)", "slice(1, 2)", "f'{1}'", "1 if tl.program_id(0) else None", "[x for x in (1, 2)]",
    "not_defined", "object()", "10**400",
)  # fmt: skip
"""What stands in the place of an expression."""
STATEMENTS = (
    "return", "return 1", "return 1, None", "break", "continue", "pass", "raise ValueError('no')", "assert False",
    "import os", "global x", "nonlocal y", "del {name}", "{name} = None", "{name} = {name}, {name}", "a, b = {name}",
    "a, *b = 1, 2, 3", "{name} += 'text'", "{name}: int", "{name}: tl.constexpr = {name}", "{name}.shape = 1",
    "{name}[0] = 1", "for {name} in range(3):\n    {name} = 0.5", "while True:\n    pass",
    "while {name}:\n    {name} = 0", "for q in {name}:\n    pass", "for q in range({name}, 'a'):\n    pass",
    "for q in tl.static_range({name}):\n    pass", "if {name}:\n    {name} = 1", "if {name} is None:\n    return",
    "with {name}:\n    pass", "with tl:\n    pass", "try:\n    pass\nexcept ValueError:\n    pass",
    "def inner():\n    return 1\ninner()", "class C:\n    pass", "yield 1", "lambda q: q", "print({name}, sep='')",
    "tl.static_assert(False, {name})", "tl.static_print({name})", "tl.device_assert({name}, {name})",
    "{name} = {name} @ {name}", "{name} = {name}[{name}]", "{name} = {name}[:, None, ::2]",
    "{name} = {name} < {name} < {name}", "{name} = not {name}", "{name} = {name} and {name}",
    "{name} = {name}.to({name})", "{name} = {name}.T", "{name} = {name}({name})", "{name} = tl.dot({name}, {name})",
    "{name} = {name} if {name} else {name}", "match {name}:\n    case 1:\n        pass",
    "{name} = [{name} for {name} in range(3)]", "{name} = {{1: {name}}}", "{name} = (q := {name})",
    "{name} = {name} in {name}", "{name} = ~{name}", "{name} = -{name}", "{name} **= 2", "tl.store({name}, {name})",
    "tl.load({name}, mask={name}, other={name})", "{name} = tl.sum({name}, 5)",
    "{name} = tl.reshape({name}, [3, -1])", "tl.reduce({name}, 0, {name})", "{name} = *{name}, 1",
    "async def f():\n    pass", "tl.atomic_add({name}, {name})", "{name} = tl.cast({name}, 'fp3')",
    "{name} = max({name}, {name}, key=len)", "{name} = len({name})", "{name} = range({name})",
    "{name} = f'{{{name}}}'", "{name} = {name}.no_such_thing",
)  # fmt: skip
TYPES = (
    "i32", "fp32", "*fp32", "*i8", "i1", "u64", "fp64", "*fp16", "*i1", "*bf16", "constexpr", "*fp8e5", "fp99", "",
    "**fp32", "tensordesc<fp32[16,16]>", "tensordesc<fp16[16]>", "*k", "bf16",
)  # fmt: skip
"""What a parameter may be given as."""
CONSTANTS: tuple[Any, ...] = (0, 1, -1, 3, 7, 2**40, 1.5, None, True, "text", (1, 2), [4], {}, float("inf"), 1j)
TARGETS = ("cpu", "cuda:80", "cuda:90")


@dataclass
class Good:
    """A kernel that compiles: its function, signature, constants, and what it is compiled for."""

    fn: Any
    signature: dict[str, Any]
    constants: dict[str, Any]
    options: dict[str, Any]
    targets: tuple[str, ...]
    gluon: bool


@dataclass
class Mutant:
    """A kernel that is probably wrong."""

    good: Good
    text: str
    signature: dict[str, Any]
    constants: dict[str, Any]
    target: str
    options: dict[str, Any]
    file: str

    def source(self) -> Any:
        """What `weft.compile` takes; what is wrong may be told here already."""
        linecache.cache[self.file] = (len(self.text), None, self.text.splitlines(keepends=True), self.file)
        space = {**self.good.fn.fn.__globals__, "jit": gluon_jit if self.good.gluon else weft.jit}
        exec(compile(self.text, self.file, "exec", dont_inherit=True), space)
        made = space[self.good.fn.fn.__name__]
        return weft.ASTSource(made, self.signature, self.constants)


@cache
def corpus() -> list[Good]:
    """All kernels of the tests that have a source."""
    found = []
    for name, case in load_cases("weft").items():
        try:
            types, values, _ = case.signature(case.make_inputs())
        except TypeError:
            continue  # lists and the like, which have no type of their own here
        options = {k: v for k, v in case.options.items() if k in ("num_warps", "num_stages")}
        if len(case.kernel.src) < 4000 and "descriptor" not in name:
            found.append(Good(case.kernel, types, values, options, TARGETS, False))
    for source in sources("weft").values():
        target = f"cuda:{source.capability}"
        signature, _ = arguments_of(source)
        found.append(Good(source.kernel, signature, source.constexprs, source.options, (target,), True))
    return found


def kernel(seed: int) -> Mutant:
    """The kernel of a seed."""
    draw = random.Random(f"kernel {seed}")
    while True:
        good = draw.choice(corpus())
        tree = ast.parse(textwrap.dedent(good.fn.src)).body[0]
        assert isinstance(tree, ast.FunctionDef)
        tree.decorator_list = [ast.Name("jit")]
        signature, constants = dict(good.signature), dict(good.constants)
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            if draw.random() < 0.12:
                _retyped(signature, constants, draw)
            else:
                draw.choice(RULES)(tree, draw)
        try:
            text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            space = {**good.fn.fn.__globals__, "jit": lambda function: function}
            exec(compile(text, "<mutant>", "exec", dont_inherit=True), space)
        except Exception:
            continue  # Python itself refuses it, or one of its annotations
        target = draw.choice(good.targets)
        names = [a.arg for a in (*tree.args.args, *filter(None, [tree.args.vararg]))]
        signature = {name: signature.get(name) or draw.choice(TYPES[:8]) for name in names}
        constants = {name: constants[name] for name in names if name in constants}
        return Mutant(good, text, signature, constants, target, good.options, f"<kernel {seed}>")


def _retyped(signature: dict[str, Any], constants: dict[str, Any], draw: random.Random) -> None:
    """Another type of a parameter, or another constant."""
    if constants and draw.random() < 0.5:
        constants[draw.choice(list(constants))] = draw.choice(CONSTANTS)
        return
    name = draw.choice(list(signature))
    signature[name] = draw.choice(TYPES)
    if signature[name] == "constexpr":
        constants[name] = draw.choice(CONSTANTS)
    else:
        constants.pop(name, None)


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    return [b for n in ast.walk(tree) for f in ("body", "orelse") if isinstance(b := getattr(n, f, None), list) and b]


def _names(tree: ast.AST) -> list[str]:
    return sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - {"jit"}) or ["x"]


def _expressions(tree: ast.AST) -> list[tuple[ast.AST, str, int | None]]:
    """Places of expressions that are read: (node, field, index in it)."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            if field in ("targets", "target", "decorator_list", "annotation", "returns", "func", "defaults"):
                continue
            if isinstance(value, ast.expr):
                found.append((node, field, None))
            elif isinstance(value, list):
                found += [(node, field, k) for k, item in enumerate(value) if isinstance(item, ast.expr)]
    return found


def _put(place: tuple[ast.AST, str, int | None], new: ast.expr) -> None:
    node, field, index = place
    if index is None:
        setattr(node, field, new)
    else:
        getattr(node, field)[index] = new


def _get(place: tuple[ast.AST, str, int | None]) -> ast.expr:
    node, field, index = place
    value = getattr(node, field)
    found: ast.expr = value if index is None else value[index]
    return found


def _expression(text: str, tree: ast.AST) -> ast.expr:
    if "gl" in _names(tree) and "tl" not in _names(tree):
        text = text.replace("tl.", "gl.").replace("tl", "gl")
    return ast.parse(text, mode="eval").body


def _statement_dropped(tree: ast.FunctionDef, draw: random.Random) -> None:
    body = draw.choice(_bodies(tree))
    if len(body) > 1:
        body.pop(draw.randrange(len(body)))


def _statement_doubled(tree: ast.FunctionDef, draw: random.Random) -> None:
    body = draw.choice(_bodies(tree))
    body.insert(draw.randrange(len(body) + 1), draw.choice(body))


def _statements_swapped(tree: ast.FunctionDef, draw: random.Random) -> None:
    body = draw.choice(_bodies(tree))
    a, b = draw.randrange(len(body)), draw.randrange(len(body))
    body[a], body[b] = body[b], body[a]


def _statement_added(tree: ast.FunctionDef, draw: random.Random) -> None:
    text = draw.choice(STATEMENTS).format(name=draw.choice(_names(tree)))
    if "gl" in _names(tree):
        text = text.replace("tl.", "gl.")
    body = draw.choice(_bodies(tree))
    at = draw.randrange(len(body) + 1)
    body[at:at] = ast.parse(text).body if "yield" not in text else [ast.Expr(ast.Yield(ast.Constant(1)))]


def _value_replaced(tree: ast.FunctionDef, draw: random.Random) -> None:
    places = _expressions(tree)
    if places:
        _put(draw.choice(places), _expression(draw.choice(VALUES), tree))


def _value_moved(tree: ast.FunctionDef, draw: random.Random) -> None:
    """An expression in another one's place."""
    places = _expressions(tree)
    if places:
        _put(draw.choice(places), copy.deepcopy(_get(draw.choice(places))))


def _name_replaced(tree: ast.FunctionDef, draw: random.Random) -> None:
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id != "jit"]
    if names:
        draw.choice(names).id = draw.choice(_names(tree))


def _argument_changed(tree: ast.FunctionDef, draw: random.Random) -> None:
    """An argument of a call dropped, doubled, given by a wrong name, or as something else."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    if not calls:
        return
    call = draw.choice(calls)
    how = draw.randrange(6)
    if how == 0 and call.args:
        call.args.pop(draw.randrange(len(call.args)))
    elif how == 1 and call.args:
        call.args.insert(draw.randrange(len(call.args) + 1), draw.choice(call.args))
    elif how == 2 and call.keywords:
        call.keywords.pop(draw.randrange(len(call.keywords)))
    elif how == 3:
        known = ("axis", "mask", "other", "dtype", "shape", "no_such", "layout", "sem", "_semantic", "order")
        name = draw.choice(known)
        call.keywords.append(ast.keyword(name, _expression(draw.choice(VALUES), tree)))
    elif how == 4 and len(call.args) > 1:
        draw.shuffle(call.args)
    elif call.args:
        call.args[draw.randrange(len(call.args))] = _expression(draw.choice(VALUES), tree)


def _attribute_changed(tree: ast.FunctionDef, draw: random.Random) -> None:
    """Another function of the language, or one that there is not."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute)]
    if found:
        node = draw.choice(found)
        module = weft.language if draw.random() < 0.7 else weft.language.math
        names = list(module.__all__)
        names += ["no_such_thing", "__class__", "shape", "dtype", "T", "to", "value", "__dict__"]
        node.attr = draw.choice(names)


def _operator_changed(tree: ast.FunctionDef, draw: random.Random) -> None:
    found = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp)]
    operators: list[Callable[[], ast.operator]] = [
        ast.Add, ast.MatMult, ast.Pow, ast.FloorDiv, ast.Div, ast.Mod, ast.LShift, ast.BitAnd, ast.BitXor,
    ]  # fmt: skip
    if found:
        draw.choice(found).op = draw.choice(operators)()


def _wrapped(tree: ast.FunctionDef, draw: random.Random) -> None:
    """Statements within a branch or a loop."""
    body = draw.choice(_bodies(tree))
    at = draw.randrange(len(body))
    name = draw.choice(_names(tree))
    head = draw.choice(("if {}: pass", "for q in range({}): pass", "while {}: pass", "if tl.program_id(0) > 0: pass"))
    made = ast.parse(head.format(name)).body[0]
    made.body = body[at : at + draw.choice((1, 2, 9))]  # type: ignore[attr-defined]
    body[at : at + len(made.body)] = [made]  # type: ignore[attr-defined]


def _parameter_changed(tree: ast.FunctionDef, draw: random.Random) -> None:
    arguments = tree.args.args
    how = draw.randrange(4)
    if how == 0 and arguments:
        argument = draw.choice(arguments)
        argument.annotation = None if argument.annotation else _expression("tl.constexpr", tree)
    elif how == 1 and arguments:
        arguments.pop(draw.randrange(len(arguments)))
        tree.args.defaults = []
    elif how == 2:
        tree.args.vararg = ast.arg("rest")
    else:
        arguments.append(ast.arg(draw.choice(["extra", *_names(tree)])))
        tree.args.defaults = []


RULES: tuple[Callable[[ast.FunctionDef, random.Random], None], ...] = (
    _statement_dropped, _statement_doubled, _statements_swapped, _statement_added, _statement_added, _value_replaced,
    _value_replaced, _value_replaced, _value_moved, _name_replaced, _argument_changed, _argument_changed,
    _attribute_changed, _operator_changed, _wrapped, _parameter_changed,
)  # fmt: skip
