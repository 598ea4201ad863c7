"""What compiling reads from files: tile IR, and the compiler's own source, as far as keys depend on it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
from collections.abc import Iterator
from functools import lru_cache

from weft import compiler
from weft.base import CompilationError, Unsupported
from weft.language import texts

from .trusted import read_regular

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder of Weft's source; it may be inside of an archive."""
MAX_TILE_IR = 1 << 30
"""Bytes of a file of tile IR."""
MAX_SOURCE = 1 << 24
"""Bytes of a file with kernels."""


def read_tile_ir(source: str | os.PathLike[str]) -> tuple[str, str]:
    """(text, path) of tile IR or layout IR that is given as the path of a `.ttir` or `.ttgir` file, or as text."""
    path = os.fspath(source)
    if "\n" in path or "{" in path:
        return path, "<ttir>"
    ending = os.path.splitext(path)[1]
    if ending not in (".ttir", ".ttgir"):
        raise Unsupported(
            f"compiling a {ending or 'nameless'} file", hint="give tile IR, a .ttir file, or a .ttgir file"
        )
    try:
        text = read_regular(path, MAX_TILE_IR).decode("utf-8")
        return text.replace("\r\n", "\n").replace("\r", "\n"), path
    except (OSError, UnicodeDecodeError) as error:
        raise CompilationError(f"cannot read {path}: {error}") from error


def source_text(name: str) -> str | None:
    """The text of a source file; for "", standard input from its beginning, if that is a file. None without one."""
    try:
        if name:
            return read_regular(name, MAX_SOURCE).decode("utf-8")
        status = os.fstat(0)
        return os.pread(0, status.st_size, 0).decode("utf-8") if stat.S_ISREG(status.st_mode) else None
    except (OSError, ValueError, AttributeError):  # no such file, another encoding, or a system without pread
        return None


texts.read[:] = [source_text]


def _files(directory: str) -> Iterator[str]:
    """Every file of the compiler below a directory, source or table: its name, size and time of change."""
    with os.scandir(directory) as listing:
        items = sorted(listing, key=lambda item: item.name)
    for item in items:
        if item.is_dir(follow_symlinks=False):
            yield from _files(item.path)
        elif item.name.endswith((".py", ".txt", ".ll")):
            facts = item.stat()
            yield f"{item.name} {facts.st_size} {facts.st_mtime_ns}"


def _stamp(path: str) -> str:
    """Size and time of change of a file; of the archive that it is in, where it is in one."""
    while path != os.path.dirname(path):
        if os.path.exists(path):
            facts = os.stat(path)
            return f"{facts.st_size} {facts.st_mtime_ns}"
        path = os.path.dirname(path)
    return ""


@lru_cache(maxsize=1)
def compiler_key() -> str:
    """A digest of the compiler itself: Weft's version and files, and the versions of what it is built on.

    The files count by size and time of change: reading them all would take longer than compiling a small kernel.
    """
    files = [*_files(PACKAGE)] if os.path.isdir(PACKAGE) else [_stamp(PACKAGE)]
    # xDSL counts by a file of it, which is not loaded: asking for its version would take ten times as long as all this.
    xdsl = importlib.util.find_spec("xdsl")
    parts = [compiler.versions(), *files, _stamp(os.path.abspath(xdsl.origin)) if xdsl and xdsl.origin else ""]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
