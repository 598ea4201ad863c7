"""Each ingredient of the key, changed alone: the key changes; what does not count is changed: it stays.

The programs are loaded anew for each change, as another process would load them, and the key is that of the disk.
"""

from __future__ import annotations

import builtins
import decimal
import hashlib
import importlib.util
import linecache
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import weft
from weft import compiler, knobs
from weft.backends.cpu.driver import host_cpu
from weft.compiler import ASTSource, cache_key, make_options, stages
from weft.compiler.sources import trace_unfollowed
from weft.language.keys import kind_of_module
from weft.runtime.files import PACKAGE, _files, compiler_key

CONF = """
import functools
class Tree:
    class Branch:
        leaf = 3
        def grow(self): return 4
class Base:
    inherited = 5
class Derived(Base):
    own = 6
    @classmethod
    def made(cls): return cls.own
    @staticmethod
    def plain(): return 7
    @property
    def asked(self): return 8
LIMIT = 9
TABLE = {"a": [10, 11]}
def helper(): return 12
def outer(): return helper() + LIMIT
def with_default(x=13, *, y=14): return x + y
def around(n):
    def inner(): return n
    return inner
captured = around(15)
def doubled(f):
    @functools.wraps(f)
    def twice(): return 2 * f()
    return twice
@doubled
def wrapped(): return 16
@functools.lru_cache
def cached(): return 17
bound = functools.partial(max, 18)
class Point:
    __slots__ = ("x",)
    def __init__(self): self.x = 19
POINT = Point()
UNUSED = 100
def unused(): return 101
"""

MAIN = '''
import enum
import functools
from typing import NamedTuple
import numpy as np
import weft
import weft.language as tl
import conf_of_ingredients as conf
from conf_of_ingredients import outer as imported

SIZE = tl.constexpr(20)
PAIR = tl.constexpr((21, 22))
ANNOTATED: tl.constexpr = tl.constexpr(23)
LOOKED_UP = {"k": 24}
ARRAY = np.array([25])
class Colour(enum.Enum):
    RED = 26
class Shape(NamedTuple):
    width: int = 27
    def area(self): return self.width * 28
class Holder:
    value = 29
    def __init__(self, x): self.x = x
    def __call__(self): return 30
HELD = Holder(31)
add_one = lambda: 32
UNUSED = tl.constexpr(102)

@weft.constexpr_function
def from_class(): return Holder.value + conf.Tree.Branch.leaf + conf.Derived.inherited
@weft.constexpr_function
def from_methods():
    return conf.Derived.made() + conf.Derived.plain() + conf.Derived().asked + conf.Tree.Branch().grow()
@weft.constexpr_function
def from_functions(): return imported() + conf.with_default() + conf.captured() + conf.wrapped() + conf.cached()
@weft.constexpr_function
def from_values():
    return conf.TABLE["a"][1] + conf.bound(0) + conf.POINT.x + LOOKED_UP["k"] + ARRAY[0] + HELD.x + HELD() + add_one()
@weft.constexpr_function
def from_types(): return Colour.RED.value + Shape().area() + [LOOKED_UP["k"] for _ in range(2)][0]
@weft.constexpr_function
def by_argument(x, k=33): return x + k

@tl.core._aggregate
class Pair:
    a: tl.constexpr
    b: tl.constexpr = 34
    @weft.jit
    def total(self): return self.a + self.b + 35

def factory(n):
    N = tl.constexpr(n)
    @weft.jit
    def scaled(x): return x * N
    return scaled
scaled = factory(36)

@weft.jit
def leaf(x): return x + 37
@weft.jit
def callee(x, k: tl.constexpr = 38): return leaf(x) + k
@weft.jit
def not_called(x): return x + 103

# a comment
@weft.jit
def kernel(x, n, BLOCK: tl.constexpr, D: tl.constexpr, step=39):
    """text"""
    v = tl.load(x) + n + SIZE + PAIR[1] + ANNOTATED + step
    v = callee(v) + scaled(v) + Pair(1).total() + conf.Derived.own
    tl.store(x, v + from_class() + from_methods() + from_functions() + from_values() + from_types() + by_argument(40))
'''


