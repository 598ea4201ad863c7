"""docs/reference/errors.md holds kernels with mistakes, and under each the whole text of its error or warning.

python tests/frontend/test_errors_page.py --update      # write what Weft says now; then read the difference
"""

from __future__ import annotations

import linecache
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from weft import compiler, language as tl
from weft.base import CompilationError, OffsetOverflowWarning
from weft.language.callable import jit
from weft.runtime import wrapping

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n```text\n(?P<text>.*?)```\n", re.DOTALL)


class _Weft:
    """What the examples call `weft`."""

    jit = staticmethod(jit)


def error_text(code: str) -> str:
    """What compiling the kernel of an example says."""
    linecache.cache["k.py"] = (len(code), None, code.splitlines(keepends=True), "k.py")
    space: dict[str, Any] = {"weft": _Weft, "tl": tl, "__name__": "k"}
    try:
        exec(compile(code, "k.py", "exec", dont_inherit=True), space)
        kernel = space["kernel"]
        signature, constants = {}, {}
        for name in kernel.arg_names:
            if name.isupper():
                signature[name], constants[name] = "constexpr", 16
            else:
                signature[name] = "*fp32" if name.endswith("_ptr") else "i32"
        return _told(compiler.ASTSource(kernel, signature, constants))
    finally:
        del linecache.cache["k.py"]


def _told(source: compiler.ASTSource) -> str:
    """The error of a source, or its warning."""
    try:
        found = compiler.compile(source).metadata.wrapped_offsets
    except CompilationError as error:
        return str(error)
    wrapping._told.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrapping.warn_of_wrapping(found)
    assert [w.category for w in caught] == [OffsetOverflowWarning]
    return str(caught[0].message)


EXAMPLES = [(m["code"], m["text"]) for m in EXAMPLE.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("code", "text"), EXAMPLES, ids=[str(i) for i in range(len(EXAMPLES))])
def test_the_text_of_an_error(code: str, text: str) -> None:
    assert error_text(code) + "\n" == text


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 20


if __name__ == "__main__" and "--update" in sys.argv:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        EXAMPLE.sub(lambda m: f"```python\n{m['code']}```\n```text\n{error_text(m['code'])}\n```\n", page),
        encoding="utf-8",
    )
