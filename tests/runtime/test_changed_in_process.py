"""What was read while a kernel was compiled is changed while the program runs: the kernel is compiled anew.

Little is compiled here: the key of the kernel is asked before the change and after it.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import linecache
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.base import CapturedGlobalError

HEAD = """import abc, argparse, collections, dataclasses, enum, functools, math, types
import numpy as np
import weft
import weft.language as tl
import {conf} as conf
"""
KERNEL = "\n@weft.jit\ndef kernel(x): tl.store(x, f())\n"
F = "@weft.constexpr_function\ndef f(): return "
LOCAL = "@weft.constexpr_function\ndef f():\n    a = A()\n    return "
HOLDER = "class C:\n    def __init__(s, v): s.v = v\n    def __call__(s): return s.v\n    def get(s): return s.v\n"
ALIKE = """class M(type):
    def __eq__(s, o): return True
    def __hash__(s): return 0
class A(metaclass=M): v = 1
class B(metaclass=M): v = 2
T = A
@weft.constexpr_function
def f():
    t = T
    return t.v
"""
numbers = itertools.count()


def load(directory: Path, name: str, text: str) -> Any:
    path = directory / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    linecache.cache.pop(str(path), None)
    module = sys.modules[name] = types.ModuleType(name)
    module.__spec__ = importlib.util.spec_from_file_location(name, path)
    exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    return module


def program(directory: Path, text: str, conf: str = "") -> tuple[Any, Any]:
    number = next(numbers)
    other = load(directory, f"conf_that_changes_{number}", conf)
    text = HEAD.format(conf=other.__name__) + text + ("" if "kernel" in text else KERNEL)
    return load(directory, f"program_that_changes_{number}", text), other


CHANGES = {
    # names, in the module and in others
    "a module's name means another": (F + "conf.v", "m.conf = types.SimpleNamespace(v=2)", "v = 1"),
    "and so in a kernel": (
        "@weft.jit\ndef kernel(x): tl.store(x, conf.V)",
        "m.conf = types.ModuleType('other'); m.conf.V = m.tl.constexpr(2)",
        "import weft.language as tl\nV = tl.constexpr(1)",
    ),
    "a library's name means another": (F + "math.floor(1.5)", "m.math = types.SimpleNamespace(floor=lambda x: 2)"),
    "a builtin gets another meaning": (F + "abs(-1)", "m.abs = lambda x: 2"),
    "a builtin of a kernel": ("@weft.jit\ndef kernel(x): tl.store(x, min(1, 2))\n", "m.min = max"),
    "None becomes a value": ("A = None\n" + F + "1 if A is None else 2", "m.A = 3"),
    "None becomes a jit function": (
        "@weft.jit\ndef g(): return 2\nG = None\n@weft.jit\ndef kernel(x):\n    if G is not None: tl.store(x, G())\n",
        "m.G = m.g",
    ),
    "a captured jit function": (
        "def made():\n    @weft.jit\n    def h(): return 1\n    @weft.jit\n    def k(x): tl.store(x, h())\n"
        "    def put(v):\n        nonlocal h\n        h = v\n    return k, put\nkernel, put = made()\n"
        "@weft.jit\ndef two(): return 2\n",
        "m.put(m.two)",
    ),
    # things that can be called
    "another partial": ("g = functools.partial(max, 1)\n" + F + "g(0)", "m.g = functools.partial(max, 2)"),
    "a partial's list": (
        "L = [1]\ng = functools.partial(lambda l: l[0], L)\n" + F + "g()",
        "m.L[0] = 2",
    ),
    "an object that is called": (HOLDER + "g = C(1)\n" + F + "g()", "m.g.v = 2"),
    "another object that is called": (HOLDER + "g = C(1)\n" + F + "g()", "m.g = m.C(2)"),
    "another bound method": (HOLDER + "g = C(1).get\n" + F + "g()", "m.g = m.C(2).get"),
    "the object of a bound method": (HOLDER + "c = C(1)\ng = c.get\n" + F + "g()", "m.c.v = 2"),
    "a cached function": ("@functools.lru_cache\ndef g(): return 1\n" + F + "g()", "m.g = functools.lru_cache(int)"),
    "another builtin": ("g = min\n" + F + "g(1, 2)", "m.g = max"),
    "a dispatched function": (
        "@functools.singledispatch\ndef g(x): return 1\n" + F + "g(1)",
        "m.g.register(int, lambda x: 2)",
    ),
    # parts of functions, which tools that load code anew replace
    "defaults": ("@weft.constexpr_function\ndef f(a=1): return a\n", "m.f.fn.__defaults__ = (2,)"),
    "a default that is a list": ("def g(a=[1]): return a[0]\n" + F + "g()", "m.g.__defaults__[0][0] = 2"),
    "defaults of keywords": ("def g(*, a=1): return a\n" + F + "g()", "m.g.__kwdefaults__['a'] = 2"),
    "the code": ("def g(): return 1\n" + F + "g()", "m.g.__code__ = (lambda: 2).__code__"),
    "attributes of a function": ("def g(): return g.v\ng.v = 1\n" + F + "g()", "m.g.v = 2"),
    "the function itself": ("@weft.constexpr_function\ndef g(): return 1\n" + F + "g()", "m.g.fn = lambda: 2"),
    "an object as a callee's default": (
        HOLDER + "c = C(1)\n@weft.jit\ndef g(v: tl.constexpr = c): return v.v\n@weft.jit\ndef kernel(x): g()\n",
        "m.c.v = 2",
    ),
    # classes
    "a static method": (
        "class A:\n    @staticmethod\n    def g(): return 1\n" + LOCAL + "a.g()",
        "m.A.g = staticmethod(int)",
    ),
    "a special method": ("class A:\n    def __len__(s): return 1\n" + LOCAL + "len(a)", "m.A.__len__ = lambda s: 2"),
    "__init__": (
        "class A:\n    def __init__(s): s.v = 1\n" + LOCAL + "a.v",
        "m.A.__init__ = lambda s: setattr(s, 'v', 2)",
    ),
    "a member that was None": ("class A: v = None\n" + LOCAL + "a.v", "m.A.v = 3"),
    "classes above": ("class B: v = 1\nclass D: v = 2\nclass A(B): pass\n" + LOCAL + "a.v", "m.A.__bases__ = (m.D,)"),
    "the class of an object": ("class B: v = 1\nclass Z(B): v = 2\na = B()\n" + F + "a.v", "m.a.__class__ = m.Z"),
    "classes registered": (
        "class R(abc.ABC): pass\nclass A: pass\n" + LOCAL + "isinstance(a, R)",
        "m.R.register(m.A)",
    ),
    "an attribute of a constant of an enum": (
        "class E(enum.Enum):\n    A = 1\nE.A.v = 1\n@weft.constexpr_function\ndef f():\n    e = E.A\n    return e.v\n",
        "m.E.A.v = 2",
    ),
    "defaults of a named tuple": (
        "P = collections.namedtuple('P', 'a', defaults=[1])\n" + F + "P().a",
        "m.P.__new__.__defaults__ = (2,)",
    ),
    "classes that say they are equal": (ALIKE, "m.T = m.B"),
    "classes that cannot be hashed": (ALIKE.replace("def __hash__(s): return 0", "__hash__ = None"), "m.T = m.B"),
    # what changes in place
    "an array": ("T = np.array([1])\n" + F + "T[0]", "m.T[0] = 2"),
    "a deque": ("T = collections.deque([1])\n" + F + "T[0]", "m.T[0] = 2"),
    "a UserDict": ("T = collections.UserDict(a=1)\n" + F + "T['a']", "m.T['a'] = 2"),
    "a ChainMap": ("T = collections.ChainMap({'a': 1})\n" + F + "T['a']", "m.T['a'] = 2"),
    "a bytearray": ("T = bytearray([1])\n" + F + "T[0]", "m.T[0] = 2"),
    "what a memoryview shows": ("T = memoryview(bytearray([1]))\n" + F + "T[0]", "m.T[0] = 2"),
    "what a mapping shows": ("U = {'a': 1}\nT = types.MappingProxyType(U)\n" + F + "T['a']", "m.U['a'] = 2"),
    "a namespace": ("T = types.SimpleNamespace(a=types.SimpleNamespace(b=1))\n" + F + "T.a.b", "m.T.a.b = 2"),
    "arguments": ("T = argparse.Namespace(a=1)\n" + F + "T.a", "m.T.a = 2"),
    "an int becomes a float": ("T = [1]\n" + F + "T[0]", "m.T[0] = 1.0"),
    "0 becomes -0": ("T = (0.0,)\n" + F + "T[0]", "m.T = (-0.0,)"),
    "the order of a dict": ("T = {'a': 1, 'b': 2}\n" + F + "list(T)[0]", "v = m.T.pop('a'); m.T['a'] = v"),
    "a field that does not compare": (
        "@dataclasses.dataclass\nclass D:\n    a: int = dataclasses.field(compare=False)\nT = [D(1)]\n" + F + "T[0].a",
        "m.T[0].a = 2",
    ),
    "a private attribute of a dataclass": (
        "@dataclasses.dataclass\nclass D:\n    a: int = 1\n    def get(s): return s._b\nT = D()\nT._b = 1\n"
        + F
        + "T.get()",
        "m.T._b = 2",
    ),
    "an object that is equal to all": (
        "class A:\n    def __init__(s, v): s.v = v\n    def __eq__(s, o): return True\n    __hash__ = None\n"
        "T = [A(1)]\n" + F + "T[0].v",
        "m.T[0].v = 2",
    ),
    "a constant that is an object": (
        "class C: pass\nc = C(); c.v = 1\nT = tl.constexpr(c)\n@weft.jit\ndef kernel(x): tl.store(x, T.v)",
        "m.c.v = 2",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_noticed(what: str, tmp_path: Path) -> None:
    text, change, conf = (*CHANGES[what], "")[:3]
    module, other = program(tmp_path, text, conf)
    kernel = module.kernel
    before = kernel.current_key()
    assert not kernel.has_changed() and kernel.current_key() == before
    exec(change, {"m": module, "conf": other, "functools": functools, "types": types})
    assert kernel.has_changed() and kernel.current_key() != before
    assert not kernel.has_changed()


def test_a_constant_of_a_launched_kernel_that_changes_in_place_is_an_error(tmp_path: Path) -> None:
    """And what has not changed is none, though two objects of its class are never equal."""
    module, _ = program(tmp_path, "class C: pass\nT = [C()]\nT[0].v = 1\n" + F + "T[0].v")
    out = np.zeros(1, np.float32)
    module.kernel[(1,)](out)
    module.kernel[(1,)](out)
    assert out[0] == 1
    module.T[0].v = 2
    with pytest.raises(CapturedGlobalError, match="Global variable T has changed"):
        module.kernel[(1,)](out)


@pytest.mark.parametrize(
    "text",
    [
        "D = collections.defaultdict(lambda: 1)\n" + F + "D['x']",
        "D = {}\n@weft.constexpr_function\ndef f():\n    return D.setdefault('x', 1)\n",
        "class C:\n    n = 0\n@weft.constexpr_function\ndef f():\n    C.n += 1\n    return 1\n",
    ],
)
def test_what_functions_change_themselves_is_no_change(text: str, tmp_path: Path) -> None:
    module, _ = program(tmp_path, text)
    out = np.zeros(1, np.float32)
    made = [module.kernel[(1,)](out) for _ in range(3)]
    assert out[0] == 1 and made[0] is made[1] is made[2]


def test_functions_that_changed_run_again(tmp_path: Path) -> None:
    module, _ = program(tmp_path, HOLDER + "g = C(1)\n" + F + "g()")
    out = np.zeros(1, np.float32)
    for value in (1, 2, 3):
        module.g.v = value
        module.kernel[(1,)](out)
        assert out[0] == value


def test_a_module_as_a_constant_cannot_be_followed(tmp_path: Path) -> None:
    module, other = program(tmp_path, "@weft.jit\ndef kernel(x, C: tl.constexpr): tl.store(x, C.v)", "v = 1")
    source = weft.ASTSource(module.kernel, {"x": "*fp32"}, {"C": other})
    assert source.unfollowed == [f"module {other.__name__}"]


def test_modules_of_one_name_do_not_share_a_kernel(tmp_path: Path) -> None:
    module, _ = program(tmp_path, "@weft.jit\ndef kernel(x, C: tl.constexpr): tl.store(x, C.v)")
    out = np.zeros(1, np.float32)
    for value in (1, 2):
        other = types.ModuleType("settings_of_one_name")
        other.v = value  # type: ignore[attr-defined]
        module.kernel[(1,)](out, other)
        assert out[0] == value