def load(directory: Path, name: str, text: str) -> ModuleType:
    path = directory / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    linecache.cache.pop(str(path), None)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def program(directory: Path, main: str = MAIN, conf: str = CONF) -> Any:
    """The kernel of a program."""
    load(directory, "conf_of_ingredients", conf)
    return load(directory, "main_of_ingredients", main).kernel


SIMPLE = """
import weft
import weft.language as tl
@weft.jit
def kernel(x): tl.store(x, 1)
"""

SIGNATURE = {"x": "*fp32", "n": "i32", "BLOCK": "constexpr", "D": "constexpr", "step": "i32"}


def key(
    kernel: Any,
    signature: dict[str, Any] = SIGNATURE,
    block: Any = 64,
    attrs: dict[Any, Any] | None = None,
    target: str = "cpu",
    extra: dict[str, str] | None = None,
    **options: Any,
) -> str:
    source = ASTSource(kernel, signature, {"BLOCK": block, "D": 1}, {(0,): [["tt.divisibility", 16]]} | (attrs or {}))
    chosen, opts = compiler.as_target(target), make_options(options)
    trace_unfollowed(source, opts.language, chosen)
    return cache_key(source, chosen, opts, extra)


@pytest.fixture(autouse=True)
def forget_modules() -> Iterator[None]:
    yield
    for name in ("conf_of_ingredients", "main_of_ingredients"):
        sys.modules.pop(name, None)


def edited(text: str, number: int) -> str:
    """A program in which one number is another."""
    assert text.count(str(number)) == 1, number
    return text.replace(str(number), str(number + 500))


IN_CONF = (*range(10, 20), *range(3, 10))
IN_MAIN = range(20, 41)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return key(program(tmp_path_factory.mktemp("base")))


def test_numbers_of_another_module(tmp_path: Path, base: str) -> None:
    """Class attributes, nested ones, inherited ones, methods, properties, functions, defaults, closures, wrappers."""
    keys = {}
    for number in IN_CONF:
        text = re.sub(rf"(?<=[ =(\[]){number}\b", str(number + 500), CONF, count=1)
        assert text != CONF, number
        keys[number] = key(program(tmp_path, conf=text))
    assert len({base, *keys.values()}) == 1 + len(IN_CONF)


def test_numbers_of_the_kernels_module(tmp_path: Path, base: str) -> None:
    """Globals, tuples, enums, named tuples, objects, lambdas, aggregates, factories, callees, defaults, the source."""
    keys = {n: key(program(tmp_path, main=edited(MAIN, n))) for n in IN_MAIN}
    assert len({base, *keys.values()}) == 1 + len(IN_MAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def leaf(x): return x + 37", "def leaf(x): return x - 37"),
        ("SIZE = tl.constexpr(20)", "SIZE = tl.constexpr(20.0)"),
        ("SIZE = tl.constexpr(20)", "SIZE = 20"),  # a kernel cannot read it
        ("D: tl.constexpr, step", "D: tl.constexpr, *, step"),
        ("def callee(", "def called("),
        ("@weft.jit\ndef leaf", "@weft.jit(noinline=True)\ndef leaf"),
        ("LOOKED_UP = {", "LOOKED_UP = {0: 0, "),
        ("np.array([25])", "np.array([25], np.int16)"),
        ("k=33): return x + k", "k=33): return k + x"),
    ],
)
def test_other_changes_of_the_source(tmp_path: Path, base: str, old: str, new: str) -> None:
    assert MAIN.count(old) == 1
    changed = MAIN.replace(old, new)
    if old == "def callee(":
        changed = changed.replace("v = callee(v)", "v = called(v)")
    assert key(program(tmp_path, main=changed)) != base


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("UNUSED = tl.constexpr(102)", "UNUSED = tl.constexpr(0)"),
        ("return x + 103", "return x"),
        ("# a comment\n", "\n\n# another\n"),
        ("import enum\n", "import enum\nimport json\n"),
        ("def by_argument(x, k=33): return x + k", "def by_argument(x, k=33):\n    # the sum\n    return x + k"),
    ],
)
def test_what_does_not_count(tmp_path: Path, base: str, old: str, new: str) -> None:
    assert MAIN.count(old) == 1
    assert key(program(tmp_path, main=MAIN.replace(old, new))) == base
    unused = CONF.replace("UNUSED = 100", "UNUSED = 1").replace("return 101", "return 1")
    assert unused != CONF and key(program(tmp_path, conf="# moved\n" + unused)) == base


