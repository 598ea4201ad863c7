"""What the layouts of a tree cost, kernel by kernel, beside those of another, and beside a vote: none may be slower.

    python benchmarks/layout_costs.py --record cases.json                # which kernels, with which arguments
    python benchmarks/layout_costs.py cases.json --save before.json      # in the tree before a change
    python benchmarks/layout_costs.py cases.json --against before.json   # after it
    python benchmarks/layout_costs.py cases.json --vote                  # each group's layout by cost and by vote
    python benchmarks/layout_costs.py cases.json --compile-time          # how long it takes, by that of a vote

The kernels are those of explain_sets.py for one size of each: `wider`, `ncu`, `more`, and what PyTorch's compiler wrote
(`--inductor sources.json`: a list of name, file, kernel, grid, args and more). No GPU is needed. To record takes
PyTorch, whose tensors are then shapes without memory, and so do kernels of PyTorch's compiler, which import it.

A row has the predicted time on an H100, in microseconds, the conversions between layouts that move something, with the
cycles of a warp that they take, and the sectors that accesses of global memory touch. The exit status is 1 where a time
is longer than before by more than `--allowed` (0.5 %). `--all` prints what is unchanged, too.

With `--vote` each kernel is compiled twice: with the layouts that cost the least together, and with those of the vote
by which Weft chose before (layout_vote.py). A row has both predicted times; the cycles of a warp that the layouts cost
in both (`?` if the vote chooses a layout without a price); the lower bound of the cost, and by how much the choice
exceeds it; and the number of choices. The exit status is 1 if the vote is faster by more than `--allowed`. The last
lines list the kernels that it makes faster at all, and by how much.

With `--compile-time` each kernel is compiled three times in three ways, and the least time of each counts: by cost, by
vote, and with the layouts of the first way given. Given layouts make the same code without any search, prices or
solution, so the difference is what choosing takes. A vote makes different code of some kernels. Before each
compilation, the caches of this process (plans of conversions, maps, instructions) are emptied. The exit status is 1 if
the sum is more than 3 % above that of the vote.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import importlib
import importlib.util
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import weft
import weft.language as tl
from layout_vote import Election, Voted
from sides_of import loaded
from weft.ir import shape_of
from weft.passes import assign_layouts, layout_choices, layout_problem
from weft.passes.layout_wishes import alike
from weft.runtime import knobs

TYPES = {
    **{f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)}, "bfloat16": "bf16", "bool": "i1", "uint8": "u8",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)}, "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip
ALLOWED = 0.005
LONGER = 1.03
"""The time to compile by that of a vote, at most."""
ROUNDS = 3
"""How often each kernel is compiled by either."""


# -- recording ---------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """An argument as JSON has it."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    if isinstance(value, weft.TensorDescriptor):
        parts = {k: list(getattr(value, k)) for k in ("shape", "strides", "block_shape")}
        return {"base": plain(value.base), **parts}
    return {"tl": next(n for n, v in vars(tl).items() if v is value)} if isinstance(value, tl.dtype) else value


def record(path: Path) -> None:
    """Write down the kernels of three sets."""
    weft.compat.install()  # gpu_wider.py has Triton's side as well
    from torch.overrides import TorchFunctionMode

    import explain_sets
    from ncu_kernels import WORKS

    class WithoutMemory(TorchFunctionMode):
        """Tensors of the GPU have a shape and a type only."""

        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            return function(*args, **(kwargs | {"device": "meta"} if kwargs.get("device") == "cuda" else kwargs))

    rows = [
        {"name": f"ncu: {name}", "module": "ncu_kernels", "work": name} for name, x in WORKS.items() if x.least <= 90
    ]
    with WithoutMemory():
        for which in ("wider", "more"):
            for case in explain_sets.cases_of(which, lambda name: True):
                grid = case.grid(case.more) if callable(case.grid) else case.grid
                given = {k: plain(v) for k, v in case.more.items()}
                row = {"name": case.name, "module": Path(case.kernel.fn.__code__.co_filename).stem}
                row |= {"kernel": case.kernel.fn.__name__, "grid": list(grid), "more": given}
                rows.append({**row, "args": [plain(a) for a in case.args]})
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"{len(rows)} kernels in {path}")


# -- explaining --------------------------------------------------------------------------------------------------------


