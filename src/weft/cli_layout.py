"""`weft layout`: pictures of layouts, conversions between them, bank conflicts.

weft layout show EXPRESSION [OTHER] --shape 32x32 [--hardware | --matrix | --cute] [--svg FILE] [--html FILE] [--json]
weft layout convert SRC DST --shape 32x32 --bits 16 --target cuda:90 [--html FILE] [--json]   # or a store, or a load
weft layout conflicts REGISTERS SHARED --shape 32x32 --bits 16 [--vector 4] [--html FILE] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weft import view
from weft.base import LayoutError
from weft.layouts import (
    DistributedLayout,
    Layout,
    LinearLayout,
    PaddedSharedLayout,
    SharedLayout,
    bank_conflicts,
    shared_access,
    to_cute,
    wavefronts,
)
from weft.layouts.plan import MACHINES, Plan, plan_in_registers, plan_local_access

__all__ = ["main", "parser"]

Command = Callable[[argparse.Namespace], int]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def _shape(text: str) -> tuple[int, ...]:
    """The shape of a tile: 32x64, or 32,64.

    >>> _shape("32x64")
    (32, 64)
    """
    parts = text.replace(",", "x").split("x")
    if not all(p.strip().isdecimal() and len(p) < 12 for p in parts):
        raise argparse.ArgumentTypeError(f"a shape is written as 32x64, got {text!r}")
    sizes = tuple(int(p) for p in parts)
    if any(s < 1 or s & (s - 1) for s in sizes):
        raise argparse.ArgumentTypeError(f"the sizes of a tile are powers of two, got {text!r}")
    return sizes


def _dims(text: str) -> tuple[str, ...]:
    """Names of the dimensions of a tile: M,N.

    >>> _dims("row, column")
    ('row', 'column')
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names) or len(set(names)) != len(names):
        raise argparse.ArgumentTypeError(f"names of dimensions are written as M,N, each once, got {text!r}")
    return names


def _colours(wanted: str) -> int:
    """Bits of colour that standard output takes: 0, 8 or 24 (https://no-color.org, COLORTERM)."""
    environment = os.environ
    if wanted == "never" or (wanted == "auto" and environment.get("NO_COLOR")):
        return 0
    if wanted == "auto" and not (sys.stdout.isatty() and environment.get("TERM", "dumb") != "dumb"):
        return 0
    true = environment.get("COLORTERM", "").lower() in ("truecolor", "24bit") or "direct" in environment.get("TERM", "")
    return 24 if true or wanted == "always" else 8


def _write(path: str, text: str) -> None:
    Path(path).write_text(text + "\n", encoding="utf-8")
    print(f"{path} written", file=sys.stderr)


def _facts(text: str, linear: LinearLayout) -> dict[str, Any]:
    return {
        "expression": text,
        "in_dims": linear.in_dims,
        "out_dims": linear.out_dims,
        "bases": {dim: [list(b) for b in bases] for dim, bases in linear.bases.items()},
        "rank": linear.rank,
        "surjective": linear.rank == linear.total_out_log,
        "injective": linear.rank == linear.total_in_log,
    }


def _shown(text: str, shape: tuple[int, ...] | None) -> tuple[Layout | LinearLayout, tuple[int, ...]]:
    layout = view.parse_layout(text, shape)
    return layout, _shape_for(text, layout, None if isinstance(layout, LinearLayout) else shape)


