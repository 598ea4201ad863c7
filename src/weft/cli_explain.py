"""`weft explain` and `weft diff`: kernels explained from the command line, without a GPU.

weft explain script.py --html e.html [args...]      every kernel that the script launches, a page for each
weft explain -k softmax --target cuda:90 script.py
weft explain --html e.html script.py                pages for a browser
weft explain --json script.py > now.json            a list of explanations
weft explain kernel.ttgir --grid 64,64 --arg n=1000 layout IR, Triton's or Weft's
weft explain --gluon script.py                        each kernel as compiled as Gluon source, after its explanation
weft explain --fixes script.py                        how much fixes save that are arguments or options
weft explain --page narrow-access                     a kernel that has this finding, and the same kernel fixed
weft explain --html e.html --alternatives script.py   with what-ifs: warps, stages, block sizes, divisibility
weft diff before.json now.json                      or --html d.html: both beside each other

A script runs to its end without launching anything. Its arrays stay as they are, so a check of results at its end
fails, which is said and is no error.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft import compiler, runtime
from weft.base import WeftError
from weft.cli_script import parsed, run_watched
from weft.explain import Explanation, coloured
from weft.explain.costs import calibrated
from weft.explain.findings import page_of
from weft.runtime import explaining
from weft.runtime.handed_over import HandedOver
from weft.runtime.handing_over import ExplainedLaunches

__all__ = ["main", "parser"]

DEFAULT = calibrated()[0]
"""The target where none is given: one whose times are predicted."""


def _both() -> argparse.ArgumentParser:
    """Both commands."""
    parser = argparse.ArgumentParser("weft", allow_abbrev=False, description="Explain kernels without a GPU.")
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser(
        "explain",
        help="explain the kernels that a script launches, or layout IR",
        allow_abbrev=False,
        description="Explain the kernels that a script launches, or a .ttgir file, without a GPU.",
    )
    explain.add_argument("-k", dest="name", help="only kernels whose name contains this")
    explain.add_argument(
        "--target", help=f"a GPU, or cpu (default: that of a .ttgir file, and {DEFAULT} for a script)"
    )
    explain.add_argument(
        "--json", action="store_true", help="print a JSON list of explanations, with source locations for editors"
    )
    explain.add_argument("--html", metavar="FILE", help="write a page; if there are several kernels, one for each")
    explain.add_argument(
        "--alternatives", action="store_true", help="with --html: let the page compare obvious alternatives"
    )
    explain.add_argument(
        "--what-if", action="append", default=[], type=_changes, metavar="NAME=VALUE[,NAME=VALUE]",
        help="with --html: let the page compare this alternative, such as num_warps=8; can be repeated",
    )  # fmt: skip
    explain.add_argument("--grid", type=_sizes, default=(1,), help="the grid, for a .ttgir file: 64 or 64,64")
    explain.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="a numeric argument, for a .ttgir file; can be repeated",
    )
    explain.add_argument(
        "--fixes", action="store_true", help="compile the fixes that are arguments or options, and say what each saves"
    )
    explain.add_argument(
        "--page", metavar="CODE", help="print the page of a finding: a kernel that has it, and the same kernel fixed"
    )
    explain.add_argument(
        "--gluon", action="store_true", help="also write each kernel as Gluon source; with --html, into a separate file"
    )
    explain.add_argument("script", nargs="?", help="a script, or a .ttgir file")
    explain.set_defaults(run=_explain)
    diff = commands.add_parser(
        "diff", help="show how two explanations differ", description="Show how two explanations differ."
    )
    diff.add_argument("before", type=Path, help="a file that `weft explain --json` wrote")
    diff.add_argument("after", type=Path, help="another such file")
    diff.add_argument("--json", action="store_true", help="print JSON")
    diff.add_argument("--html", metavar="FILE", help="write a page with both side by side")
    diff.set_defaults(run=_diff)
    return parser


def parser(name: str) -> argparse.ArgumentParser:
    """What one of the commands takes."""
    commands = next(a for a in _both()._actions if isinstance(a, argparse._SubParsersAction))
    shown: argparse.ArgumentParser = commands.choices[name]
    return shown


def _sizes(text: str) -> tuple[int, ...]:
    """The sizes of a grid.

    >>> _sizes("64,2")
    (64, 2)
    """
    return tuple(int(part) for part in text.split(","))


def _changes(text: str) -> dict[str, int | float | str]:
    """What is other in an alternative.

    >>> _changes("num_warps=8,BLOCK=2048")
    {'num_warps': 8, 'BLOCK': 2048}
    """
    found: dict[str, int | float | str] = {}
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if not sign or not name.isidentifier():
            raise argparse.ArgumentTypeError(f"an alternative is written as NAME=VALUE, got {text!r}")
        try:
            found[name] = _number(value)
        except ValueError:
            found[name] = {"True": True, "False": False}.get(value, value)
    return found


def _explain(options: argparse.Namespace) -> int:
    if options.page:
        return _page(options.page)
    if options.script is None:
        print("weft explain: which script? weft explain script.py", file=sys.stderr)
        return 2
    if not Path(options.script).exists():
        print(f"weft explain: there is no file {options.script}", file=sys.stderr)
        return 2
    if (options.what_if or options.alternatives) and not options.html:
        print("weft explain: --what-if and --alternatives are for pages: add --html FILE", file=sys.stderr)
        return 2
    sources: list[HandedOver | WeftError] = []
    if options.script.endswith((".ttgir", ".ttir")):
        if options.gluon:
            print("weft explain: --gluon is for kernels of a script, layout IR has no source", file=sys.stderr)
            return 2
        found = [_of_text(options)]
    elif options.gluon:
        explained = ExplainedLaunches(options.target or DEFAULT, options.name)
        run_watched(explained, options, "explain")
        found, sources = list(explained.explanations), explained.sources
    else:
        found = _of_script(options)
    wanted = [e for e in found if options.name is None or options.name in e.kernel]
    if options.fixes:
        wanted = [e.with_fixes() if e.again is not None else e for e in wanted]
    if options.html and wanted:
        names = [options.html] if len(wanted) == 1 else [_numbered(options.html, i) for i in range(len(wanted))]
        for name, explanation in zip(names, wanted, strict=True):
            explanation.save_html(name, options.what_if or options.alternatives)
            print(f"{name} written", file=sys.stderr)
        for name, source in zip(names, sources):
            _save_source(Path(name).with_suffix(".py"), source)
    elif options.json:
        rows = [e.to_dict() for e in wanted]
        for row, source in zip(rows, sources):
            row["gluon"] = source.text if isinstance(source, HandedOver) else None
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    elif sources:
        for explanation, source in zip(wanted, sources, strict=True):
            if not coloured.shown([explanation]):
                print(explanation)
            print(f"\n{source if isinstance(source, HandedOver) else f'no Gluon source: {source}'}\n")
    elif not coloured.shown(wanted):
        print("\n\n".join(map(str, wanted)))
    if not wanted:
        print(f"weft explain: no kernel {'of that name ' if options.name else ''}was launched", file=sys.stderr)
    return 0 if wanted else 1


def _save_source(path: Path, source: HandedOver | WeftError) -> None:
    """Write the source of a kernel, or say why there is none."""
    if isinstance(source, HandedOver):
        source.save(path)
        print(f"{path} written", file=sys.stderr)
    else:
        print(f"weft explain: no Gluon source: {source}", file=sys.stderr)


def _page(code: str) -> int:
    try:
        print(page_of(code))
    except LookupError as error:
        print(f"weft explain: {error.args[0]}", file=sys.stderr)
        return 2
    return 0


def _numbered(path: str, number: int) -> str:
    """The name of a further file.

    >>> _numbered("e.html", 0), _numbered("e.html", 1)
    ('e.html', 'e-2.html')
    """
    name = Path(path)
    return str(name.with_stem(f"{name.stem}-{number + 1}")) if number else path


def _of_script(options: argparse.Namespace) -> list[Explanation]:
    """Run a script, and explain what it launches."""
    launches = explaining.Launches(options.target or DEFAULT, options.name)
    run_watched(launches, options, "explain")
    return list(launches.explanations)


def _of_text(options: argparse.Namespace) -> Explanation:
    target = (options.target or _target_of(Path(options.script))).removeprefix("sim:")
    simulated = f"sim:{target}" if f"sim:{target}" in compiler.SIMULATED else target
    made = runtime.compile(options.script, simulated)
    numbers = dict(part.partition("=")[::2] for part in options.arg)
    return explaining.of_compiled(made, target, options.grid, {name: _number(text) for name, text in numbers.items()})


def _target_of(path: Path) -> str:
    """The target that layout IR names; the usual one for IR that names none."""
    named = re.search(r'ttg\.target = "([^"]+)"', path.read_text(encoding="utf-8")) if path.is_file() else None
    return named[1] if named else DEFAULT


def _number(text: str) -> int | float:
    return float(text) if any(c in text for c in ".en") else int(text, 0)


def _read(path: Path) -> list[Explanation]:
    """One explanation, or a list of them."""
    plain = json.loads(path.read_text(encoding="utf-8"))
    return [Explanation.from_json(json.dumps(each)) for each in (plain if isinstance(plain, list) else [plain])]


def _diff(options: argparse.Namespace) -> int:
    """By kernel and order; 1 where something differs, as `diff` does."""
    before, after = _read(options.before), _read(options.after)
    if len(before) != len(after):
        print(
            f"weft diff: {len(before)} explanations before, {len(after)} after; compared are the first", file=sys.stderr
        )
    differences = [a.diff(b) for a, b in zip(before, after, strict=False)]
    if options.html:
        for i, each in enumerate(differences):
            each.save_html(_numbered(options.html, i))
            print(f"{_numbered(options.html, i)} written", file=sys.stderr)
    elif options.json:
        print(json.dumps([d.to_dict() for d in differences], indent=1, ensure_ascii=False))
    else:
        print("\n\n".join(map(str, differences)))
    return int(any(differences) or len(before) != len(after))


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says; the exit code."""
    options: Any = parsed(_both(), arguments)
    try:
        code: int = options.run(options)
    except BrokenPipeError:  # the reader has seen enough
        raise
    except (WeftError, OSError, ValueError) as error:
        text = str(error)
        print(text if text.startswith("error:") else f"error: {text}", file=sys.stderr)
        return 2
    return code
