"""jit functions as source: where they may stand, what their key covers, what they notice."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from weft.language import core
from weft.language.callable import ConstexprFunction, JITCallable, constexpr_function, jit

CONST = core.constexpr(4)
OTHER = core.constexpr(5)


@jit
def leaf(x, k=CONST):
    return x + CONST + k


@jit
def middle(x):
    return leaf(x)


@jit
def alone(x):
    return x


def load_module(directory: Path, source: str, name: str = "kernels_under_test") -> ModuleType:
    """Import source text as a module of its own, also if the file held another of the same length a moment before."""
    path = directory / f"{name}.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
    linecache.cache.pop(str(path), None)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


HEADER = """
from weft.language.callable import jit, constexpr_function
from weft.language import core
C = core.constexpr(1)
"""


def key_of(directory: Path, source: str, name: str = "kernel") -> str:
    key: str = getattr(load_module(directory, HEADER + textwrap.dedent(source)), name).cache_key
    return key


# -- source ------------------------------------------------------------------------------------------------------------


def test_a_function_in_a_file() -> None:
    assert leaf.src == "def leaf(x, k=CONST):\n    return x + CONST + k\n"
    assert leaf.raw_src[0] == "@jit\n"
    tree = leaf.parse()
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    assert definition.lineno == leaf.starting_line_number + 1
    assert leaf.parse() is tree
    assert (leaf.__name__, leaf.__module__, leaf.__doc__) == ("leaf", __name__, None)


def test_decorators_above_and_nesting_keep_lines_and_columns() -> None:
    def keep(f: Any) -> Any:
        return f

    if True:

        @jit
        @keep
        def inner(x):
            """Text at the margin:
            stays as it is."""
            return (
                x
            )  # fmt: skip

    definition = inner.parse().body[0]
    assert isinstance(definition, ast.FunctionDef)
    line = inner.source_line(definition.lineno)
    assert line is not None and line[definition.col_offset :].startswith("def inner")
    assert inner.src.startswith('def inner(x):\n    """Text')
    assert inner.source_line(10**6) is None


def test_what_hides_the_end_of_a_definition(tmp_path: Path) -> None:
    module = load_module(
        tmp_path,
        HEADER
        + '''
@jit
def brackets(x, y=(1,
2,
)):
    a = """
text
"""
    return f(
        x
)
after = 1

@jit
def dead_code(x):
    return x
    y = 2

    # a comment
    z = 3
# no longer
@jit
def last(x): return x''',
    )
    assert module.brackets.src.rstrip().endswith("x\n)")
    assert module.dead_code.src.rstrip().endswith("z = 3")
    assert module.last.src == "def last(x): return x\n"


def test_exec_with_linecache_and_without() -> None:
    source = "@jit\ndef kernel(x):\n    return x\n"
    nowhere: dict[str, Any] = {"jit": jit}
    exec(compile("".join(["@jit\ndef ", "kernel(x):\n    return x, x\n"]), "<nowhere>", "exec"), nowhere)
    with pytest.raises(ValueError, match=r"(?s)cannot find the source of kernel .*linecache"):
        _ = nowhere["kernel"].src
    at_hand: dict[str, Any] = {"jit": jit}
    exec(source, at_hand)
    assert at_hand["kernel"].src == "def kernel(x):\n    return x\n"
    source = source.replace("return x", "return -x")
    linecache.cache["<cell 1>"] = (len(source), None, source.splitlines(keepends=True), "<cell 1>")
    space: dict[str, Any] = {"jit": jit}
    exec(compile(source, "<cell 1>", "exec"), space)
    assert space["kernel"].src == "def kernel(x):\n    return -x\n"


def test_what_is_no_function() -> None:
    with pytest.raises(TypeError, match=r"jit needs a Python function, got 3 of type int"):
        _ = jit(3).params  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="jit needs a Python function"):
        jit(print).parse()
    with pytest.raises(TypeError, match="constexpr_function needs a Python function, got <built-in function print>"):
        constexpr_function(print)(1)


def test_the_source_is_that_of_the_time_of_decoration(tmp_path: Path) -> None:
    module = load_module(tmp_path, HEADER + "@jit\ndef kernel(x):\n    return x + 1\n")
    (tmp_path / "kernels_under_test.py").write_text("# all gone\n", encoding="utf-8")
    assert module.kernel.src == "def kernel(x):\n    return x + 1\n"
    assert isinstance(module.kernel.parse().body[0], ast.FunctionDef)