def _shape_for(text: str, layout: Layout | LinearLayout, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    return view.placed(text, lambda: view.natural_shape(layout)) if shape is None else shape


def _stated(text: str) -> tuple[int, ...] | None:
    """The shape of a tile that a layout itself states, as linear ones do; None where it is for any."""
    try:
        layout = view.parse_layout(text)
        return view.natural_shape(layout) if isinstance(layout, (LinearLayout, PaddedSharedLayout)) else None
    except LayoutError:  # it needs a shape, or is wrong, which is said where it is used
        return None


def _expression(argument: str, lanes: int | None) -> str:
    """The expression that an argument stands for: itself, or what is in the file that it names, or standard input."""
    if argument == "-":
        return view.expression_in(sys.stdin.read(), where="standard input", lanes=lanes)
    if not argument.startswith("@"):
        return argument
    path, _, name = argument[1:].partition("#")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise LayoutError(f"{path} is no text", hint="a file of layouts is text in UTF-8") from None
    return view.expression_in(text, name, path, lanes)


def _linear(
    text: str, layout: Layout | LinearLayout, shape: tuple[int, ...], dims: Sequence[str] | None = None
) -> LinearLayout:
    """The linear layout of a tile; errors with carets under the expression."""
    return view.placed(text, lambda: view.as_linear(layout, shape, dims))


def _page_layout(text: str, shape: tuple[int, ...], dims: Sequence[str] | None = None) -> view.PageLayout:
    """A layout for the page, of a tile of this shape; the page itself gives it the names `dims`."""
    layout = view.parse_layout(text, shape)
    pads = layout.interval_padding_pairs if isinstance(layout, PaddedSharedLayout) else ()
    _linear(text, layout, shape, dims)
    return view.PageLayout(text, _linear(text, layout, shape), pads)


def _text(
    layout: Layout | LinearLayout, shape: tuple[int, ...], kind: str, options: argparse.Namespace, colour: int
) -> str:
    """The picture as text: up to 64 rows and columns, and on a terminal no more than it has room for."""
    width = shutil.get_terminal_size((160, 40)).columns if sys.stdout.isatty() else math.inf
    columns = 64
    while True:
        limit = None if options.all else (64, columns)
        grid = view.grid_of(layout, shape, kind, limit=limit, element_bits=options.bits, dims=options.dims)
        text = view.render_text(grid, colour)
        rows = ESCAPE.sub("", text[text.index("\n\n") :]).splitlines()[2:]  # below the legend
        longest = max((len(row) for row in rows if not row.startswith("(cut")), default=0)
        if options.all or kind == "matrix" or longest <= width or columns == 1:
            return text
        columns = max(1, min(columns - 1, int(columns * width // longest)))


def _show(options: argparse.Namespace) -> int:
    shown = [(options.expression, *_shown(options.expression, options.shape))]
    first_shape = shown[0][2]
    if options.other:
        shown.append((options.other, *_shown(options.other, options.shape or first_shape)))
    kind = "matrix" if options.matrix else "hardware" if options.hardware else "tile"
    linear = [_linear(*row, options.dims) for row in shown]
    if options.svg:
        limit = None if options.all else (128, 128)
        pictures = [
            view.placed(
                text,
                lambda: view.to_svg(layout, shape, kind, limit=limit, element_bits=options.bits, dims=options.dims),
            )
            for text, layout, shape in shown
        ]
        _write(options.svg, view.side_by_side(pictures) if options.other else pictures[0])
    if options.html:
        _write(options.html, _show_page(options, first_shape, kind))
    if options.json:
        facts = [
            {
                "shape": list(shape),
                "name": view.name_of(layout, shape),
                "cute": _cute(layout, shape),
                **_facts(text, map_),
            }
            for (text, layout, shape), map_ in zip(shown, linear, strict=True)
        ]
        print(json.dumps({**facts[0], **({"other": facts[1]} if options.other else {})}))
    elif options.cute:
        for text, layout, shape in shown:
            print(view.placed(text, lambda: to_cute(layout, shape)))
    elif not (options.svg or options.html):
        colour = _colours(options.color)
        for text, layout, shape in shown:
            named = view.name_of(layout, shape)
            print(text + (f"\n= {named}" if named else ""))
            print(view.placed(text, lambda: _text(layout, shape, kind, options, colour)))
    return 0


def _cute(layout: Layout | LinearLayout, shape: tuple[int, ...]) -> str | None:
    """The CuTe layout that it is, as text; None where there is none."""
    try:
        return to_cute(layout, shape)
    except LayoutError:
        return None


def _show_page(options: argparse.Namespace, shape: tuple[int, ...], kind: str) -> str:
    """The page of one layout or two; one of shared memory is shown as banks as well."""
    a = _page_layout(options.expression, shape, options.dims)
    b = _page_layout(options.other, shape, options.dims) if options.other else None
    shared = next((x for x in (b, a) if x is not None and x.linear.has_in("offset")), None)
    if b is shared and b is not None:
        b = None
    return view.render_page(a, shape, b=b, shared=shared, element_bits=options.bits, view=kind, dims=options.dims)


def _convert(options: argparse.Namespace) -> int:
    src = view.parse_layout(options.src, options.shape)
    shape = options.shape or _stated(options.dst) or _shape_for(options.src, src, None)
    a, b = _page_layout(options.src, shape, options.dims), _page_layout(options.dst, shape, options.dims)
    if a.linear.has_in("offset") or b.linear.has_in("offset"):
        return _store_or_load(a, b, shape, options)
    plan = _plan(a, b, shape, options)
    if options.html:
        page = view.render_page(a, shape, b=b, plan=plan, element_bits=options.bits, dims=options.dims)
        _write(options.html, page)
    if options.json:
        steps = [{"kind": s.kind, "text": s.text} for s in view.plan_steps(plan)]
        print(
            json.dumps({"src": options.src, "dst": options.dst, "shape": list(shape), **plan.to_dict(), "steps": steps})
        )
    else:
        print(f"{options.src}\n-> {options.dst}\n{'x'.join(map(str, shape))}, {options.bits} bits, {options.target}")
        for i, step in enumerate(view.plan_steps(plan), 1):
            print(f"{i:>3}. {step.kind}: {step.text}")
        print(plan.explain())
    return 0


def _store_or_load(a: view.PageLayout, b: view.PageLayout, shape: tuple[int, ...], options: argparse.Namespace) -> int:
    """A conversion to or from shared memory: one access by every warp."""
    if a.linear.has_in("offset") and b.linear.has_in("offset"):
        error = LayoutError(
            "both layouts are in shared memory, and a tile goes from one to the other by registers",
            hint="convert the first to a layout in registers, and that to the second",
        )
        view.placed(b.text, lambda: _raise(error))
    store = b.linear.has_in("offset")
    registers, memory = (a, b) if store else (b, a)
    access = view.placed(
        memory.text,
        lambda: plan_local_access(
            registers.linear,
            memory.linear,
            shape,
            options.bits,
            options.target,
            store=store,
            gaps=memory.pads,
        ),
    )
    if options.html:
        page = view.render_page(
            registers, shape, shared=memory, element_bits=options.bits, dims=options.dims, opens="banks"
        )
        _write(options.html, page)
    if options.json:
        facts = {"src": a.text, "dst": b.text, "shape": list(shape), "element_bits": options.bits, **access.to_dict()}
        print(json.dumps(facts))
    else:
        print(f"{a.text}\n-> {b.text}\n{'x'.join(map(str, shape))}, {options.bits} bits, {options.target}")
        print(f"  1. {'store' if store else 'load'}: {view.access_text(access.access, store)}")
        print(access.explain())
    return 0


def _plan(a: view.PageLayout, b: view.PageLayout, shape: tuple[int, ...], options: argparse.Namespace) -> Plan:
    """The plan, checked; errors about one of the layouts with carets under it."""
    try:
        plan = plan_in_registers(a.linear, b.linear, shape, options.bits, options.target)
        plan.check()
    except LayoutError as error:
        raised = error
        about = {"the source layout": a.text, "the destination layout": b.text}
        for name, text in about.items():
            if error.message.startswith(name):
                view.placed(text, lambda: _raise(raised))
        view.placed(b.text, lambda: _raise(raised))
    return plan


def _raise(error: LayoutError) -> None:
    raise error


def _conflicts(options: argparse.Namespace) -> int:
    registers = view.parse_layout(options.registers, options.shape)
    shape = options.shape or _stated(options.shared) or _shape_for(options.registers, registers, None)
    shared = view.parse_layout(options.shared, shape)
    if isinstance(registers, SharedLayout) or isinstance(shared, DistributedLayout):
        odd = options.registers if isinstance(registers, SharedLayout) else options.shared
        error = LayoutError(
            "conflicts takes a layout in registers first, then one in shared memory",
            hint=f"you gave {options.registers} and {options.shared}",
        )
        view.placed(odd, lambda: _raise(error))
    a, s = (_page_layout(text, shape, options.dims) for text in (options.registers, options.shared))
    facts = view.placed(
        options.shared, lambda: _access(_with_registers(registers), shared, shape, options.bits, options.vector)
    )
    if options.html:
        page = view.render_page(a, shape, shared=s, element_bits=options.bits, dims=options.dims, opens="banks")
        _write(options.html, page)
    if options.json:
        print(json.dumps({"registers": options.registers, "shared": options.shared, "shape": list(shape), **facts}))
        return 0
    lost = facts["wavefronts"] - facts["least"]
    print(f"{options.registers}\nin {options.shared}\n{'x'.join(map(str, shape))}, {options.bits} bits")
    elements = f"{facts['vector']} element{'s' if facts['vector'] > 1 else ''}"
    print(f"{facts['vector'] * options.bits:>6} bits a lane at once ({elements})")
    print(f"{facts['instructions']:>6} instructions of each warp")
    print(
        f"{facts['wavefronts']:>6} wavefronts each, {facts['least']} at least: {lost or 'none'} lost to bank conflicts"
    )
    return 0


def _with_registers(layout: Layout | LinearLayout) -> Layout | LinearLayout:
    """A layout given by its bases alone may leave the registers out: then each lane has one element."""
    if not isinstance(layout, LinearLayout) or layout.has_in("register") or not layout.out_dims:
        return layout
    return LinearLayout.zeros_1d(1, "register", next(iter(layout.out_dims))) * layout


def _access(
    registers: Any, shared: Any, shape: tuple[int, ...], bits: int, wanted: int | None = None
) -> dict[str, Any]:
    """The figures of an access by vectors of `wanted` elements, or the widest."""
    vector = 1
    for wider in (2, 4, 8, 16, 32, 64, 128):
        try:
            wavefronts(registers, shared, shape, bits, wider)
        except LayoutError:
            break
        vector = wider
    if wanted is not None:
        if wanted > vector:
            raise LayoutError(
                f"a vector of {wanted} elements was requested, but a lane has only {vector} in a row",
                hint=f"--vector takes a power of two up to {vector}",
            )
        vector = wanted
    access = shared_access(registers, shared, shape)
    distinct = sum(1 for column in access.in_columns("register") if column)
    return {
        "element_bits": bits,
        "vector": vector,
        "instructions": (1 << distinct) // vector,
        "wavefronts": wavefronts(registers, shared, shape, bits, vector),
        "least": max(1, vector * bits * access.in_dims.get("lane", 1) // 1024),
        "bank_conflicts": bank_conflicts(registers, shared, shape, bits),
    }


def _guarded(command: Command) -> Command:
    """Errors of layouts and files as text, not as tracebacks; exit code 2."""

    def run(options: argparse.Namespace) -> int:
        try:
            for name in ("expression", "other", "src", "dst", "registers", "shared"):
                if getattr(options, name, None):
                    setattr(options, name, _expression(getattr(options, name), options.lanes))
            code = command(options)
            sys.stdout.flush()
        except (LayoutError, OSError) as error:
            if isinstance(error, BrokenPipeError):  # the reader has seen enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            print(error if isinstance(error, LayoutError) else f"error: {error}", file=sys.stderr)
            return 2
        except UnicodeEncodeError as error:
            print(f"error: {error.object[error.start]!a} cannot be written as {error.encoding}", file=sys.stderr)
            return 2
        return code

    return run


def parser(name: str = "layout") -> argparse.ArgumentParser:
    """What the command takes."""
    layout = argparse.ArgumentParser("weft layout", description="Draw layouts, plan conversions, count bank conflicts.")
    what = layout.add_subparsers(dest="what", required=True)
    show = what.add_parser("show", help="draw a layout")
    show.add_argument(
        "expression",
        help="a layout as in Gluon: BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]); or @FILE, @FILE#NAME, - to read one",
    )
    show.add_argument("other", nargs="?", help="a second layout, drawn beside the first")
    views = show.add_mutually_exclusive_group()
    views.add_argument(
        "--hardware", action="store_true", help="show the inverse: which element each register of each thread holds"
    )
    views.add_argument(
        "--cute",
        action="store_true",
        help="print the layout in CuTe's notation: Swizzle<B,M,S> o offset o Shape:Stride",
    )
    views.add_argument("--matrix", action="store_true", help="show the matrix over F2")
    show.add_argument("--svg", metavar="FILE", help="write the picture as SVG")
    show.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="whether to use colours in the terminal"
    )
    show.add_argument("--all", action="store_true", help="do not cut large tiles")
    show.set_defaults(run=_guarded(_show))
    convert = what.add_parser(
        "convert", help="plan how a tile gets from one layout to another, or to shared memory and back, with its cost"
    )
    convert.add_argument("src", help="the layout that the tile has")
    convert.add_argument("dst", help="the layout that it gets")
    convert.add_argument("--target", default="cuda:90", help=f"one of {', '.join(MACHINES)}")
    convert.set_defaults(run=_guarded(_convert))
    conflicts = what.add_parser("conflicts", help="count the wavefronts of an access to shared memory")
    conflicts.add_argument("registers", help="the layout of the tile in registers")
    conflicts.add_argument("shared", help="the layout of shared memory")
    conflicts.add_argument(
        "--vector",
        type=int,
        choices=(1, 2, 4, 8, 16, 32, 64, 128),
        help="how many elements each lane accesses at a time (default: as many as possible)",
    )
    conflicts.set_defaults(run=_guarded(_conflicts))
    for command in (show, convert, conflicts):
        command.add_argument(
            "--shape", type=_shape, help="shape of the tile: 32x64 (default: the smallest that shows the whole layout)"
        )
        command.add_argument(
            "--bits",
            type=int,
            default=32,
            choices=(1, 2, 4, 8, 16, 32, 64, 128),
            help="bits of an element (default: 32)",
        )
        command.add_argument(
            "--dims", metavar="NAMES", type=_dims, help="names for the dimensions dim0, dim1, ... of the tile: M,N"
        )
        command.add_argument("--html", metavar="FILE", help="write a page to explore it in a browser, offline")
        command.add_argument(
            "--lanes",
            type=int,
            choices=(1, 2, 4, 8, 16, 32, 64),
            help="threads of a warp, if the layout is read from a picture",
        )
        command.add_argument("--json", action="store_true", help="print JSON")
    return layout


def main(arguments: Sequence[str]) -> int:
    """Do what comes after `weft layout`; the exit code."""
    options = parser().parse_args(arguments)
    code: int = options.run(options)
    return code
