"""Files of winners: which of its configurations an autotuned kernel is launched with, found beforehand by `weft tune`.

    {"weft tune": 1, "winners": [
     {"kernel": "matmul", "source": "5f0c...", "search": "91ab...", "key": "('tuple', ('int', 4096), ...)",
      "target": "cuda:90", "config": "BM: 128, BN: 256, ...", "microseconds": 211.4}]}

A launch looks in the file that `autotune(tuned=...)` or WEFT_TUNED names, else in `NAME.tuned.json` beside the source
of the kernel, `NAME.py`. An entry holds for the same source of the kernel and of all that it calls, the same
configurations, the same values of the key, the same types of arrays, and the same target; any other is passed over,
and the kernel is tuned as if there were no file.

The file is data. What it says only chooses among the configurations that the kernel's author wrote: there is nothing in
it that could be run, and no value of it reaches a kernel.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.language.keys import key_text

from .arrays import array_facts, is_array
from .config import Config

__all__ = ["beside", "digest_of", "entry_of", "key_of_launch", "winner", "written"]

KIND = "weft tune"
VERSION = 1
LARGEST = 16 << 20
"""Bytes of a file that is read."""
NAMES = ("kernel", "source", "search", "key", "target")
"""What an entry has to agree in."""

_read: dict[str, tuple[tuple[int, int], dict[tuple[str, ...], str]]] = {}
"""Files that were read, by path: when they were written, their size, and their winners."""


def beside(source: str) -> str:
    """The file of winners beside a source.

    >>> beside("kernels/matmul.py")
    'kernels/matmul.tuned.json'
    """
    return str(Path(source).with_suffix(".tuned.json"))


def digest_of(configs: Sequence[Config]) -> str:
    """What tells one list of configurations from another, however they are ordered."""
    texts = sorted(key_text(sorted(config.all_kwargs().items())) for config in configs)
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def key_of_launch(parts: Iterable[Any], values: Iterable[Any]) -> str:
    """The values of a key, and the types of the arrays among the arguments, whichever library they are of."""
    facts = [array_facts(value) for value in values if is_array(value)]
    return key_text((tuple(parts), tuple(str(f.element) for f in facts if f is not None)))


def entry_of(tuner: Any, kernel: Any, key: str, target: str, config: Config, microseconds: float) -> dict[str, Any]:
    """A winner, as it is written."""
    facts = _facts(tuner, kernel, key, target)
    return {**dict(zip(NAMES, facts, strict=True)), "config": str(config), "microseconds": round(microseconds, 3)}


def _facts(tuner: Any, kernel: Any, key: str, target: str) -> tuple[str, ...]:
    return kernel.__name__, kernel.current_key(), digest_of(tuner.configs), key, target


def written(path: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Write winners into a file, in place of those for the same launches; others in it stay."""
    kept = {tuple(str(entry[name]) for name in NAMES): dict(entry) for entry in _entries(path)}
    kept.update({tuple(str(entry[name]) for name in NAMES): dict(entry) for entry in entries})
    text = json.dumps({KIND: VERSION, "winners": [kept[name] for name in sorted(kept)]}, indent=1)
    scratch = f"{path}.{os.getpid()}"
    Path(scratch).write_text(text + "\n", encoding="utf-8")
    os.replace(scratch, path)


def winner(tuner: Any, kernel: Any, key: str, target: str, path: str) -> Config | None:
    """The configuration that a file says is the fastest; None where it says nothing of this launch."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    stamp = (status.st_mtime_ns, status.st_size)
    if _read.get(path, (None,))[0] != stamp:
        _read[path] = stamp, {tuple(e[name] for name in NAMES): e["config"] for e in _entries(path)}
    text = _read[path][1].get(_facts(tuner, kernel, key, target))
    return next((config for config in tuner.configs if str(config) == text), None)


def _entries(path: str) -> list[dict[str, Any]]:
    """The winners in a file; none where there is no such file, or another one, which is told."""
    try:
        if os.path.getsize(path) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(plain, dict) or plain.get(KIND) != VERSION or not isinstance(plain.get("winners"), list):
            raise ValueError(f"it has not the form of version {VERSION}")
        for entry in plain["winners"]:
            if not isinstance(entry, dict) or any(type(entry.get(name)) is not str for name in (*NAMES, "config")):
                raise ValueError("an entry is not complete")
        return list(plain["winners"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        warnings.warn(f"{path} is not a file that `weft tune` wrote, and is passed over: {error}", stacklevel=2)
        return []
