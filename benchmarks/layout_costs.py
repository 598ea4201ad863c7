"""What the layouts of a tree cost, kernel by kernel, beside those of another: nothing may be predicted to be slower.

    python benchmarks/layout_costs.py --record cases.json                # which kernels, with which arguments
    python benchmarks/layout_costs.py cases.json --save before.json      # in the tree before a change
    python benchmarks/layout_costs.py cases.json --against before.json   # after it

The kernels are those of explain_sets.py for one size of each: `wider`, `ncu`, `more`, and what PyTorch's compiler wrote
(`--inductor sources.json`: a list of name, file, kernel, grid, args and more). No GPU is needed. To record takes
PyTorch, whose tensors are then shapes without memory, and so do kernels of PyTorch's compiler, which import it.

A row has the predicted time on an H100, in microseconds, the conversions between layouts that move something, with the
cycles of a warp that they take, and the sectors that accesses of global memory touch. The exit status is 1 where a time
is longer than before by more than `--allowed` (0.5 %). `--all` prints what is unchanged, too.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import weft
import weft.language as tl
from sides_of import loaded

TYPES = {
    **{f"float{bits}": f"fp{bits}" for bits in (16, 32, 64)}, "bfloat16": "bf16", "bool": "i1", "uint8": "u8",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)}, "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
}  # fmt: skip
ALLOWED = 0.005


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
    if "work" in row:
        work = importlib.import_module(row["module"]).WORKS[row["work"]]
        launch = work.make()
        kernel, args, more, grid = work.kernel, launch.arguments, work.constants, launch.grid
    else:
        kernel, grid = kernel_of(row), row["grid"]
        args, more = [made(a) for a in row["args"]], {k: made(v) for k, v in row["more"].items()}
    with weft.target("cuda:90"):
        return kernel.explain(*args, **more, grid=tuple(grid))


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
    options = parser.parse_args()
    if options.record is not None:
        record(options.record)
        return 0
    rows = json.loads(options.cases.read_text(encoding="utf-8")) if options.cases else []
    if options.inductor is not None:
        weft.compat.install()
        rows += json.loads(options.inductor.read_text(encoding="utf-8"))
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
