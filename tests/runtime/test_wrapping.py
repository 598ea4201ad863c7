"""Offsets that wrap: the warning when a kernel is compiled, and what `debug=True` finds when it runs.

Each kernel of `FLAGGED` wraps in the line marked `# wraps`. Those of `KNOWN` wrap by constants alone, and are warned of
when they are compiled; the others by their arguments. All are reported when they run with `debug=True`.
"""

from __future__ import annotations

import linecache
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from children import environment
from weft import DeviceAssertionError
from weft.base import OffsetOverflowWarning
from weft.runtime import wrapping

FILE = "wrapping_{}.py"
HEAD = "import weft\nimport weft.language as tl\n\n\n@weft.jit\n"


@pytest.fixture(autouse=True)
def _nothing_told() -> Iterator[None]:
    """Each test is told everything."""
    before = set(wrapping._told)
    wrapping._told.clear()
    yield
    wrapping._told.update(before)


def made(name: str, body: str) -> Any:
    """The kernel `k(x, out, n, ...)` of a body, in a file of its own that exists only for the tests."""
    parameters = "x, out, n, stride, S: tl.constexpr, B: tl.constexpr"
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    text = f"{HEAD}def k({parameters}):\n{lines}\n"
    file = FILE.format(name.replace(" ", "_"))
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec"), scope)
    return scope["k"]


