"""Explanations as plain data for JSON, and back: by the types that the fields of their dataclasses are declared with.

>>> from weft.base import Span
>>> from weft.explain import Finding
>>> found = Finding("spill", Span("k.py", 3, 4), "12 words are spilled", "255 registers are too few", "use more warps")
>>> to_plain(found)["span"]
{'file': 'k.py', 'line': 3, 'column': 5}
>>> from_plain(Finding, to_plain(found)) == found
True
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_origin, get_type_hints

from weft.base import Span
from weft.base.remarks import Remark, Remarks


def to_plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries of such."""
    if isinstance(value, Remark):
        return value.as_dict()
    if isinstance(value, Span):
        return {"file": value.file, "line": value.line, "column": value.col + 1}
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value) if f.metadata.get("plain", True)}
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(each) for each in value]
    return value


def to_json(plain: Any, indent: int | None) -> str:
    """As JSON."""
    return json.dumps(plain, indent=indent, ensure_ascii=False)


def from_json(kind: type[Any], text: str | bytes, version: int) -> Any:
    """A value of a class, of its JSON. ValueError for any other text."""
    plain = json.loads(text)
    found = plain.get("version") if isinstance(plain, dict) else None
    if found != version:
        raise ValueError(f"this is no explanation of version {version} (its version is {found!r})")
    try:
        return from_plain(kind, {name: each for name, each in plain.items() if name != "version"})
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ValueError(f"this is no {kind.__name__}: {error!r}") from None


def from_plain(kind: Any, plain: Any) -> Any:
    """A value of a type, of what `to_plain` made of it."""
    if plain is None or kind is Any:
        return plain
    if kind is Span:
        return Span(plain["file"], plain["line"], plain["column"] - 1)
    if kind is Remarks:
        return Remarks.from_json(json.dumps(plain))
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (types.UnionType,):
        parts = tuple(part for part in parts if part is not type(None))
        return from_plain(parts[0], plain) if len(parts) == 1 else Remarks.from_json(json.dumps([plain]))[0]
    if origin is tuple:
        kinds = parts[:1] * len(plain) if parts[1:] == (Ellipsis,) else parts
        return tuple(from_plain(each, value) for each, value in zip(kinds, plain, strict=True))
    if origin is Mapping:
        return {key: from_plain(parts[1], value) for key, value in plain.items()}
    if isinstance(kind, type) and issubclass(kind, Remark):
        return Remarks.from_json(json.dumps([plain]))[0]
    if is_dataclass(kind):
        hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]
        return kind(**{name: from_plain(hints[name], value) for name, value in plain.items()})  # type: ignore[operator]
    return plain


@lru_cache(maxsize=64)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
