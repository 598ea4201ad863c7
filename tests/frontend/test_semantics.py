"""The rules of the language, one small kernel each (semantics.txt), here and in Triton.

The cases marked `structured` mean the same in another form: early returns are nested `if`s here and jumps in Triton;
calls are traced in place; an unsigned bound of a loop is widened as unsigned (Triton widens it as signed); a step that
is known only when the kernel runs may be negative, so the loop counts its iterations, as one over unsigned numbers
does.
"""

from __future__ import annotations

import collections
import importlib.util
import linecache
import math
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from frontend.triton_oracle import OPTIONS, canonical, through_triton, triton_ir_of
from weft import ir, language as weft_language
from weft.base import CompilationError
from weft.frontend import ast_to_ttir
from weft.language.callable import JITCallable, constexpr_function

HAVE_TRITON = importlib.util.find_spec("triton") is not None
TEXT = (Path(__file__).parent / "semantics.txt").read_text(encoding="utf-8")
CASE = re.compile(
    r"^\[case (?P<name>\w+)\] (?P<kind>\w+)\n(?:\[types\] (?P<types>[^\n]*)\n)?(?P<code>.*?)(?=^\[case |\Z)",
    re.MULTILINE | re.DOTALL,
)
CASES = {match["name"]: match for match in CASE.finditer(TEXT)}
DEFAULT_TYPES = "x='*fp32', n='i32'"
KINDS = {"same", "structured", "refused", "extension", "stricter"}


class _Weft:
    """What the cases call `triton`, for Weft."""

    constexpr_function = staticmethod(constexpr_function)

    @staticmethod
    def jit(fn: Any = None, *, noinline: bool = False) -> Any:
        return JITCallable(fn, noinline=noinline) if fn is not None else _Weft.jit


def kernel_of(name: str, triton: Any, language: Any) -> Any:
    """The kernel `k` of a case, made with this or that Triton."""
    code = CASES[name]["code"]
    file = f"<case {name} {language.__name__}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    space = {"triton": triton, "tl": language, "collections": collections, "math": math, "__name__": name}
    exec(compile(code, file, "exec", dont_inherit=True), space)
    return space["k"]


def types_of(name: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Signature and compile-time values of a case."""
    given = eval(f"dict({CASES[name]['types'] or DEFAULT_TYPES})")
    known = {k: v[1] for k, v in given.items() if isinstance(v, tuple)}
    return {k: "constexpr" if k in known else v for k, v in given.items()}, known


def our_ir(name: str) -> str:
    """Tile IR of a case, printed."""
    signature, known = types_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = ast_to_ttir(kernel_of(name, _Weft, weft_language), signature, known, None, OPTIONS, "cuda:90")
    return ir.print_module(module)


def their_ir(name: str) -> str:
    """The same by the real Triton."""
    import triton
    import triton.language

    signature, known = types_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = kernel_of(name, triton, triton.language)
        values = {(kernel.arg_names.index(k),): v for k, v in known.items()}
        return triton_ir_of(kernel, signature, values)


def test_the_file_is_well_formed() -> None:
    assert len(CASES) == TEXT.count("\n[case ")
    assert {match["kind"] for match in CASES.values()} == KINDS


@pytest.mark.parametrize("name", CASES)
def test_what_weft_does(name: str) -> None:
    if CASES[name]["kind"] in ("refused", "stricter"):
        with pytest.raises(CompilationError) as caught:
            our_ir(name)
        assert caught.value.span is not None
        assert str(caught.value).startswith(f"<case {name} ")
    else:
        text = our_ir(name)
        assert ir.print_module(ir.parse_module(text)) == text


@pytest.mark.skipif(not HAVE_TRITON, reason="compares with Triton")
@pytest.mark.parametrize("name", CASES)
def test_what_triton_does(name: str, tmp_path: Path) -> None:
    kind = CASES[name]["kind"]
    if kind in ("refused", "extension"):
        with pytest.raises(Exception):
            their_ir(name)
    else:
        theirs = through_triton(their_ir(name), {}, tmp_path / "theirs.ttir")
    if kind not in ("refused", "stricter"):
        ours = through_triton(our_ir(name), {}, tmp_path / "ours.ttir")
    if kind == "same":
        assert canonical(ours) == canonical(theirs)
    if kind == "structured":
        assert canonical(ours) != canonical(theirs), "no difference any more: mark it `same`"
