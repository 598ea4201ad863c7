"""A compilation as plain data, so that another process can do it: IR as text and options in, an artefact out.

    work = work_of(src, target, options)      # traces the kernel: this needs the user's objects, and stays here
    facts, blobs, timings = compile_work(work) # needs nothing but `work`: here, or in a process of `workers`

The text has the place of every operation, so that errors, line tables and assertions are those of the kernel. What
comes out is byte for byte what is made without the detour, by test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft import ir
from weft.base import CompileOptions, load

from .options import make_options
from .sources import Source
from .target import GPUTarget

Artefact = tuple[dict[str, Any], dict[str, bytes], dict[str, float]]
"""Facts that are JSON, blobs of bytes, and the seconds of each stage."""


@dataclass(frozen=True)
class Work:
    """What is to be compiled, for what, and how."""

    name: str
    """The kernel's."""
    ir: str
    """Tile IR, or layout IR of a Gluon kernel whose layouts are not resolved yet, with places."""
    ext: str
    """`ttir`, or `ttgir` for a kernel in Gluon."""
    source: str
    """The kernel as its author wrote it."""
    backend: str
    arch: int | str
    warp_size: int
    options: tuple[tuple[str, Any], ...]
    """As they were given; defaults are left out."""

    @property
    def target(self) -> GPUTarget:
        """The processor."""
        return GPUTarget(self.backend, self.arch, self.warp_size)

    def reproducer(self) -> str:
        """A file that `weft.compile` takes, which says at its top how."""
        options = {name: value for name, value in self.options if value is not None}
        return f"// weft.compile(THIS_FILE, {str(self.target)!r}, {options!r})\n{self.ir}"


def work_of(src: Source, target: GPUTarget, options: Mapping[str, Any]) -> Work:
    """Trace a kernel. Raises what is wrong with it."""
    language = make_options(options).language
    if src.ext == "ttgir":
        language = load("weft.compiler.gpu").gluon_options(options, target)
    text = ir.print_module(src.make_ir(language, target), locations=True)
    pairs = tuple(options.items())
    return Work(src.name, text, src.ext, src.text(), target.backend, target.arch, target.warp_size, pairs)


class _Traced:
    """The source of a kernel that was traced elsewhere."""

    def __init__(self, work: Work) -> None:
        self.name, self.ext, self._work = work.name, work.ext, work

    def hash(self) -> str:
        """Nobody asks for its key: the one who traced it has it."""
        raise NotImplementedError

    def text(self) -> str:
        """The kernel as its author wrote it."""
        return self._work.source

    def make_ir(self, options: CompileOptions, target: GPUTarget) -> Any:
        """Read what was traced."""
        return ir.parse_module(self._work.ir, f"<{self.name}>")


def compile_work(work: Work) -> Artefact:
    """The artefact, made in this process."""
    timings: dict[str, float] = {}
    src, options = _Traced(work), dict(work.options)
    opts = make_options(options)
    if work.backend != "cpu":
        facts, blobs = load("weft.compiler.gpu_stages").make(src, work.target, opts, options, timings)
    else:
        facts, blobs = load("weft.compiler.cpu_stages").make(src, work.target, opts, timings, None)
    return facts, blobs, timings