def test_places_count_where_checks_tell_them(tmp_path: Path) -> None:
    """Of the kernel, of what it calls and of what it is given; the name of a file of IR too."""
    text = "import weft, weft.language as tl\n{}@weft.jit\ndef callee(x): tl.store(x, 1)\n{}@weft.jit\n"
    text += "def kernel(x, F: tl.constexpr): F(x)\n"

    def keys(*between: str) -> list[str]:
        module = load(tmp_path, "main_of_ingredients", text.format(*between))
        source = ASTSource(module.kernel, {"x": "*fp32"}, {"F": module.callee})
        return [cache_key(source, compiler.as_target("cpu"), make_options({"debug": debug})) for debug in (False, True)]

    plain, checked = zip(keys("", ""), keys("# a\n", ""), keys("", "# b\n\n"), strict=True)
    assert len({*plain}) == 1 and len({*checked}) == 3
    files = [compiler.IRSource("module {}", "k", path=path) for path in ("a.ttir", "b.ttir")]
    for debug, wanted in ((False, 1), (True, 2)):
        assert len({cache_key(f, compiler.as_target("cpu"), make_options({"debug": debug})) for f in files}) == wanted


def test_the_same_program_has_the_same_key(tmp_path: Path, base: str) -> None:
    assert key(program(tmp_path)) == base  # in another folder


def changes_of_the_launch(kernel: Any) -> dict[str, Callable[[], str]]:
    """What a launch says, one thing changed in each."""
    return {
        "element type": lambda: key(kernel, {**SIGNATURE, "x": "*fp16"}),
        "constant pointer": lambda: key(kernel, {**SIGNATURE, "x": "*kfp32"}),
        "width of an integer": lambda: key(kernel, {**SIGNATURE, "n": "i64"}),
        "an integer that is 1": lambda: key(kernel, {**SIGNATURE, "n": "constexpr"}, attrs={}),
        "divisibility": lambda: key(kernel, attrs={(1,): [["tt.divisibility", 16]]}),
        "no alignment": lambda: key(kernel, attrs={(0,): []}),
        "constant": lambda: key(kernel, block=128),
        "constant of another type": lambda: key(kernel, block=64.0),
        "constant in a tuple": lambda: key(kernel, block=(64,)),
        "constant in a list": lambda: key(kernel, block=[64]),
        "function": lambda: key(kernel, block=kernel),
        "num_warps": lambda: key(kernel, num_warps=8),
        "num_stages": lambda: key(kernel, num_stages=2),
        "num_ctas": lambda: key(kernel, num_ctas=2),
        "debug": lambda: key(kernel, debug=True),
        "sanitize_overflow": lambda: key(kernel, sanitize_overflow=False),
        "enable_fp_fusion": lambda: key(kernel, enable_fp_fusion=False),
        "precision of dot": lambda: key(kernel, default_dot_input_precision="tf32"),
        "allowed precisions": lambda: key(kernel, allowed_dot_input_precisions=("ieee", "tf32")),
        "imprecise sums": lambda: key(kernel, max_num_imprecise_acc_default=32),
        "unroll budget": lambda: key(kernel, unroll_budget=10),
        "vector width": lambda: key(kernel, vector_bits=128),
        "processor": lambda: key(kernel, cpu="x86-64-v2"),
        "features": lambda: key(kernel, cpu="x86-64-v2", features="+avx"),
        "aliasing": lambda: key(kernel, assume_no_alias=False),
        "matrix units": lambda: key(kernel, matrix_units=False),
        "globals allowed": lambda: key(kernel, allow_non_constexpr_globals=True),
        "target": lambda: key(kernel, target="cuda:80"),
        "suffix of the target": lambda: key(kernel, target="cuda:90"),
        "environment": lambda: key(kernel, extra={"compiler": "x"}),
        "another environment": lambda: key(kernel, extra={"compiler": "y"}),
    }


