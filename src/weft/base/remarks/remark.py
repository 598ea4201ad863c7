"""What the compiler decided about a kernel, and why: a frozen value for each decision, and the tuple of them.

    kernel = add.warmup(x, y, out, n, BLOCK=1024, grid=(1,))
    print(kernel.remarks)                         # a line for each, with its place in the source
    for access in kernel.remarks.of(AccessWidth):
        print(access.span, access.bytes, access.fact)

Passes, the lowering and the back ends leave remarks with a `RemarkCollector` that is handed down to them; `NO_REMARKS`
takes the place of one where nobody asks. Remarks are plain data (numbers, texts, places and tuples of these), so they
are kept beside a kernel's code as JSON and read when they are first asked for.

>>> from weft.base import Span
>>> from weft.base.remarks import Remarks, SharedBuffer, RemarkCollector
>>> collector, at = RemarkCollector(), Span("k.py", 7, 10)
>>> for _ in range(2):
...     collector.add(SharedBuffer(at, 4096, 0, "conversion", at, at))
>>> remarks = collector.collected()
>>> print(remarks)
k.py:7:11: shared buffer: 4096 bytes for a conversion, at byte 0, in use on line 7 (2 times)
>>> Remarks.from_json(remarks.to_json()) == remarks
True
>>> [remark.bytes for remark in remarks.of("shared buffer")]
[4096]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar, overload

from weft.base.spans import Span

__all__ = ["KINDS", "NO_REMARKS", "Alternative", "Copy", "Remark", "RemarkCollector", "Remarks", "Site", "Wish"]


@dataclass(frozen=True)
class Site:
    """An operation that has to do with a decision: what it is, and where."""

    what: str
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.what} on line {self.span.line}" if self.span is not None else self.what


@dataclass(frozen=True)
class Wish:
    """A layout that an operation wanted, and what the function would take more in it."""

    site: Site
    layout: str
    cycles: float | None = None
    """Cycles of a warp, all other layouts chosen anew, iterations counted; None if it was not among the candidates."""


@dataclass(frozen=True)
class Alternative:
    """What else was considered: its price in cycles of a warp, None if it is not possible, and what it takes."""

    what: str
    cycles: float | None
    note: str = ""

    def __str__(self) -> str:
        price = in_cycles(self.cycles) if self.cycles is not None else "not possible"
        return f"{self.what} ({price}{': ' + self.note if self.note and self.cycles is None else ''})"


@dataclass(frozen=True)
class Copy:
    """A load that is copied ahead: its tile, the buffers of it, and the bytes of each."""

    tile: str
    span: Span | None
    buffers: int
    bytes: int

    def __str__(self) -> str:
        place = f" of line {self.span.line}" if self.span is not None else ""
        return f"{self.tile}{place} in {self.buffers} buffer{'s' if self.buffers > 1 else ''} of {self.bytes} bytes"


KINDS: dict[str, type[Remark]] = {}
"""Every kind of remark, by its name."""


@dataclass(frozen=True)
class Remark:
    """A decision about the operation at `span`; None where it comes from no line of the source."""

    kind: ClassVar[str] = ""
    span: Span | None
    times: int = field(default=1, kw_only=True)
    """How often the same was decided: of code that was unrolled or inlined, say."""

    def __init_subclass__(cls) -> None:
        if cls.kind:
            KINDS[cls.kind] = cls

    @property
    def message(self) -> str:
        """What was decided and why, in one line."""
        raise NotImplementedError

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span is not None else ""
        return f"{place}{self.kind}: {self.message}{f' ({self.times} times)' if self.times > 1 else ''}"

    def as_dict(self) -> dict[str, Any]:
        """The remark as plain data for JSON; `kind` says which it is."""
        plain: dict[str, Any] = Remarks((self,)).as_dicts()[0]
        return plain


R = TypeVar("R", bound=Remark)


class Remarks(tuple[Remark, ...]):
    """The remarks of a kernel, in the order of its source."""

    __slots__ = ()

    @overload
    def of(self, kind: type[R]) -> tuple[R, ...]: ...
    @overload
    def of(self, kind: str) -> Remarks: ...
    def of(self, kind: Any) -> Any:
        """Those of a kind, given by its class or by its name: `remarks.of("conversion")`."""
        if not isinstance(kind, str):
            return tuple(remark for remark in self if isinstance(remark, kind))
        if kind not in KINDS:
            raise ValueError(f"there are no remarks of the kind {kind!r}; kinds are {', '.join(sorted(KINDS))}")
        return Remarks(remark for remark in self if remark.kind == kind)

    def on(self, line: int, file: str | None = None) -> Remarks:
        """Those about a line of the source, of any file if none is named."""
        spans = ((remark, remark.span) for remark in self)
        return Remarks(r for r, s in spans if s is not None and s.line == line and file in (None, s.file))

    def as_dicts(self) -> list[dict[str, Any]]:
        """All as plain data."""
        plain: list[dict[str, Any]] = json.loads(self.to_json())
        return plain

    def to_json(self, indent: int | None = None) -> str:
        """All as JSON, a list of objects."""
        return json.dumps([{"kind": r.kind, **vars(r)} for r in self], indent=indent, default=_parts)

    def stored(self) -> str:
        """All as JSON for a cache: each place is one text, which is written in half the time."""
        return json.dumps([{"kind": r.kind, **vars(r)} for r in self], separators=(",", ":"), default=_stored_parts)

    @staticmethod
    def from_json(text: str | bytes) -> Remarks:
        """What `to_json` or `stored` wrote."""
        return Remarks(_value(each) for each in json.loads(text))

    def moved(self, before: Iterable[tuple[str, int]], after: Iterable[tuple[str, int]]) -> Remarks:
        """With the places of now, where the source has moved in its files since the kernel was compiled.

        `before` and `after` are file and line of each function's definition, in the same order. A place moves with
        the definition that stands nearest before it.
        """
        before, after = list(before), list(after)
        if before == after or len(before) != len(after):  # it is another source, of which nothing is known
            return self
        pairs = sorted(zip(before, after, strict=True))

        def now(value: Any) -> Any:
            if isinstance(value, Span):
                near = [(a, b) for a, b in pairs if a[0] == value.file and a[1] <= value.line]
                if not near:
                    return value
                (_, line), (file, now_line) = near[-1]
                return replace(value, file=file, line=value.line - line + now_line)
            if isinstance(value, tuple):
                return tuple(map(now, value))
            if isinstance(value, Remark | Site | Wish | Alternative | Copy):
                return replace(value, **{f.name: now(getattr(value, f.name)) for f in fields(value)})
            return value

        return Remarks(now(remark) for remark in self)

    def __str__(self) -> str:
        return "\n".join(map(str, self))


class RemarkCollector:
    """Takes remarks while a kernel is compiled; it is true. Equal ones are kept once, with their number."""

    def __init__(self) -> None:
        self._times: dict[Remark, int] = {}

    def add(self, remark: Remark) -> None:
        """Keep a remark."""
        self._times[remark] = self._times.get(remark, 0) + 1

    def collected(self) -> Remarks:
        """All so far, in the order of the source."""
        counted = (r if n == 1 else replace(r, times=n) for r, n in self._times.items())
        return Remarks(sorted(counted, key=lambda r: (r.span.file, r.span.line, r.span.col) if r.span else ("", 0, 0)))


class _NoRemarks(RemarkCollector):
    """Keeps nothing, and is false, so that nobody makes a remark for it."""

    def __bool__(self) -> bool:
        return False

    def add(self, remark: Remark) -> None:
        """Forget a remark."""


NO_REMARKS: RemarkCollector = _NoRemarks()


def in_cycles(cycles: float) -> str:
    """`1 cycle`, `71 cycles`."""
    return f"{cycles:.0f} cycle{'s' if f'{cycles:.0f}' != '1' else ''}"


def with_article(noun: str) -> str:
    """`a conversion`, `an atomic`; what begins with `which` or `the` has none."""
    if noun.split()[0] in ("which", "the", "a", "an"):
        return noun
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


# -- as plain data -----------------------------------------------------------------------------------------------------

PARTS: dict[str, type[Any]] = {"site": Wish, "cycles": Alternative, "buffers": Copy, "what": Site}
"""What remarks are made of, by a name that the earlier ones of these do not have."""


PLACE = "\x01"


def _parts(value: Any) -> dict[str, Any]:
    """What a place or a part of a remark is made of, by name."""
    if isinstance(value, Span):
        return {"file": value.file, "line": value.line, "column": value.col + 1}
    return dict(vars(value))


def _stored_parts(value: Any) -> Any:
    """The same, a place as one text that begins as no other does."""
    return f"{PLACE}{value.file}{PLACE}{value.line}{PLACE}{value.col}" if isinstance(value, Span) else vars(value)


def _value(plain: Any) -> Any:
    """What `as_dict` and `to_json` wrote; each kind of object is known by a name that only it has."""
    if isinstance(plain, list):
        return tuple(map(_value, plain))
    if isinstance(plain, str) and plain.startswith(PLACE):
        file, line, col = plain[1:].split(PLACE)
        return Span(file, int(line), int(col))
    if not isinstance(plain, Mapping):
        return plain
    if "column" in plain:
        return Span(plain["file"], plain["line"], plain["column"] - 1)
    cls: Any = KINDS[plain["kind"]] if "kind" in plain else next(PARTS[name] for name in PARTS if name in plain)
    return cls(**{name: _value(each) for name, each in plain.items() if name != "kind"})