# name: (the body, S, B, the stride); x and out have 64 elements, n is 64
KNOWN: dict[str, tuple[str, int, int]] = {
    "rows times a constant": ("o = tl.arange(0, B)\ntl.store(out + o, tl.load(x + o * S))  # wraps", 1 << 22, 1024),
    "the last element only": ("o = tl.arange(0, B)\ntl.store(x + o * S, 0.0)  # wraps", (1 << 31) // 15 + 1, 16),
    "a sum of two constants": ("o = tl.arange(0, B) + S\ntl.store(x + (o + S), 0.0)  # wraps", (1 << 30) - 8, 32),
    "below the smallest": ("o = tl.arange(0, B) * -S\ntl.store(x + (o - S), 0.0)  # wraps", (1 << 30) + 8, 2),
    "a shift": ("o = tl.arange(0, B)\ntl.store(x + (o << 24), 0.0)  # wraps", 1, 256),
    "two axes": (
        "i = tl.arange(0, B)[:, None]\nj = tl.arange(0, B)[None, :]\n"
        "tl.store(x + (i * S + j), tl.zeros([B, B], tl.float32))  # wraps",
        1 << 25,
        128,
    ),
    "a tile turned around": (
        "i = tl.arange(0, B)[:, None] * S + tl.arange(0, 4)[None, :]  # wraps\n"
        "tl.store(x + tl.trans(i), tl.zeros([4, B], tl.float32))",
        1 << 26,
        64,
    ),
    "the first program": (
        "o = tl.program_id(0) * B + tl.arange(0, B)\ntl.store(x + o * S, 0.0, mask=o < n)  # wraps",
        1 << 25,
        128,
    ),
    "a loop with known bounds": ("for i in range(0, 64):\n    tl.store(x + i * S, 0.0)  # wraps", 1 << 26, 1),
    "a loop from a large number": ("for i in range(64, 65):\n    tl.store(x + i * S, 0.0)  # wraps", 1 << 26, 1),
    "a loop that is unrolled": (
        "for i in tl.static_range(31, 34):\n    tl.store(x + (tl.arange(0, B) + i) * S, 0.0)  # wraps",
        1 << 25,
        32,
    ),
    "an offset that a loop moves": (
        "o = tl.arange(0, B)\nfor i in range(4):\n    tl.store(x + o, 0.0, mask=o * 0 + i > 2)\n    o += S  # wraps",
        1 << 30,
        4,
    ),
    "a helper of the language": ("o = tl.full([B], S, tl.int32)\ntl.store(x + o * 2, 0.0)  # wraps", 1 << 30, 4),
    "an unsigned offset": ("o = tl.arange(0, B).to(tl.uint32)\ntl.store(x + o * S, 0.0)  # wraps", 1 << 23, 1024),
    "sixteen bits": ("o = tl.arange(0, B).to(tl.int16)\ntl.store(x + o * S, 0.0)  # wraps", 100, 1024),
    "an atomic": ("o = tl.arange(0, B)\ntl.atomic_add(x + o * S, 1.0)  # wraps", 1 << 22, 1024),
    "a branch that is known": ("if S > 5:\n    tl.store(x + tl.arange(0, B) * S, 0.0)  # wraps", 1 << 22, 1024),
    "a branch that may be taken": ("if n > 5:\n    tl.store(x + tl.arange(0, B) * S, 0.0)  # wraps", 1 << 22, 1024),
    "after a remainder": ("o = tl.arange(0, B) % 64\ntl.store(x + o * S, 0.0)  # wraps", 1 << 26, 1024),
    "where both are known": (
        "o = tl.arange(0, B)\ntl.store(x + tl.where(o > 5, o * S, o), 0.0)  # wraps",
        1 << 22,
        1024,
    ),
    "added to something unknown": ("o = tl.arange(0, B)\ntl.store(x + (o * S + n), 0.0)  # wraps", 1 << 22, 1024),
    "an offset that is widened too late": (
        "o = tl.arange(0, B)\ntl.store(x + (o * S).to(tl.int64), 0.0)  # wraps",
        1 << 22,
        1024,
    ),
}
BY_ARGUMENTS: dict[str, str] = {
    "rows times a stride": "o = tl.arange(0, B)\ntl.store(x + o * stride, 0.0, mask=o < n)  # wraps",
    "a program times a stride": "tl.store(x + (tl.program_id(0) + 4) * stride, 0.0)  # wraps",
    "two strides": "o = tl.arange(0, B)\ntl.store(x + stride * n + o, 0.0)  # wraps",
    "a stride times a stride": "tl.store(x + tl.arange(0, B) + stride * stride, 0.0)  # wraps",
    "a size minus": "tl.store(x + (-stride - stride - stride), 0.0)  # wraps",
    "a loop over a stride": "for i in range(n):\n    tl.store(x + i * stride, 0.0)  # wraps",
    "carried by a loop": "o = stride\nfor i in range(4):\n    o += stride  # wraps\ntl.store(x + o, 0.0)",
    "an index from memory": (
        "i = tl.load(out + tl.arange(0, B)).to(tl.int32) + 5\ntl.store(x + i * stride, 0.0)  # wraps"
    ),
    "a block of a matrix": (
        "i = tl.arange(0, B)[:, None]\nj = tl.arange(0, B)[None, :]\n"
        "tl.store(x + (i * stride + j), tl.zeros([B, B], tl.float32))  # wraps"
    ),
    "a batch times a head": "b = tl.program_id(0) + 3\ntl.store(x + (b * n * stride + tl.arange(0, B)), 0.0)  # wraps",
}
CLEAN: dict[str, tuple[str, int, int]] = {
    "below the end": ("o = tl.arange(0, B)\ntl.store(x + o * S, 0.0)", ((1 << 31) - 1) // 1023, 1024),
    "above the other end": ("tl.store(x + (tl.arange(0, B) * -S), 0.0)", (1 << 31) // 1024, 1024),
    "widened": ("o = tl.arange(0, B).to(tl.int64)\ntl.store(x + o * S, 0.0)", 1 << 22, 1024),
    "unsigned, below its end": ("o = tl.arange(0, B).to(tl.uint32)\ntl.store(x + o * S, 0.0)", 1 << 22, 1024),
    "masked off": ("o = tl.arange(0, B)\ntl.store(x + o * S, 0.0, mask=o < 512)", 1 << 22, 1024),
    "masked off in part": (
        "o = tl.arange(0, B)\ntl.store(x + o * S, 0.0, mask=(o < n) & (o < 512))",
        1 << 22,
        1024,
    ),
    "a branch that is not taken": (
        "if tl.program_id(0) > 0:\n    tl.store(x + tl.arange(0, B) * S, 0.0)",
        1 << 22,
        1024,
    ),
    "a loop that does not run": ("for i in range(5, 5):\n    tl.store(x + (i << 30) * S, 0.0)", 1 << 22, 1024),
    "chosen only where it fits": (
        "o = tl.arange(0, B)\ntl.store(x + tl.where(o < 512, o * S, 0), 0.0)",
        1 << 22,
        1024,
    ),
    "a hash": (
        "h = (tl.arange(0, B) + 7) * -1640531527\ntl.store(x + (h & 63), 0.0)\ntl.store(x + (h >> 26), 0.0)",
        1,
        1024,
    ),
    "a remainder of what wraps": ("o = tl.arange(0, B) * S\ntl.store(x + (o % 64), 0.0)", 1 << 22, 1024),
    "no offset": ("tl.store(out + tl.arange(0, B), (tl.arange(0, B) * S).to(tl.float32))", 1 << 22, 1024),
    "an argument": ("tl.store(x + tl.arange(0, B) * stride, 0.0)", 1, 1024),
    "a loop's last iteration unused": (
        "o = tl.arange(0, B)\nfor i in range(2):\n    tl.store(x + o, 0.0)\n    o += S",
        (1 << 30) + 8,
        4,
    ),
}  # fmt: skip
FLAGGED = {**KNOWN, **{name: (body, 1, 16) for name, body in BY_ARGUMENTS.items()}}


def arguments(stride: int = 1 << 29) -> tuple[Any, ...]:
    return np.zeros(64, np.float32), np.zeros(64, np.float32), 64, stride


def line_of(name: str, body: str) -> str:
    """file:line of what is marked."""
    at = next(i for i, line in enumerate(body.split("\n")) if "# wraps" in line)
    return f"{FILE.format(name.replace(' ', '_'))}:{HEAD.count(chr(10)) + 2 + at}:"


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_is_warned_of(name: str) -> None:
    body, step, block = KNOWN[name]
    kernel = made(name, body)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel.warmup(*arguments(), S=step, B=block, grid=(1,))
        kernel.warmup(*arguments(), S=step, B=block, grid=(1,), num_warps=8)
    assert [w.category for w in caught] == [OffsetOverflowWarning]
    assert str(caught[0].message).startswith(line_of(name, body))
    assert (caught[0].filename, caught[0].lineno) == (FILE.format(name.replace(" ", "_")), caught[0].message.span.line)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", [*CLEAN, *BY_ARGUMENTS])
def test_what_is_not_known_is_not_warned_of(name: str) -> None:
    body, step, block = CLEAN[name] if name in CLEAN else (BY_ARGUMENTS[name], 1, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(name, body).warmup(*arguments(), S=step, B=block, grid=(1,))


@pytest.mark.parametrize("name", FLAGGED)
@pytest.mark.filterwarnings("ignore::weft.base.OffsetOverflowWarning")
def test_debug_finds_all(name: str) -> None:
    body, step, block = FLAGGED[name]
    with pytest.raises(DeviceAssertionError) as caught:
        made(name, body)[(1,)](*arguments(), S=step, B=block, debug=True)
    assert str(caught.value).startswith(line_of(name, body))


def test_there_are_enough() -> None:
    assert len(FLAGGED) >= 30


@weft.jit
def rows(x, n, S: tl.constexpr, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + o * S, 0.0, mask=o < n)


@weft.jit
def iterations(x, S: tl.constexpr):
    for i in range(5):
        tl.store(x + (-1 - i) * S, 0.0)


def text_of(kernel: Any, *args: Any, **constants: int) -> str:
    with pytest.warns(OffsetOverflowWarning) as caught:
        kernel.warmup(*args, **constants, grid=(1,))
    assert len(caught) == 1
    return str(caught[0].message).replace(__file__, "k.py")


def test_the_whole_text() -> None:
    first = rows.fn.__code__.co_firstlineno
    assert text_of(rows, np.zeros(4, np.float32), 3, S=1 << 22, B=1024) == (
        f"k.py:{first + 3}:18: warning: an int32 offset wraps: the exact product is 2147483648, and the largest "
        "int32 is 2147483647\n"
        f"{first + 3:>5} |     tl.store(x + o * S, 0.0, mask=o < n)\n"
        "      |                  ^\n"
        f"k.py:{first + 3}:5: note: it is an offset of `x` in this store\n"
        f"{first + 3:>5} |     tl.store(x + o * S, 0.0, mask=o < n)\n"
        "      |     ^\n"
        "note: in program (0, 0, 0) of kernel `rows`, at position [512] of a tile of shape [1024]; it does no "
        "harm where the mask is false\n"
        "hint: widen an operand first: x.to(tl.int64)"
    )


def test_the_whole_text_in_a_loop() -> None:
    first = iterations.fn.__code__.co_firstlineno
    assert text_of(iterations, np.zeros(4, np.float32), S=1 << 29) == (
        f"k.py:{first + 3}:22: warning: an int32 offset wraps: the exact product is -2684354560, and the smallest "
        "int32 is -2147483648\n"
        f"{first + 3:>5} |         tl.store(x + (-1 - i) * S, 0.0)\n"
        "      |                      ^\n"
        f"k.py:{first + 3}:9: note: it is an offset of `x` in this store\n"
        f"{first + 3:>5} |         tl.store(x + (-1 - i) * S, 0.0)\n"
        "      |         ^\n"
        "note: in program (0, 0, 0) of kernel `iterations`, in the last iteration of the loop\n"
        "hint: widen an operand first: x.to(tl.int64)"
    )


def test_it_can_be_made_an_error_and_is_not_lost() -> None:
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", OffsetOverflowWarning)
            with pytest.raises(OffsetOverflowWarning):
                rows.warmup(np.zeros(4, np.float32), 3, S=1 << 23, B=512, grid=(1,))


SCRIPT = """
import numpy as np, weft, weft.language as tl

@weft.jit
def k(x, n):
    o = tl.arange(0, 1024)
    tl.store(x + o * 4194304, 0.0, mask=o < n)

kernel = k.warmup(np.zeros(4, np.float32), 3, grid=(1,))
print(kernel.from_cache)
"""


def test_a_kernel_from_the_cache_tells_it_too(tmp_path: Path) -> None:
    script = tmp_path / "k.py"
    for cached in ("False", "True"):
        moved = int(cached == "True")  # the second time, the kernel stands a line further down
        script.write_text("\n" * moved + SCRIPT)
        done = subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env={"WEFT_CACHE_DIR": str(tmp_path / "cache"), "PATH": "", "PYTHONPATH": environment()["PYTHONPATH"]},
        )
        assert done.stdout.strip() == cached
        place = f"{script}:{7 + moved}"
        assert done.stderr.startswith(f"{place}: OffsetOverflowWarning: {place}:18: warning: an int32 offset wraps: ")


def test_the_simulator_tells_it_too() -> None:
    x = np.zeros((2 << 25) + 1, np.float32)  # the mask leaves three rows
    with pytest.warns(OffsetOverflowWarning) as caught, weft.target("sim:cuda:80"):
        rows[(1,)](x, 3, S=1 << 25, B=128)
        rows[(1,)](x, 3, S=1 << 25, B=128)
    first = rows.fn.__code__.co_firstlineno
    told = [str(w.message).split(" an ")[0].replace(__file__, "k.py") for w in caught]
    assert told == [f"k.py:{first + 3}:18: warning:"]
