"""The commands of `weft` on kernels: run, demo, cache, info, bench. See cli.py."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import weft
from weft import compat, compiler, runtime
from weft.base import LaunchError, WeftError, load
from weft.runtime import knobs
from weft.runtime.cache import Store, default_store


def _size(count: float) -> str:
    """Bytes for people.

    >>> _size(2048)
    '2.0 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def _store() -> Store:
    store = default_store()
    if store is None:
        raise LaunchError("the cache is switched off (WEFT_NO_CACHE)")
    return store


def _usable_store() -> Store:
    """The cache, to list or change it; LaunchError for a directory that others can write to."""
    store = _store()
    refusal = store.refusal()
    if refusal is not None:
        raise LaunchError(refusal)
    return store


def _bytes(text: str) -> int:
    """A size on the command line."""
    try:
        return knobs.parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _cache_ls(options: argparse.Namespace) -> int:
    entries = list(_usable_store().entries())
    if options.json:
        print(json.dumps([vars(e) | {"path": e.path} for e in entries]))
        return 0
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        problem = f"  DAMAGED: {entry.error}" if entry.error else ""
        print(f"{used}  {_size(entry.size):>10}  {os.path.basename(entry.path)[:12]}  {entry.name}{problem}")
    print(f"{len(entries)} kernels, {_size(sum(e.size for e in entries))} in {_store().directory}")
    return 0


def _cache_verify(options: argparse.Namespace) -> int:
    store = _usable_store()
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


def _cache_prune(options: argparse.Namespace) -> int:
    store = _usable_store()
    removed = store.prune(store.size_cap if options.size is None else options.size)
    print(f"{removed} entries removed")
    return 0


def _cache_clear(options: argparse.Namespace) -> int:
    print(f"{_usable_store().prune(-1)} entries removed")
    return 0


def _cache_dir(options: argparse.Namespace) -> int:
    print(_store().directory)
    return 0


def _info(options: argparse.Namespace) -> int:
    cpu = compiler.host_cpu()
    store = default_store()
    packages = {}
    for name in ("numpy", "ml_dtypes", "xdsl", "llvmlite", "cuda-bindings", "torch"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "not installed"
    facts: dict[str, Any] = {
        "weft": weft.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "target": runtime.current_target(),
        "processor": cpu.name,
        "vectors": f"{8 * cpu.vector_bytes} bits",
        "threads": compiler.get_num_threads(),
        "caches": f"L1 {_size(cpu.l1_bytes)}, L2 {_size(cpu.l2_bytes)}, L3 {_size(cpu.l3_bytes)}",
        "kernel cache": (store.refusal() or store.directory) if store else "off",
        **load("weft.compiler.devices").found(),
        **packages,
    }
    if options.json:
        print(json.dumps({**facts, "features": list(cpu.features), "settings": {n: v for n, _, v in knobs.table()}}))
        return 0
    for name, value in facts.items():
        print(f"{name:>14}  {value}")
    if options.settings:
        print()
        for name, variables, value in knobs.table():
            print(f"{name:<44} {variables:<44} {value}")
    return 0


_RUN_USAGE = """\
usage: weft run script.py [args...]
       weft run -m module [args...]

Run a script or a module written for Triton as it stands: `import triton` finds Weft."""


def _run(arguments: Sequence[str]) -> int:
    module = arguments[:1] == ["-m"]
    rest = arguments[1:] if module else arguments
    asked = arguments[:1] in (["-h"], ["--help"])
    if asked or not rest:
        print(_RUN_USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    if not module and not os.path.exists(rest[0]):
        print(f"weft run: there is no file {rest[0]}", file=sys.stderr)
        return 2
    if module and not compat.module_exists(rest[0]):
        print(f"weft run: there is no module {rest[0]}", file=sys.stderr)
        return 2
    compat.run_script(rest, module=module)
    return 0


def _demo(arguments: Sequence[str]) -> int:
    """Run examples/run.py of the source tree; where Weft was installed without it, of the current directory."""
    for root in (Path(__file__).resolve().parents[2], Path.cwd()):
        script = root / "examples" / "run.py"
        spec = importlib.util.spec_from_file_location("weft_examples", script)
        if script.exists() and spec is not None and spec.loader is not None:
            examples = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(examples)
            code: int = examples.main(arguments, "weft demo")
            return code
    print("weft demo: there is no examples/run.py here; the examples come with the source", file=sys.stderr)
    return 2


def _bench(options: argparse.Namespace) -> int:
    tables = load("weft.layouts.tables").published_tables()
    if options.json:
        print(json.dumps([table.to_dict() for table in tables], indent=2))
    else:
        print("\n\n".join(map(str, tables)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("weft", description="Tile kernels written for Triton, on the machine you have.")
    parser.add_argument("--version", action="version", version=f"weft {weft.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="run a script written for Triton", add_help=False)
    commands.add_parser("demo", help="run, check and time the examples", add_help=False)
    info = commands.add_parser("info", help="this machine, versions, settings")
    info.add_argument("--json", action="store_true")
    info.add_argument("--settings", action="store_true", help="every setting, its variables and value")
    info.set_defaults(run=_info)
    bench = commands.add_parser("bench", help="tables of published results, computed here")
    bench.add_argument("what", choices=["layouts"], help="layouts: those of the linear-layouts paper that need no GPU")
    bench.add_argument("--json", action="store_true")
    bench.set_defaults(run=_bench)
    cache = commands.add_parser("cache", help="the cache of compiled kernels").add_subparsers(
        dest="what", required=True
    )
    for name, action, text in (
        ("ls", _cache_ls, "list the kernels"),
        ("verify", _cache_verify, "check every byte; exit code 1 when something is damaged"),
        ("prune", _cache_prune, "remove what was not used for longest, down to a size"),
        ("clear", _cache_clear, "remove everything"),
        ("dir", _cache_dir, "print the directory"),
    ):
        command = cache.add_parser(name, help=text)
        command.set_defaults(run=action)
        if name in ("ls", "verify"):
            command.add_argument("--json", action="store_true")
        if name == "verify":
            command.add_argument("--remove", action="store_true", help="remove what is damaged")
        if name == "prune":
            text = "bytes to keep, as 512M or 2G; the setting cache.size if not given"
            command.add_argument("--size", type=_bytes, help=text)
    commands.add_parser("check", help="check a kernel file against a reference", add_help=False)
    commands.add_parser("explain", help="explain the kernels that a script launches", add_help=False)
    commands.add_parser("diff", help="what two explanations differ in", add_help=False)
    commands.add_parser("tune", help="rank the configurations of a script's tuned kernels", add_help=False)
    commands.add_parser("to-gluon", help="write the kernels that a script launches as Gluon source", add_help=False)
    commands.add_parser("layout", help="pictures of layouts, conversions, bank conflicts", add_help=False)
    return parser


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    if arguments[:1] == ["run"]:
        return _run(arguments[1:])
    if arguments[:1] == ["demo"]:
        return _demo(arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (WeftError, OSError) as error:
        text = str(error)
        print(text if text.startswith("error:") else f"error: {text}", file=sys.stderr)
        return 2
    return code
