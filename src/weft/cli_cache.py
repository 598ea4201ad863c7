"""`weft cache`: the cache of compiled kernels, listed, checked and emptied.

weft cache ls | verify [--remove] | prune [--size 512M] | clear | dir
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence

from weft.base import LaunchError
from weft.cli_sizes import read, shown as size
from weft.runtime.cache import Store, default_store

__all__ = ["main", "parser"]


def _store() -> Store:
    store = default_store()
    if store is None:
        raise LaunchError("the cache is switched off (WEFT_NO_CACHE)")
    return store


def _usable() -> Store:
    """The cache, to list or change it; LaunchError for a directory that others can write to."""
    store = _store()
    refusal = store.refusal()
    if refusal is not None:
        raise LaunchError(refusal)
    return store


def _ls(options: argparse.Namespace) -> int:
    entries = list(_usable().entries())
    if options.json:
        print(json.dumps([vars(e) | {"path": e.path} for e in entries]))
        return 0
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        problem = f"  DAMAGED: {entry.error}" if entry.error else ""
        print(f"{used}  {size(entry.size):>10}  {os.path.basename(entry.path)[:12]}  {entry.name}{problem}")
    print(f"{len(entries)} kernels, {size(sum(e.size for e in entries))} in {_store().directory}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    store = _usable()
    entries = list(store.entries())
    bad = [e for e in entries if e.error]
    if options.json:
        print(json.dumps({"entries": len(entries), "damaged": [{"path": e.path, "error": e.error} for e in bad]}))
    for entry in bad:
        if not options.json:
            print(f"{entry.path}: {entry.error}")
        if options.remove:
            store.remove(entry)
    if not options.json:
        print(f"{len(entries)} entries, {len(bad)} damaged{' and removed' if bad and options.remove else ''}")
    return 1 if bad and not options.remove else 0


def _prune(options: argparse.Namespace) -> int:
    store = _usable()
    return _removed(store.prune(store.size_cap if options.size is None else options.size), options)


def _clear(options: argparse.Namespace) -> int:
    return _removed(_usable().prune(-1), options)


def _removed(count: int, options: argparse.Namespace) -> int:
    print(json.dumps({"removed": count}) if options.json else f"{count} entries removed")
    return 0


def _dir(options: argparse.Namespace) -> int:
    folder = _store().directory
    print(json.dumps({"directory": folder}) if options.json else folder)
    return 0


def parser(name: str = "cache") -> argparse.ArgumentParser:
    """What the command takes."""
    cache = argparse.ArgumentParser("weft cache", description="List, check and empty the cache of compiled kernels.")
    commands = cache.add_subparsers(dest="what", required=True)
    for what, action, text in (
        ("ls", _ls, "list the kernels"),
        ("verify", _verify, "check every byte; the exit code is 1 if something is damaged"),
        ("prune", _prune, "remove the least recently used kernels, down to a size"),
        ("clear", _clear, "remove everything"),
        ("dir", _dir, "print the directory"),
    ):
        command = commands.add_parser(what, help=text)
        command.set_defaults(run=action)
        command.add_argument("--json", action="store_true", help="print JSON")
        if what == "verify":
            command.add_argument("--remove", action="store_true", help="remove damaged entries")
        if what == "prune":
            text = "bytes to keep, such as 512M or 2G (default: the setting cache.size)"
            command.add_argument("--size", type=read, help=text)
    return cache


def main(arguments: Sequence[str]) -> int:
    """Do what comes after `weft cache`; the exit code."""
    options = parser().parse_args(arguments)
    code: int = options.run(options)
    return code