def test_calling_from_python_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"leaf was called from Python; a kernel is launched as leaf\[grid\]"):
        leaf(3)


# -- parameters --------------------------------------------------------------------------------------------------------


def test_annotations_fix_types(tmp_path: Path) -> None:
    kernel = load_module(
        tmp_path,
        HEADER
        + """
@jit
def kernel(a: core.constexpr, b: core.dtype("fp16"), c: "*i32", d: core.const, e: int, f: "const *fp32",
           g: bool, h: core.pointer_type(core.dtype("int8")), i=3, j: "tl.constexpr" = 4, k: "tl.float16" = 5):
    pass
""",
    ).kernel

    found = {p.name: (p.annotation_type, p.is_constexpr, p.is_const) for p in kernel.params}
    assert found == {
        "a": ("", True, False),
        "b": ("fp16", False, False),
        "c": ("*i32", False, False),
        "d": ("", False, True),
        "e": ("i32", False, False),
        "f": ("*kfp32", False, True),
        "g": ("u1", False, False),
        "h": ("*i8", False, False),
        "i": ("", False, False),
        "j": ("", True, False),
        "k": ("fp16", False, False),
    }
    assert kernel.constexprs == [0, 9]
    assert kernel.arg_names == list("abcdefghijk")
    assert kernel.params[8].default == 3
    assert not kernel.params[0].has_default


# -- keys --------------------------------------------------------------------------------------------------------------


def test_keys_are_digests_and_differ() -> None:
    keys = {f.cache_key for f in (leaf, middle, alone)}
    assert len(keys) == 3
    assert all(len(k) == 64 and int(k, 16) >= 0 for k in keys)


KERNEL = """
@jit
def helper(x, k=2):
    return x + k

@jit
def kernel(x):
    return helper(x) + C
"""


def test_the_key_does_not_depend_on_the_place(tmp_path: Path) -> None:
    assert key_of(tmp_path, KERNEL) == key_of(tmp_path, "\n\n# a comment\n" + KERNEL)


@pytest.mark.parametrize(
    "changed",
    [
        KERNEL.replace("+ k", "- k"),  # a callee
        KERNEL.replace("k=2", "k=3"),  # its default
        "C = core.constexpr(2)\n" + KERNEL,  # a captured value
        "C = core.constexpr(1.0)\n" + KERNEL,  # ... of another type
        KERNEL.replace("return helper(x) + C", "return helper(x) + C + 0"),
    ],
)
def test_the_key_covers(tmp_path: Path, changed: str) -> None:
    assert key_of(tmp_path, KERNEL) != key_of(tmp_path, changed)


def test_the_key_covers_defaults_by_value(tmp_path: Path) -> None:
    source = "D = {}\n@jit\ndef kernel(x, k=D):\n    return x + k\n"
    assert key_of(tmp_path, source.format(1)) != key_of(tmp_path, source.format(2))


def test_the_key_covers_methods_constexpr_functions_and_modules(tmp_path: Path) -> None:
    source = """
    import math
    @constexpr_function
    def log2(n):
        return {log}

    class Pair:
        @jit
        def total(self):
            return self.a {op} self.b

    @jit
    def kernel(x):
        return Pair(x, x).total() + log2(8) + math.pi
    """
    base = key_of(tmp_path, source.format(log="n.bit_length() - 1", op="+"))
    assert base == key_of(tmp_path, source.format(log="n.bit_length() - 1", op="+"))
    assert base != key_of(tmp_path, source.format(log="n.bit_length()", op="+"))
    assert base != key_of(tmp_path, source.format(log="n.bit_length() - 1", op="-"))


def test_the_place_is_part_of_the_key_where_it_is_part_of_the_code(tmp_path: Path) -> None:
    source = "@jit\ndef kernel(x):\n    assert x > 0\n"
    assert key_of(tmp_path, source) != key_of(tmp_path, "\n" + source)


def test_recursion_has_a_key(tmp_path: Path) -> None:
    source = "@jit\ndef a(x):\n    return kernel(x)\n@jit\ndef kernel(x):\n    return a(x)\n"
    assert key_of(tmp_path, source)


def test_closures_are_captured() -> None:
    def make(k: Any) -> JITCallable:
        @jit
        def kernel(x):
            return x + k

        return kernel

    one, two, again = make(core.constexpr(1)), make(core.constexpr(2)), make(core.constexpr(1))
    assert one.cache_key == again.cache_key != two.cache_key
    assert one.get_capture_scope()["k"].value == 1
    assert one.nonlocals() == {"k": core.constexpr(1)}


