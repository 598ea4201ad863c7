"""One line of the language, run by itself: `weft.testing.evaluate`.

The line becomes the body of a kernel, which one warp runs in the simulator. The kernel stores what the line gives
behind a header that describes it: how many values there are and, of each, its element type (a row of `TYPES`), its
rank, its sizes and where it begins. The result is read by the header alone, so that a kernel found in the cache serves
as well as one that was just traced.
"""

from __future__ import annotations

import hashlib
import linecache
import re
from typing import Any

import ml_dtypes
import numpy as np

from weft import language as tl
from weft.base import LaunchError, told
from weft.gluon import language as gl
from weft.language.protocol import builtin

from .compiling import target as target_of
from .gluon import jit as gluon_jit
from .jit import JITFunction, jit

__all__ = ["evaluate"]

TYPES: dict[str, Any] = {
    "int1": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp64": np.float64,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2,
    "fp8e4b8": ml_dtypes.float8_e4m3fnuz,
    "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
}
SIZE = 1 << 17  # bytes of the result, header included
WORDS = 8  # of the header for each value: type, rank, up to five sizes, the byte at which it begins
GLUON = "gl.BlockedLayout([1], [32], [gl.num_warps()], [0])"  # how a list is spread over threads
FIRST = 256  # byte at which the first value begins: the header describes up to seven


@builtin
def give(out: Any, value: Any, _semantic: Any = None) -> None:
    """Store a value, or each of a tuple, behind a header that says what it is."""
    s = {"_semantic": _semantic}
    values = [] if value is None else [*value] if isinstance(value, tl.tuple) else [value]
    head = tl.cast(out, tl.pointer_type(tl.int32), bitcast=True, **s)
    begin = FIRST

    def note(word: int, number: int) -> None:
        tl.store(tl.add(head, word, **s), number, **s)

    note(0, len(values) + (256 if isinstance(value, tl.tuple) else 0))
    for i, item in enumerate(values):
        tile = _semantic.to_tensor(item)
        name = str(tile.dtype)
        if name not in TYPES:
            raise TypeError(f"the line gives a tile of {name}, which NumPy has no type for")
        shape = [int(size) for size in tile.shape]
        count = int(np.prod(shape, dtype=np.int64))
        size = count * max(tile.dtype.primitive_bitwidth, 8) // 8
        if begin + size > SIZE:
            raise TypeError(f"the line gives more than {SIZE - FIRST} bytes")
        for word, number in enumerate((list(TYPES).index(name), len(shape), *shape)):
            note(1 + WORDS * i + word, number)
        note(WORDS * (i + 1), begin)
        start = tl.cast(tl.add(out, begin, **s), tl.pointer_type(tile.dtype), bitcast=True, **s)
        if shape:
            flat = tl.reshape(tile, (count,), **s)
            layout = getattr(flat.type, "layout", None)  # Gluon's tiles have one, and so have what they meet
            places = tl.arange(0, count, **s) if layout is None else gl.arange(0, count, layout, **s)
            tl.store(tl.add(start, places, **s), flat, **s)
        else:
            tl.store(start, tile, **s)
        begin += -(-size // 16) * 16


def _read(out: np.ndarray) -> Any:
    """The values that `give` stored."""
    words = out.view(np.int32)
    values = []
    for i in range(int(words[0]) % 256):
        kind, rank, *sizes = (int(word) for word in words[1 + WORDS * i : WORDS * (i + 1)])
        dtype, shape, begin = np.dtype(list(TYPES.values())[kind]), sizes[:rank], int(words[WORDS * (i + 1)])
        count = int(np.prod(shape, dtype=np.int64))
        value = out[begin : begin + count * dtype.itemsize].view(dtype).reshape(shape).copy()
        values.append(value if shape else value.item())
    if words[0] >= 256:
        return tuple(values)
    return values[0] if values else None


def _tile(name: str, value: list[Any]) -> np.ndarray:
    """A list as the array that becomes a tile: integers are int32 where they fit, other numbers float32."""
    array = np.asarray(value)
    if array.dtype.kind == "f":
        array = array.astype(np.float32)
    elif array.dtype.kind in "iu" and array.size and abs(array).max() < 1 << 31:
        array = array.astype(np.int32)
    if not array.size or any(size & (size - 1) for size in array.shape):
        raise LaunchError(f"the sizes of a tile are powers of two, and `{name}` has the shape {array.shape}")
    return array


def _source(line: str, tiles: dict[str, np.ndarray], names: list[str], gluon: bool) -> str:
    """The kernel around a line; of several, the last is what they give."""
    *before, last = line.strip().replace("; ", "\n").splitlines()
    lines = [f"def evaluated({', '.join(['out', *names])}):"]
    for name, array in tiles.items():
        places = f"gl.arange(0, {array.size}, {GLUON})" if gluon else f"tl.arange(0, {array.size})"
        lines.append(f"    {name} = tl.load({name} + {places}).reshape({list(array.shape)})")
        lines += [f"    {name} = {name} != 0"] if array.dtype == bool else []
    lines += [f"    {text}" for text in before]
    lines.append(f"    give(out, {last})")
    return "\n".join(lines) + "\n"


def evaluate(line: str, /, *, target: str = "sim:cuda:80", num_warps: int = 1, **arguments: Any) -> Any:
    """`weft.testing.evaluate`, which has the explanation."""
    functions = {name: value for name, value in arguments.items() if isinstance(value, (JITFunction, tl.dtype))}
    values = {name: value for name, value in arguments.items() if name not in functions}
    tiles = {name: _tile(name, value) for name, value in values.items() if isinstance(value, list)}
    gluon = re.search(r"\bgl\.", line) is not None
    source = _source(line, tiles, list(values), gluon)
    file = f"<evaluated {hashlib.sha256(source.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict[str, Any] = {"tl": tl, "gl": gl, "give": give, **functions}
    try:
        code = compile(source, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        told(error)
        raise
    exec(code, space)
    out = np.zeros(SIZE, np.uint8)
    kernel: Any = (gluon_jit if gluon else jit)(space["evaluated"])
    given = [tiles.get(name, value) for name, value in values.items()]
    given = [v.view(np.uint8) if isinstance(v, np.ndarray) and v.dtype == bool else v for v in given]
    with target_of(target):
        kernel[(1,)](out, *given, num_warps=num_warps)
    return _read(out)