def test_types_constants_options_and_targets(tmp_path: Path, base: str) -> None:
    kernel = program(tmp_path)
    keys = {what: changed() for what, changed in changes_of_the_launch(kernel).items()}
    assert len({base, *keys.values()}) == 1 + len(keys)


def test_versions_the_processor_and_the_compilers_files(
    tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = program(tmp_path)
    monkeypatch.setattr(stages, "versions", lambda: "another version")
    other = key(kernel)
    monkeypatch.undo()
    monkeypatch.setattr(type(host_cpu()), "fingerprint", lambda self: "another processor")
    assert len({base, other, key(kernel)}) == 3
    monkeypatch.undo()
    assert key(kernel) == base and host_cpu().fingerprint()
    assert len(compiler_key()) == len(hashlib.sha256().hexdigest())


def test_every_file_of_the_compiler_is_in_the_key() -> None:
    """Tables and LLVM IR too, and whatever else it may read."""
    counted = {fact.split(" ")[0] for fact in _files(PACKAGE)}
    rest = [file for file in Path(PACKAGE).rglob("*") if file.is_file() and file.name not in counted]
    pages = [Path(PACKAGE) / room / "page" for room in ("view", "explain")]  # what a browser shows
    unread = (".pyc", ".pyi")  # what Python makes, and what type checkers read
    assert [f for f in rest if f.suffix not in unread and f.parent not in pages and f.name != "py.typed"] == []
    assert "workers.ll" in counted


@pytest.mark.parametrize(
    ("reads", "noted"),
    [
        ("int(os.environ['WEFT_TEST_VALUE'])", "os.environ"),
        ("int(os.getenv('WEFT_TEST_VALUE'))", "os.getenv"),
        ("int(open(FILE).read())", "open"),
        ("int(pathlib.Path(FILE).read_text())", "pathlib.Path"),
        ("__import__('conf_of_ingredients').LIMIT", "__import__"),
        ("importlib.import_module('conf_of_ingredients').LIMIT", "importlib.import_module"),
        ("sys.modules['conf_of_ingredients'].LIMIT", "sys.modules"),
        ("getattr(conf, 'LIMIT')", "module conf_of_ingredients"),
        ("imports_within()", "import conf_of_ingredients"),
        ("eval('conf.LIMIT')", "eval"),
        ("int(time.time_ns() * 0 + float(os.environ['WEFT_TEST_VALUE']))", "time.time_ns"),
        ("VARIABLE.get()", "an object of type ContextVar"),
        ("int(np.loadtxt(FILE))", "numpy.loadtxt"),
        ("int(np.fromfile(FILE, np.uint8)[0])", "numpy.fromfile"),
        ("int(from_numpy(FILE))", "numpy.loadtxt"),
        ("int(np.memmap(FILE, np.uint8, 'r')[0])", "numpy.memmap"),
        ("np.random.randint(1) + int(open(FILE).read())", "numpy.random.randint"),
        ("Above.__subclasses__()[0].value", "attribute __subclasses__"),
        ("imports_within.__globals__['MINE']", "attribute __globals__"),
        ("getattr(imports_within, '__globals__')['MINE']", "attribute __globals__"),
        ("operator.attrgetter('__globals__')(imports_within)['MINE']", "attribute __globals__"),
        ("GET(Holder)['MINE']", "attribute __globals__"),
        ("int(100 * float(decimal.Decimal(1) / decimal.Decimal(7)))", "decimal.Decimal"),
        ("annotated.__annotations__['a']", "attribute __annotations__"),
        ("typing.get_type_hints(annotated)['a'].__args__[0]", "attribute get_type_hints"),
    ],
)
def test_what_cannot_be_followed_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: str, noted: str
) -> None:
    """Its result is in the key: the same for the same value, another for another."""
    monkeypatch.setattr(decimal.getcontext(), "prec", 28)  # and so set back afterwards
    file = tmp_path / "value.txt"
    annotation = "typing.Literal[MINE]" if "hints" in reads else "MINE"
    text = f"""
import contextvars, decimal, importlib, operator, os, pathlib, sys, time, typing
import numpy as np
from numpy import loadtxt as from_numpy
import weft, weft.language as tl
import conf_of_ingredients as conf
FILE = {str(file)!r}
MINE = int(open(FILE).read())
decimal.getcontext().prec = MINE
class Holder:
    def get(self): pass
GET = operator.attrgetter("get.__globals__")
def annotated(a: {annotation}): pass
class Above: pass
class Below(Above): value = MINE
VARIABLE = contextvars.ContextVar("v", default=int(open(FILE).read()))
def imports_within():
    import conf_of_ingredients
    return conf_of_ingredients.LIMIT
@weft.constexpr_function
def outside(): return {reads}
@weft.jit
def kernel(x):
    tl.store(x, outside())
"""
    keys = []
    for value in (1, 2, 1):
        file.write_text(str(value))
        monkeypatch.setenv("WEFT_TEST_VALUE", str(value))
        kernel = program(tmp_path, text, f"LIMIT = {value}\n")
        source = ASTSource(kernel, {"x": "*fp32"})
        assert noted in source.unfollowed
        keys.append([])
        for target in ("cpu", "cuda:90"):
            trace_unfollowed(source, make_options({}).language, compiler.as_target(target))
            keys[-1].append(cache_key(source, compiler.as_target(target), make_options({})))
    assert keys[0] == keys[2] and keys[0][0] != keys[1][0] and keys[0][1] != keys[1][1]


