"""The table of goals for GPUs without a GPU: verdicts, the table, what is kept, and a run whose scripts are pretended.

In a run, benchmarks/gpu_goals.py is the real one, in a folder of its own beside scripts, a PyTorch and an nvidia-smi
that only pretend: its processes begin, compile ahead, measure, fail and end as they do on a GPU.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"


@pytest.fixture(scope="module")
def goals() -> ModuleType:
    """benchmarks/goals.py"""
    spec = importlib.util.spec_from_file_location("goals", BENCHMARKS / "goals.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["goals"] = module  # where its dataclasses look for their types
    spec.loader.exec_module(module)
    del sys.modules["goals"]
    return module


# -- verdicts ---------------------------------------------------------------------------------------------------------


def test_each_line_has_to_hold(goals: ModuleType) -> None:
    goal = goals.Goal("products", r"^p", "cuBLAS", 0.95, 1.0)
    lines = [
        goals.Line("p1", {"Weft": 96.0, "cuBLAS": 100.0}, won={"Weft": "small", "cuBLAS": "theirs"}),
        goals.Line("p2", {"Weft": 190.0, "cuBLAS": 200.0}, won={"Weft": "large"}),
        goals.Line("other", {"Weft": 1.0, "cuBLAS": 100.0}),
    ]
    verdict = goal.verdict(lines, H100)
    assert (verdict.answer, verdict.reached, verdict.line.name, verdict.lines) == ("yes", 0.95, "p2", 2)
    assert verdict.is_met
    assert verdict.cells() == ("products", "0.95 of cuBLAS", "1 of cuBLAS", "0.950 (p2)", "large", "yes")
    lines.append(goals.Line("p3", {"Weft": 94.9, "cuBLAS": 100.0}))
    verdict = goal.verdict(lines, H100)
    assert (verdict.answer, verdict.line.name, verdict.short, verdict.is_met) == ("SHORT", "p3", 1, False)
    assert verdict.cells()[-1] == "SHORT: 1 of 3"


def test_an_aim_is_told_when_it_is_reached_by_all(goals: ModuleType) -> None:
    goal = goals.Goal("rows", r".", "copy", 0.88, 0.95)
    lines = [goals.Line(str(i), {"Weft": part, "copy": 1.0}) for i, part in enumerate((0.95, 0.99))]
    assert goal.verdict(lines, H100).cells()[-1] == "yes, and the aim"
    lines.append(goals.Line("2", {"Weft": 0.94, "copy": 1.0}))
    assert goal.verdict(lines, H100).cells()[-1] == "yes"


def test_means_are_geometric(goals: ModuleType) -> None:
    lines = [goals.Line(str(part), {"Weft": part, "Triton": 1.0}) for part in (2.0, 0.5, 1.331, 1.1)]
    for wanted, answer in ((1.1, "yes"), (1.1001, "SHORT")):
        verdict = goals.Goal("w", r".", "Triton", wanted, 1.2, "mean").verdict(lines, H200)
        assert (verdict.answer, round(verdict.reached, 6)) == (answer, 1.1)
        assert verdict.cells()[:2] == ("w", f"mean {wanted:g} of Triton")
        assert verdict.cells()[3:] == ("1.100 (mean of 4)", "", answer)


def test_times_are_held_by_what_is_less(goals: ModuleType) -> None:
    goal = goals.Goal("launch", r"^six$", "floor", 1.6, 1.3, is_time=True)
    for ours, cells in ((1.3, "yes, and the aim"), (1.6, "yes"), (1.61, "SHORT")):
        verdict = goal.verdict([goals.Line("six", {"Weft": ours, "floor": 1.0}, "us")], H100)
        assert (verdict.reached, verdict.cells()[-1]) == (ours, cells)
    worst = goals.Goal("all", r".", "floor", 2.0, None, is_time=True)
    two = [goals.Line(name, {"Weft": ours, "floor": 1.0}) for name, ours in (("slow", 1.9), ("fast", 1.1))]
    assert worst.verdict(two, H100).line.name == "slow"
    assert worst.verdict(two, H100).cells()[1] == "at most 2 of floor"


def test_building_counts_in_all(goals: ModuleType) -> None:
    goal = goals.Goal("building", r".", "Triton", 1.1, 0.8, "building", is_time=True)
    same = {"Weft": 1.0, "Triton": 1.0}
    lines = [
        goals.Line("a", same, built={"Weft": 3.0, "Triton": 8.0}),
        goals.Line("b", same, built={"Weft": 8.0, "Triton": 2.0}),  # four times as long, and yet
    ]
    assert goal.verdict(lines, H100).cells()[3:] == ("1.100 (all 2)", "", "yes")
    lines.append(goals.Line("c", same, built={"Weft": 1.2, "Triton": 1.0}))
    assert goal.verdict(lines, H100).answer == "SHORT"


def test_figures_alone_are_asked_of_an_h100(goals: ModuleType) -> None:
    goal = goals.Goal("backward", r".", "", 420, 560, unit="TFLOP/s")
    lines = [goals.Line("d64", {"Weft": 400.0, "Triton": 1.0}, "TFLOP/s")]
    assert goal.verdict(lines, H100).answer == "SHORT"
    other = goal.verdict(lines, H200)
    assert (other.answer, other.is_met, other.cells()[3]) == ("not asked of this card", True, "400 TFLOP/s")
    only_aim = goals.Goal("aim", r".", "", None, 399, unit="TFLOP/s").verdict(lines, H100)
    assert (only_aim.answer, only_aim.cells()[1:3]) == ("no bound", ("", "399 TFLOP/s"))


def test_equal_speeds_may_differ_by_noise(goals: ModuleType) -> None:
    goal = goals.Goal("rows", r".", "Triton", 1.0, None, noise=0.02)
    for part, answer in ((0.98, "yes"), (0.979, "SHORT")):
        assert goal.verdict([goals.Line("a", {"Weft": part, "Triton": 1.0})], H100).answer == answer


def test_what_failed_or_was_not_measured_is_not_met(goals: ModuleType) -> None:
    goal = goals.Goal("w", r"^a", "Triton", 0.5, None)
    assert goal.verdict([goals.Line("b", {"Weft": 1.0, "Triton": 1.0})], H100).answer == "not measured"
    good = goals.Line("a1", {"Weft": 1.0, "Triton": 1.0}, built={"Weft": 1.0, "Triton": 1.0})
    verdict = goal.verdict([good, goals.Line("a2", error="wrong result")], H100)
    assert (verdict.is_met, verdict.cells()[3:]) == (False, ("", "", "failed: 1 of 2, wrong result"))
    missing = goals.Line("a2", error=goals.NOT_MEASURED)
    verdict = goal.verdict([good, missing], H100)
    assert (verdict.is_met, verdict.cells()[3:]) == (False, ("1.000 (a1)", "", "not measured: 1 of 2"))
    slow = goals.Line("a3", {"Weft": 0.1, "Triton": 1.0})
    assert goal.verdict([good, missing, slow], H100).answer == "SHORT"
    for over in ("mean", "building"):
        one = goals.Goal("w", r"^a", "Triton", 0.5, None, over)
        assert not one.verdict([good, goals.Line("a2", error="no")], H100).is_met
        assert not one.verdict([good, missing], H100).is_met
        assert not one.verdict([], H100).is_met


def test_what_is_printed_behind_a_line(goals: ModuleType) -> None:
    line = goals.Line("softmax f32 1000", {"Weft": 0.87, "Triton": 0.9, "copy": 1.0}, "TB/s", {"Weft": "tile 1024/4"})
    assert goals.short_of("rows", line, H100) == "  short of 0.88 of copy and 1 of Triton"
    assert line.shown() == (
        "softmax f32 1000: Weft 0.87  Triton 0.9  copy 1 TB/s  (0.97 of Triton, 0.87 of copy)  tile 1024/4"
    )
    fine = goals.Line("softmax f32 1000", {"Weft": 0.9, "Triton": 0.91, "copy": 1.0}, "TB/s")
    assert goals.short_of("rows", fine, H100) == ""
    failed = goals.Line("softmax f32 1000", error="AssertionError: wrong result")
    assert failed.shown() == "softmax f32 1000: FAILED: AssertionError: wrong result"
    assert goals.short_of("rows", failed, H100) == ""


NAMES = {
    "attention": [f"bf16 d128 {n}{c}" for n in (1024, 2048, 4096, 8192, 16384) for c in ("", " causal")]
    + [f"bf16 d64 {n}{c}" for n in (4096, 16384) for c in ("", " causal")],
    "products": ["8192x8192x512", "8192x8192x1024", "8192x8192x16384", "8192", "1024", "4104", "1160x8200x4104"],
    "launch": [f"launch, {x}" for x in ("6 arguments", "6 arguments, 4 constants by name", "19 arguments", "frozen")],
    "gpu": ["copy, blocks of 1024"],
    "cold": ["cold compile, add"],
    "fp8": ["products 4096x4096x4096", "attention e5m2 d128 16384", "grouped e4m3"],
    "backward": ["bf16 d128 16384", "bf16 d64 16384 causal"],
    "odd": ["scale i8 1001", "softmax f32 32003", "scale f16 65535", "scale f16 100003", "transposition f16 4097"],
}
ABOUT = {
    "attention": [1, 1, 1, 8, 2],
    "products": [1, 3, 3, 3],
    "launch": [1, 1, 1, 4],
    "gpu": [1],
    "cold": [1, 1],
    "fp8": [1, 1, 1, 1],
    "backward": [2, 1, 1],
    "odd": [5, 2, 1],
}


@pytest.mark.parametrize("row", NAMES)
def test_goals_are_about_the_lines_that_they_name(row: str, goals: ModuleType) -> None:
    """How many lines each goal of a row is about."""
    lines = [goals.Line(name) for name in NAMES[row]]
    assert [len(goal.about(lines)) for goal in goals.ROWS[row].goals] == ABOUT[row]


def test_every_script_says_what_its_parts_are(goals: ModuleType) -> None:
    for row in goals.ROWS.values():
        text = (BENCHMARKS / f"{row.script}.py").read_text(encoding="utf-8")
        for wanted in ("def parts() ->", "def prepare(part: str) ->", "def measure(part: str"):
            assert f"\n{wanted}" in text, f"{row.script}.py has no `{wanted}`"


# -- a run ------------------------------------------------------------------------------------------------------------

PRETENDED = {
    "benchmarks/gpu_attention.py": """
        import os
        import time
        from goals import Line

        def parts():
            return ["bf16 d128 16384", "bf16 d128 16384 causal", "bf16 d128 1024", "bf16 d64 16384"]

        def prepare(part):
            time.sleep(float(os.environ.get("TAKES", "0")))
            with open(os.environ["TOLD"], "a") as told:
                print("prepared", part, file=told)

        def measure(part):
            with open(os.environ["TOLD"], "a") as told:
                print("measured", part, file=told)
            print("what a library prints is no answer")
            if part == os.environ.get("DIES"):
                os._exit(7)
            if part == os.environ.get("WRONG"):
                raise AssertionError("wrong result")
            yield Line(part, {"Weft": 500.0, "Triton": 400.0, "cuDNN": 500.0}, "TFLOP/s", {"Weft": "128 128 8 2"})
    """,
    "benchmarks/gpu_rows.py": """
        from goals import Line

        def parts():
            return ["softmax f32 1000"]

        def prepare(part):
            raise ValueError("cannot be compiled")

        def measure(part):
            yield Line(part, {"Weft": 0.7, "Triton": 0.7, "copy": 1.0}, "TB/s", {"Weft": "tile"})
    """,
    "benchmarks/gpu.py": """
        import os
        from goals import Line

        def parts():
            return ["launch"]

        def prepare(part):
            pass

        def measure(part):
            with open(os.environ["TOLD"], "a") as told:
                print("measured", part, file=told)
            yield Line(part, {"Weft": 1.0, "Triton": 1.0, "cuLaunchKernel": 1.0}, "us")
    """,
    "benchmarks/gpu_sides.py": "def compile_only(share, shares):\n    pass",
    "benchmarks/torch/__init__.py": """
        class cuda:
            synchronize = empty_cache = staticmethod(lambda: None)
    """,
    "benchmarks/triton/__init__.py": "",
    "tools/need_gpu.py": "",
}


class Pretended:
    """A folder with the real gpu_goals.py among pretended scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in PRETENDED.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
        for name in ("goals.py", "gpu_goals.py", "gpu_facts.py"):
            shutil.copy(BENCHMARKS / name, folder / "benchmarks")
        tool = folder / "bin" / "nvidia-smi"
        tool.parent.mkdir()
        tool.write_text(f'#!/bin/sh\necho "{H100}, 580.1"\n')
        tool.chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """(status, stdout, stderr) of a run."""
        more = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
        told = self.folder / "told"
        told.write_text("")
        command = [sys.executable, str(self.folder / "benchmarks" / "gpu_goals.py"), *arguments]
        env = {**os.environ, **more, "TOLD": str(told), **environment}
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def told(self, what: str) -> list[str]:
        """The parts that were prepared, or measured."""
        lines = (self.folder / "told").read_text().splitlines()
        return [line.removeprefix(f"{what} ") for line in lines if line.startswith(what)]

    def kept(self) -> dict[str, dict[str, dict[str, object]]]:
        """What is kept of the card: lines by row and name."""
        kept = json.loads((self.folder / "benchmarks" / "results" / "goals-h100.json").read_text())
        assert kept["machine"]["gpu"] == H100 and kept["machine"]["driver"] == "580.1"
        return {row: {line["name"]: line for line in facts["lines"]} for row, facts in kept["rows"].items()}