def test_names_that_are_bound_first_are_not_captured(tmp_path: Path) -> None:
    module = load_module(
        tmp_path,
        HEADER
        + """
x = core.constexpr(9)
y = core.constexpr(8)
i = core.constexpr(7)
@jit
def kernel(x):
    y = x + C
    for i in range(y):
        y += i
    return [i for i in (y, y)]
""",
    )
    assert module.kernel.cache_key
    assert {name for name, _ in module.kernel.used_global_vals} == {"C"}


# -- changes -----------------------------------------------------------------------------------------------------------


def test_changed_globals_are_noticed(tmp_path: Path) -> None:
    module = load_module(tmp_path, HEADER + KERNEL)
    kernel = module.kernel
    before = kernel.cache_key
    assert kernel.changed_capture() is None
    module.C = core.constexpr(1)  # equal: no change
    assert kernel.changed_capture() is None
    module.C = core.constexpr(2)
    name, then, now = kernel.changed_capture()
    assert (name, then.value, now.value) == ("C", 1, 2)
    kernel.reset()
    assert kernel.cache_key != before
    assert kernel.changed_capture() is None
    module.helper = jit(leaf.fn)
    assert kernel.changed_capture()[0] == "helper"
    del module.C
    assert kernel.changed_capture() is not None


def test_a_changed_list_is_noticed(tmp_path: Path) -> None:
    module = load_module(tmp_path, HEADER + "L = [C]\n@jit\ndef kernel(x):\n    return x + L[0]\n")
    assert module.kernel.cache_key
    assert module.kernel.changed_capture() is None
    module.L.append(module.C)
    assert module.kernel.changed_capture() is not None


def test_source_can_be_replaced(tmp_path: Path) -> None:
    module = load_module(tmp_path, HEADER + "@jit\ndef kernel(x):\n    return x + C\n")
    before = module.kernel.cache_key
    module.kernel._unsafe_update_src("def kernel(x):\n    return x - C\n")
    assert module.kernel.cache_key != before
    assert "x - C" in ast.unparse(module.kernel.parse())
    assert module.kernel.source_line(module.kernel.parse().body[0].body[0].lineno) == "    return x - C"


def test_a_kernel_made_from_another_one_is_told_by_the_places_of_that_one(tmp_path: Path) -> None:
    module = load_module(
        tmp_path, HEADER + "@jit\ndef plain(x):\n    y = x + C\n    return y\n\n@jit\ndef other(x):\n    return x\n"
    )
    made, plain = module.other, module.plain
    made._unsafe_update_src("def other(x):\n    F = None\n    y = x + C\n    return y - C\n")
    made.raw_src = list(plain.raw_src)  # what tools write there is shown, not compiled
    made.starting_line_number = plain.starting_line_number - 1  # one line more than there
    last = made.parse().body[0].body[-1]
    assert ast.unparse(last) == "return y - C"
    assert last.lineno == plain.parse().body[0].body[-1].lineno
    assert made.source_line(last.lineno) == "    return y - C"
    assert "y - C" in made.src


# -- constexpr functions -----------------------------------------------------------------------------------------------


def test_constexpr_functions_on_the_host() -> None:
    @constexpr_function
    def shape(n, m=1, *rest):
        return (n, m, *rest)

    assert isinstance(shape, ConstexprFunction)
    assert shape(core.constexpr(2), m=core.constexpr(3)) == (2, 3)
    assert shape([core.constexpr(2)], core.tuple([core.constexpr(1), core.constexpr(2)])) == ([2], (1, 2))


def test_constexpr_functions_as_methods() -> None:
    class Thing:
        size = 3

        @constexpr_function
        def scaled(self, by):
            return self.size * by

    assert Thing().scaled(core.constexpr(2)) == 6
    assert isinstance(Thing.scaled, ConstexprFunction)


def test_the_source_of_a_constexpr_function_can_be_replaced(tmp_path: Path) -> None:
    source = "@constexpr_function\ndef flag():\n    return False\n@jit\ndef kernel(x):\n    return flag()\n"
    module = load_module(tmp_path, HEADER + source)
    before, text = module.kernel.cache_key, module.flag.src
    module.flag._unsafe_update_src(text.replace("False", "True"))
    assert module.kernel.has_changed() and module.kernel.current_key() != before
    module.flag._unsafe_update_src(text)
    assert module.kernel.current_key() == before