@pytest.mark.parametrize(
    "given",
    [
        "class M(type):\n    @property\n    def own(cls): return {n}\nclass A(metaclass=M): pass\nf = lambda: A.own",
        "class M(type):\n    def __getattr__(cls, x): return {n}\nclass A(metaclass=M): pass\nf = lambda: A.own",
        "class A:\n  a1, a2 = 1, 2\n  __match_args__ = ('a{n}',)\ndef f():\n  match A():\n    case A(v): return v",
        "math.added_by_test = lambda: {n}\nf = lambda: math.added_by_test()",
        "math.added_by_test = {n}\nf = lambda: math.added_by_test",
        "np.added_by_test = {n}\nf = lambda: np.added_by_test",
        "np.linalg.added_by_test = lambda: {n}\nf = lambda: np.linalg.added_by_test()",
        "builtins.added_by_test = lambda: {n}\nf = lambda: added_by_test()",
        "math.added_by_test = weft.constexpr_function(lambda: {n})\nf = lambda: math.added_by_test()",
    ],
)
def test_metaclasses_and_what_was_put_into_libraries_count(
    tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (math, np, np.linalg, builtins):
        monkeypatch.setattr(module, "added_by_test", None, raising=False)  # and so removed afterwards

    def key_with(number: int) -> str:
        text = "import builtins, math\nimport numpy as np\nimport weft, weft.language as tl\n" + given.format(n=number)
        text += "\nf = weft.constexpr_function(f)\n@weft.jit\ndef kernel(x): tl.store(x, f())\n"
        kernel = program(tmp_path, text)
        source = ASTSource(kernel, {"x": "*fp32"})
        assert source.unfollowed == []
        return cache_key(source, compiler.as_target("cpu"), make_options({}))

    assert key_with(1) == key_with(1) != key_with(2)


FIELD = "@dataclasses.dataclass\nclass A:\n    a: int = "
MEMBER = "class A(enum.Enum):\n    R = 0\n    S = 1\n    T = 2\n    "


@pytest.mark.parametrize(
    "given",
    [
        FIELD + "0\n    def get(s): return s._b\nX = A()\nX._b = {n}\nf = lambda: X.get()",
        FIELD
        + "dataclasses.field(default=0, metadata={{'w': {n}}})\nf = lambda: dataclasses.fields(A)[0].metadata['w']",
        FIELD + "dataclasses.field(default=0, compare={n} == 1)\nf = lambda: int(A(1) == A(2))",
        "class A: a: typing.Literal[{n}]\ndef f(): return typing.get_args(dataclasses.dataclass(A).__name__)",
        "class A: a: typing.Annotated[int, {n}]\nf = lambda: A()",
        "T = typing.TypeVar('T')\nclass G(typing.Generic[T]): pass\nclass A(G[typing.Literal[{n}]]): pass\n"
        "def f():\n    a = A\n    return typing.get_args(a.__orig_bases__[0])[0]",
        MEMBER + "@classmethod\n    def _missing_(cls, v): return cls({n})\nf = lambda: A(9).value",
        MEMBER + "__w = {n}\n    def get(s): return s.__w\nf = lambda: A.R.get()",
        MEMBER + "@staticmethod\n    def _w(): return {n}\n    def get(s): return s._w()\nf = lambda: A.R.get()",
        MEMBER + "@property\n    def _w(s): return {n}\ndef f():\n    a = A.R\n    return a._w",
        MEMBER + "U = {n}\nf = lambda: A['U'].value",
        MEMBER + "\nA.R.w = {n}\nf = lambda: list(A)[0].w",
        "def g(): pass\ng.__name__ = 'a' * {n}\nf = lambda: len(g.__name__)",
        "class A: pass\nA.__name__ = 'a' * {n}\ndef f():\n    a = A\n    return len(a.__name__)",
        "M = np.zeros(4, np.int8)[::{n}][:2]\nf = lambda: M.strides[0]",
        "M = np.zeros(1)\nM.flags.writeable = {n} == 1\nf = lambda: int(M.flags.writeable)",
        "M = np.ma.array([1, 999999], mask=[0, {n} == 1])\nf = lambda: int(M.sum())",
        "class A(np.ndarray): pass\nM = np.zeros(1).view(A)\nM.w = {n}\nf = lambda: M.w",
        "class A(np.ndarray):\n    def w(s): return {n}\nM = np.zeros(1).view(A)\nf = lambda: M.w()",
        "g = functools.partial(max, 0)\ng.w = {n}\nf = lambda: g.w",
        "class P(functools.partial):\n    def w(s): return {n}\ng = P(max, 0)\nf = lambda: g.w()",
        "@functools.lru_cache\ndef g(): return 0\ng.w = {n}\nf = lambda: g.w",
        "class R(abc.ABC): pass\nclass A: pass\nif {n} == 1: R.register(A)\nf = lambda: int(isinstance(A(), R))",
        "class A:\n    __slots__ = ('__v',)\n    def __init__(s): s.__v = {n}\n    def get(s): return s.__v\n"
        "    def __reduce__(s): return A, ()\nX = A()\nf = lambda: X.get()",
        "X = types.MappingProxyType({{'w': {n}}})\nf = lambda: X['w']",
        "X = types.SimpleNamespace(w={n})\nf = lambda: X.w",
        "X = argparse.Namespace(w={n})\nf = lambda: X.w",
    ],
)
def test_what_classes_and_objects_keep_counts(tmp_path: Path, given: str) -> None:
    modules = "abc, argparse, dataclasses, enum, functools, types, typing"

    def key_with(number: int) -> str:
        text = f"import {modules}\nimport numpy as np\nimport weft, weft.language as tl\n" + given.format(n=number)
        text += "\nf = weft.constexpr_function(f)\n@weft.jit\ndef kernel(x): tl.store(x, f())\n"
        source = ASTSource(program(tmp_path, text), {"x": "*fp32"})
        assert source.unfollowed == []
        return cache_key(source, compiler.as_target("cpu"), make_options({}))

    assert key_with(1) == key_with(1) != key_with(2)


@pytest.mark.parametrize(
    "body",
    [
        "    t = [N * 1 for N in (1, 2)]\n    tl.store(x, N)\n",  # what a comprehension sets is gone after it
        "    if C:\n        N = 5\n    tl.store(x, N)\n",
        "    if C:\n        return\n    elif C:\n        N = 3\n    tl.store(x, N)\n",
        "    for N in tl.static_range(0):\n        pass\n    tl.store(x, N)\n",
        "    y = (N := N + 1)\n    tl.store(x, y)\n",
        "    y = C and (N := 2)\n    tl.store(x, N)\n",
        "    y = 1 if True else (N := 2)\n    tl.store(x, N)\n",
        "    N: tl.constexpr\n    tl.store(x, N)\n",
    ],
)
def test_a_name_that_may_have_no_value_yet_is_one_from_outside(tmp_path: Path, body: str) -> None:
    head = (
        "import weft, weft.language as tl\nC = tl.constexpr(False)\nN = tl.constexpr({n})\n@weft.jit\ndef kernel(x):\n"
    )
    keys = []
    for n in (1, 2, 1):
        kernel = program(tmp_path, head.format(n=n) + body)
        keys.append(kernel.current_key())
        out = np.zeros(1, np.float32)
        with knobs.cache.scope():
            knobs.cache.disabled = True
            kernel[(1,)](out)
        assert out[0] == (n + 1 if "N + 1" in body else n)
    assert keys[0] == keys[2] != keys[1]


def test_variables_of_a_kernel_are_not_those_of_its_module(tmp_path: Path) -> None:
    """Arrays of a script are called as the variables of its kernels are: they are neither read nor watched."""
    text = """
import numpy as np
import weft, weft.language as tl
x = bias = w = acc = np.zeros(4)
@weft.jit
def kernel(p, HAS: tl.constexpr):
    x = tl.load(p)
    if HAS:
        bias = x + 1
    if HAS:
        x += bias
    for i in range(2):
        w = x + i
        acc = w
    tl.store(p, x + acc)
"""
    kernel = program(tmp_path, text)
    out = np.zeros(1, np.float32)
    kernel[(1,)](out, True)
    key = kernel.current_key()
    assert out[0] == 3 and not kernel.used_global_vals
    sys.modules["main_of_ingredients"].bias = np.ones(4)  # type: ignore[attr-defined]
    assert kernel.current_key() == key
    with knobs.compilation.scope():
        knobs.compilation.allow_non_constexpr_globals = True
        text = text.replace("    if HAS:\n        x += bias", "    x += bias")
        with pytest.raises(weft.CompilationError) as caught:
            program(tmp_path, text)[(1,)](out, False)
    assert "bias is not defined" in str(caught.value) and (
        "hint: `bias` is set elsewhere in kernel, so it is a variable of the kernel; set it before too"
        in str(caught.value)
    )


@pytest.mark.parametrize(
    ("reads", "noted"),
    [
        ("weft.knobs.compilation.debug", ["knobs"]),
        ("knobs.compilation.debug", ["knobs"]),
        ("weft.cuda.device_count()", ["weft.cuda"]),
        ("weft.runtime.driver.active.utils.get_device_properties(0)", ["driver"]),
        ("weft.runtime.driver.active.get_current_target().warp_size", []),
        ("tl.extra.cuda.num_warps", []),
    ],
)
def test_settings_and_devices_cannot_be_followed(tmp_path: Path, reads: str, noted: list[str]) -> None:
    text = (
        f"import weft, weft.language as tl\nfrom weft import knobs\n@weft.constexpr_function\ndef f(): return {reads}\n"
    )
    kernel = program(tmp_path, text + "@weft.jit\ndef kernel(x): tl.store(x, f())\n")
    assert ASTSource(kernel, {"x": "*fp32"}).unfollowed == noted


def test_kernels_that_read_what_can_be_followed_are_not_traced_for_their_key(tmp_path: Path) -> None:
    assert ASTSource(program(tmp_path), SIGNATURE, {"BLOCK": 1, "D": 1}).unfollowed == []
    modules = ("math", "numpy", "weft.language", "torch.cuda", "conf_of_ingredients")
    assert [kind_of_module(m) for m in modules] == ["standard", "versioned", "versioned", "large", "user"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("allow_non_constexpr_globals", True), ("fp32_default", "tf32"), ("default_fp_fusion", False)],
)
def test_settings_are_options(name: str, value: Any, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = knobs.compilation if hasattr(knobs.compilation, name) else knobs.language
    kernel = program(fresh_cache.parent, SIMPLE)
    before = weft.compile(ASTSource(kernel, {"x": "*fp32"}))
    monkeypatch.setattr(group, name, value)
    after = weft.compile(ASTSource(kernel, {"x": "*fp32"}))
    assert before.hash != after.hash