def test_a_run(tmp_path: Path) -> None:
    """Rows are compiled ahead, measured and kept; a part that ends its process, or is wrong, falls short alone."""
    pretended = Pretended(tmp_path)
    status, out, _ = pretended.run("--rows", "attention,rows", DIES="bf16 d128 16384 causal", WRONG="bf16 d128 1024")
    assert status == 1
    assert "bf16 d128 16384: Weft 500  Triton 400  cuDNN 500 TFLOP/s" in out
    assert "bf16 d128 16384 causal: FAILED: its process ended by 7\n" in out
    assert "bf16 d128 1024: FAILED: AssertionError: wrong result" in out
    assert "softmax f32 1000: Weft 0.7  Triton 0.7  copy 1 TB/s  (1.00 of Triton, 0.70 of copy)  tile  short of" in out
    assert "\nrows: 1 parts, " in out and " failed, such as by ValueError: cannot be compiled\n" in out
    assert "4 of 7 goals hold" in out
    parts = ["bf16 d128 16384", "bf16 d128 16384 causal", "bf16 d128 1024", "bf16 d64 16384"]
    assert pretended.told("measured") == parts and set(pretended.told("prepared")) == set(parts)
    kept = pretended.kept()
    assert list(kept) == ["attention", "rows"] and list(kept["attention"]) == parts
    assert kept["attention"]["bf16 d128 1024"]["error"] == "AssertionError: wrong result"

    # what is mended is measured alone; the rest stays
    place = tmp_path / "benchmarks" / "results" / "goals-h100.json"
    place.write_text(place.read_text().replace(str(kept["rows"]["softmax f32 1000"]["date"]), "2001-01-01"))
    status, out, _ = pretended.run("--rows", "attention", "--only", "1024,causal")
    assert status == 0 and "5 of 5 goals hold" in out
    assert pretended.told("measured") == ["bf16 d128 16384 causal", "bf16 d128 1024"]
    again = pretended.kept()
    assert not any("error" in line for line in again["attention"].values()) and len(again["attention"]) == 4
    assert again["attention"]["bf16 d64 16384"]["date"] == "2001-01-01"
    assert again["attention"]["bf16 d128 1024"]["date"] != "2001-01-01"
    assert again["rows"] == kept["rows"] | {"softmax f32 1000": again["rows"]["softmax f32 1000"]}

    # the report needs neither a GPU nor the scripts, and is the same
    (tmp_path / "benchmarks" / "gpu_attention.py").unlink()
    (tmp_path / "tools" / "need_gpu.py").write_text("raise SystemExit(2)")
    status, out, _ = pretended.run("--report", "h100", "--rows", "attention,rows")
    assert status == 1 and "6 of 7 goals hold" in out and "2001-01-01 to 20" in out
    status, out, _ = pretended.run("--report", "h100", "--rows", "attention", "--json")
    told = json.loads(out)
    assert status == 0 and [goal["holds"] for goal in told["goals"]] == [
        "yes, and the aim", "no bound", "yes, and the aim", "yes, and the aim", "yes",
    ]  # fmt: skip
    status, _, error = pretended.run("--report", "b200")
    assert status == 2 and "nothing is kept of the card b200; there are results of h100" in error


@pytest.mark.slow
def test_nothing_compiles_beside_what_measures_the_host(tmp_path: Path) -> None:
    pretended = Pretended(tmp_path)
    pretended.run("--rows", "launch,attention", TAKES="0.3")
    told = (tmp_path / "told").read_text().splitlines()
    assert told.index("measured launch") > max(i for i, line in enumerate(told) if line.startswith("prepared"))


@pytest.mark.slow
def test_no_time_is_told(tmp_path: Path) -> None:
    """What there was no time for is named, and was not measured."""
    pretended = Pretended(tmp_path)
    status, _, error = pretended.run("--rows", "row")
    assert status == 2 and "no row is named row; there are attention, backward" in error
    status, out, _ = pretended.run("--rows", "rows", "--seconds", "0")
    assert status == 1 and "the time is over before softmax f32 1000" in out and "0 of 2 goals hold" in out
    assert "not measured" in out and "measured never" in out


def test_without_a_gpu_it_ends_at_once() -> None:
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(BENCHMARKS / "gpu_goals.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=hidden, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("no GPU: ") and "Traceback" not in done.stderr