def made(value: Any) -> Any:
    """An argument from JSON."""
    if not isinstance(value, dict):
        return value
    if "tl" in value:
        return getattr(tl, value["tl"])
    if "base" in value:
        return weft.TensorDescriptor(made(value["base"]), value["shape"], value["strides"], value["block_shape"])
    return weft.like(value["shape"], TYPES.get(value["dtype"], value["dtype"]))


def kernel_of(row: dict[str, Any]) -> Any:
    """The kernel of a row that is in one of the files here, or whose file is in the row."""
    if "file" not in row:
        return getattr(loaded(row["module"]), row["kernel"])
    path = Path(tempfile.mkdtemp()) / "written.py"
    path.write_text(row["file"].replace("triton_helpers.set_driver_to_gpu()", ""), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"written{abs(hash(row['name']))}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    kernel = getattr(module, row["kernel"])
    return kernel if isinstance(kernel, weft.JITFunction) else kernel.fn  # of Inductor's tuner


def explained(row: dict[str, Any]) -> Any:
    """The explanation of a row's launch on an H100."""
    kernel, args, more, grid = launch_of(row)
    kernel.cache.clear()
    with weft.target("cuda:90"):
        return kernel.explain(*args, **more, grid=grid)


def compiled(row: dict[str, Any]) -> Any:
    """The code of a row's launch on an H100."""
    kernel, args, more, grid = launch_of(row)
    kernel.cache.clear()
    with weft.target("cuda:90"):
        return kernel.warmup(*args, **more, grid=grid)


def launch_of(row: dict[str, Any]) -> tuple[Any, Any, dict[str, Any], tuple[int, ...]]:
    """The kernel of a row, its arguments, its options and constants, and its grid."""
    if "work" in row:
        work = importlib.import_module(row["module"]).WORKS[row["work"]]
        launch = work.make()
        kernel, args, more, grid = work.kernel, launch.arguments, work.constants, launch.grid
    else:
        kernel, grid = kernel_of(row), row["grid"]
        args, more = [made(a) for a in row["args"]], {k: made(v) for k, v in row["more"].items()}
    return kernel, args, more, tuple(grid)


def figures(e: Any) -> dict[str, Any]:
    """What is compared."""
    moved = [c for c in e.conversions if not c.is_free]
    found = {"time": e.time.microseconds if e.time is not None else None}
    found |= {"bound": e.time.bound if e.time is not None else e.no_time, "conversions": len(moved)}
    found |= {"sectors": sum(a.sectors[0] for a in e.accesses), "instructions": e.counts.total.get("instructions", 0)}
    found["registers"] = e.occupancy.registers if e.occupancy is not None else None
    layouts = sorted({f"{t.remark.tile}: {t.layout}" for t in e.tiles})
    return {**found, "layouts": layouts}


def results(rows: list[dict[str, Any]], wanted: Callable[[str], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of each row."""
    for row in rows:
        if wanted(row["name"]):
            begun = time.monotonic()
            try:
                found = figures(explained(row))
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {str(error).strip()[:200]}"}
            yield row["name"], {**found, "seconds": round(time.monotonic() - begun, 2)}


# -- beside a vote -----------------------------------------------------------------------------------------------------


class Recorded(layout_choices.Choices):
    """Layouts by cost, which are kept for one that is given them."""

    chosen: ClassVar[list[tuple[list[Any], dict[int, Any]]]] = []

    def decide(self, block: Any) -> None:
        """The cheapest layouts."""
        super().decide(block)
        places = {i: self._chosen.places.get(op, self.accesses.get(op)) for i, op in enumerate(self.ops())}
        self.chosen.append(([self._chosen.groups[leader] for leader in self.leaders()], places))

    def leaders(self) -> list[Any]:
        """The groups, in an order."""
        return list(dict.fromkeys(map(self.find, self.tiles)))

    def ops(self) -> list[Any]:
        """The operations that may have a layout of their own, in an order."""
        return [*self.accesses, *self.shapes, *self.together]


class Given(Recorded):
    """The layouts that were kept, in the order of functions."""

    def decide(self, block: Any) -> None:
        """They, without a look at any other."""
        self.clusters.study(block, self.alike(block))
        self.study(block)
        self.tiles = list(self._tiles(block))
        groups, places = self.chosen.pop(0)
        places = {op: places[i] for i, op in enumerate(self.ops()) if places[i] is not None}
        self._chosen = layout_problem.Chosen(dict(zip(self.leaders(), groups, strict=True)), places)


class Priced(layout_choices.Choices):
    """Layouts by cost, beside the price of a vote."""

    compared: ClassVar[list[tuple[int, Any, float]]] = []

    def decide(self, block: Any) -> None:
        """The cheapest layouts; the solution, and what a vote's would cost, are kept."""
        super().decide(block)
        problem, election = self._problem, Election(self, block)
        given: dict[int, int] = {}
        is_priced = True
        groups = [(each, leader, election.of(leader)) for leader, each in problem._groups.items()]
        accesses = [(problem._places[op], op) for op in self.accesses if op in problem._places]
        accesses = [(each, op.operands[0], election.access(op)) for each, op in accesses]
        for chooser, tile, layout in (*groups, *accesses):
            if chooser.number is not None:
                ways = [i for i, way in enumerate(chooser.ways) if alike(way, layout, shape_of(tile.type))]
                is_priced &= bool(ways)
                given[chooser.number] = ways[0] if ways else 0
        vote = problem.problem.cheapest(given).price if is_priced else math.nan
        self.compared.append((len(problem.candidates()), self._chosen.solution, vote))


@contextlib.contextmanager
def layouts_by(choices: type[layout_choices.Choices]) -> Iterator[None]:
    """Layouts of all that is compiled inside are chosen so."""
    assign_layouts.Choices = choices
    try:
        yield
    finally:
        assign_layouts.Choices = layout_choices.Choices


def against_vote(rows: list[dict[str, Any]], wanted: Callable[[str], bool], allowed: float) -> int:
    """Print predicted times and prices by cost and by vote."""
    knobs.cache.disabled = True
    print(f"{'kernel':52} {'us':>10} {'by vote':>10} {'cycles':>10} {'by vote':>10} {'bound':>10} {'above':>6} choices")
    faster, ratios, gaps = dict[str, float](), [], []
    for row in rows:
        if not wanted(row["name"]):
            continue
        Priced.compared.clear()
        with layouts_by(Priced):
            ours = figures(explained(row))
        with layouts_by(Voted):
            theirs = figures(explained(row))
        compared = [(solution.price, vote, solution.bound) for _, solution, vote in Priced.compared]
        price, vote, bound = (sum(each) for each in zip((0, 0, 0), *compared))
        gaps.append(price / bound - 1 if bound else 0.0)
        times = [x["time"] for x in (ours, theirs)]
        if None not in times:
            ratios.append(times[1] / times[0])
            if times[0] > times[1]:
                faster[row["name"]] = times[0] / times[1] - 1
        count = sum(n for n, _, _ in Priced.compared)
        us = " ".join(f"{t:10,.2f}" if t is not None else f"{'?':>10}" for t in times)
        cycles = " ".join(f"{x:10,.0f}" if x == x else f"{'?':>10}" for x in (price, vote, bound))
        print(f"{row['name'][:52]:52} {us} {cycles} {gaps[-1]:6.1%} {count}", flush=True)
    exact = sum(gap < 1e-9 for gap in gaps)
    print(f"{len(gaps)} kernels, {exact} exact, the others at most {max(gaps):.1%} above the bound")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    slower = [name for name, part in faster.items() if part > allowed]
    print(f"{mean:.4f} of the speed of a vote (geometric mean), highest {max(ratios):.2f}, {len(slower)} slower")
    for name, part in faster.items():
        print(f"    slower than by vote by {part:.2%}: {name}")
    return 1 if slower else 0


class Caches:
    """All caches of functions of the compiler."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self.modules = 0

    def forget(self) -> None:
        """Empty them, as those of a process that begins; what has been loaded since is looked for once."""
        gc.collect()
        if len(sys.modules) != self.modules:
            cached = functools._lru_cache_wrapper
            found = [each for each in gc.get_objects() if isinstance(each, cached)]
            self.all += [each for each in found if (each.__module__ or "").startswith("weft.")]
            self.modules = len(sys.modules)
            gc.freeze()  # so that neither this nor a collection goes through it again
        for each in self.all:
            each.cache_clear()


def compile_time(rows: list[dict[str, Any]], wanted: Callable[[str], bool]) -> int:
    """Print the time to compile, beside that of a vote, and that with the same layouts given."""
    knobs.cache.disabled = True
    sums, caches = [0.0] * 3, Caches()
    for row in rows:
        if not wanted(row["name"]):
            continue
        Recorded.chosen.clear()
        with layouts_by(Recorded):
            compiled(row)
        kept, least = [*Recorded.chosen], [math.inf] * 3
        for _ in range(ROUNDS):
            Recorded.chosen[:] = kept
            for i, choices in enumerate((layout_choices.Choices, Voted, Given)):
                with layouts_by(choices):
                    caches.forget()
                    begun = time.process_time()
                    compiled(row)
                    least[i] = min(least[i], time.process_time() - begun)
        sums = [a + b for a, b in zip(sums, least, strict=True)]
        ours, vote, given = least
        print(f"{row['name'][:52]:52} {ours:8.3f} s, {vote:8.3f} s by vote, {given:8.3f} s given", flush=True)
    ours, vote, given = sums
    print(f"{ours:.2f} s, {vote:.2f} s by vote: {ours / vote:.4f}, at most {LONGER}")
    print(f"    with the same layouts given {given:.2f} s: choosing takes {ours / given - 1:.1%}")
    return 1 if ours > vote * LONGER else 0


# -- the table ---------------------------------------------------------------------------------------------------------


def line(name: str, found: dict[str, Any], before: dict[str, Any] | None) -> str:
    """A row as text: before and after, where they differ."""
    if "error" in found:
        return f"{name[:52]:52} {found['error'][:110]}"

    def both(key: str, form: str) -> str:
        now = form.format(found[key]) if found[key] is not None else "?"
        was = form.format(before[key]) if before is not None and before.get(key) is not None else ""
        return f"{was} > {now}" if was and was != now else now

    cells = [both("time", "{:,.2f}"), both("conversions", "{}"), both("sectors", "{:,}"), both("registers", "{}")]
    return f"{name[:52]:52} {cells[0]:>22} {cells[1]:>9} {cells[2]:>26} {cells[3]:>11}  {both('bound', '{}')}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path, nargs="?", help="which kernels, as --record wrote them")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write which kernels there are")
    parser.add_argument("--inductor", type=Path, metavar="FILE", help="kernels that PyTorch's compiler wrote")
    parser.add_argument("--only", default="", metavar="WORD", help="those with a word in their names")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures, those that are there kept")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with figures of another tree")
    parser.add_argument("--allowed", type=float, default=ALLOWED, metavar="PART", help="how much longer a time may be")
    parser.add_argument("--all", action="store_true", help="print what is unchanged, too")
    parser.add_argument("--vote", action="store_true", help="beside a vote")
    parser.add_argument("--compile-time", action="store_true", help="the time to compile, by that of a vote")
    options = parser.parse_args()
    if options.record is not None:
        record(options.record)
        return 0
    rows = json.loads(options.cases.read_text(encoding="utf-8")) if options.cases else []
    if options.inductor is not None:
        weft.compat.install()
        rows += json.loads(options.inductor.read_text(encoding="utf-8"))
    if options.vote:
        return against_vote(rows, lambda name: options.only in name, options.allowed)
    if options.compile_time:
        return compile_time(rows, lambda name: options.only in name)
    before = json.loads(options.against.read_text(encoding="utf-8")) if options.against else {}
    after = json.loads(options.save.read_text(encoding="utf-8")) if options.save and options.save.exists() else {}
    print(f"{'kernel':52} {'us':>22} {'converted':>9} {'sectors':>26} {'registers':>11}  bound")
    ratios: list[float] = []
    slower: list[str] = []
    for name, found in results(rows, lambda name: options.only in name):
        was = before.get(name)
        after[name] = found
        if was is not None and was.get("time") and found.get("time"):
            ratios.append(was["time"] / found["time"])
            if found["time"] > was["time"] * (1 + options.allowed):
                slower.append(name)
        alike = was is not None and all(was.get(k) == v for k, v in found.items() if k != "seconds")
        if options.all or not alike:
            print(line(name, found, was), flush=True)
        if was is not None and "error" in found and "error" not in was:
            slower.append(name)
        if options.save is not None:
            options.save.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} kernels, {mean:.4f} of the speed before (geometric mean), {len(slower)} slower")
    for name in slower:
        print(f"    slower: {name}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
