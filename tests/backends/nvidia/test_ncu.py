"""The comparison with Nsight Compute, on tables like those that it prints: no GPU is needed."""

from __future__ import annotations

import copy
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def _script(name: str) -> ModuleType:
    """A script as a module, beside what it imports."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location(f"{name}_script", BENCHMARKS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[f"{name}_script"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def ncu() -> Any:
    """benchmarks/ncu.py"""
    return _script("ncu")


@pytest.fixture(scope="module")
def ncu_table() -> Any:
    """benchmarks/ncu_table.py"""
    return _script("ncu_table")


HEAD = ["ID", "Process ID", "Kernel Name", "Block Size", "CC"]
SAMPLE = """==PROF== Connected to process 4711
==PROF== Profiling "copy": 0%....100% - 3 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Kernel Name","CC","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum","l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",\
"sass__inst_executed_per_opcode","sass__thread_inst_executed_true_per_opcode"
"","","","","sector","sector","sector","sector","","inst","inst"
"0","4711","copy","9.0","1,024","1024","0","0","0","512 (IMAD: 128; LDG: 64; STG.E: 64; EXIT: 32)",\
"9,216 (IMAD: 4,096; LDG: 2,048; STG.E: 2,048; EXIT: 1,024)"
"1","4711","softmax(float *)","9.0","1000","1000","0","0","n/a","(!) n/a","(!) n/a"
"""


def test_a_table_is_read(ncu: Any) -> None:
    first, second = ncu.rows_of(SAMPLE)
    assert (first.kernel, second.kernel) == ("copy", "softmax")
    assert first.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 1024
    assert first.opcodes == {"IMAD": 128, "LDG": 64, "STG": 64, "EXIT": 32}
    assert second.metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] is None
    assert first.threads == {"IMAD": 4096, "LDG": 2048, "STG": 2048, "EXIT": 1024}
    assert second.opcodes is None and second.threads is None
    assert ncu.rows_of("==ERROR== nothing was profiled\n") == []


def test_cells(ncu: Any) -> None:
    assert [ncu.number_of(t) for t in ("1,234", "12 (LDG: 8; STG: 4)", "7.000000", "n/a", "")] == [
        *(1234, 12, 7, None, None)
    ]
    assert ncu.instances_of("12 (LDG: 8; HMMA.16816.F32: 3; HMMA: 1)") == {"LDG": 8, "HMMA": 4}
    assert ncu.instances_of("12 (8; 4)") is None and ncu.instances_of("12") is None


def test_metrics_that_there_are_not_are_found_in_what_ncu_says(ncu: Any) -> None:
    said = "==ERROR== Failed to find metric l1tex__b.sum\n==PROF== l1tex__a.sum is fine\n"
    assert ncu.unknown_metrics(said, ["l1tex__a.sum", "l1tex__b.sum"]) == ["l1tex__b.sum"]


def test_counts_beside_a_table(ncu: Any) -> None:
    report, by = ncu.predicted(ncu.WORKS["copy f32"], "sim:cuda:90")
    row = ncu.rows_of(SAMPLE)[0]
    lines = ncu.compared("copy f32", report, by, row)
    assert [(line.quantity, line.predicted, line.measured, line.by) for line in lines] == [
        ("global load sectors", 1024, 1024, "counter"),
        ("global store sectors", 1024, 1024, "counter"),
        ("global loads", 64, 64, "counter"),
        ("global stores", 64, 64, "counter"),
        ("global loads of threads", 2048, 2048, "counter"),
        ("global stores of threads", 2048, 2048, "counter"),
    ]
    assert not any(line.differs for line in lines)
    assert ncu.last_line(lines, []) == "6 of 6 counts of 1 kernels are as predicted"
    row.opcodes["LDG"] = 65
    row.opcodes["SHFL"] = 1
    lines = ncu.compared("copy f32", report, by, row)
    assert [line.quantity for line in lines if line.differs] == ["global loads", "shuffles"]
    assert ncu.last_line(lines, ["x"]) == (
        "5 of 7 counts of 1 kernels are as predicted; 2 differ, in 1 kernels; not measured: x"
    )


def test_masks_are_compared_by_threads(ncu: Any) -> None:
    """7,001 of 7,168 elements, in 1,750 vectors and one: whether warps execute a store of nothing is up to ptxas."""
    report, _ = ncu.predicted(ncu.WORKS["copy f32, masked"], "sim:cuda:90")
    found = {q.name: q.predicted(report) for q in ncu.QUANTITIES}
    assert found["global stores"] is None and found["global stores of threads"] == 1751
    report, _ = ncu.predicted(ncu.WORKS["sum of rows, masked"], "sim:cuda:90")
    found = {q.name: q.predicted(report) for q in ncu.QUANTITIES}
    assert found["shared loads of threads"] == found["global stores of threads"] == 100


def test_wavefronts_are_those_of_the_instructions_where_they_can_be_told(ncu: Any) -> None:
    """What the pipe counts is an upper bound: matrices are counted with the other loads, or apart from them."""
    quantity = next(q for q in ncu.QUANTITIES if q.name == "shared load wavefronts")
    (ld, ldsm), (pipe,) = quantity.metrics[0], quantity.metrics[-1]

    def row(*values: int | None) -> Any:
        return ncu.Row("k", dict(zip((ld, ldsm, pipe), values, strict=True)), None, None)

    assert quantity.measured(row(512, 0, 568)) == 512
    assert quantity.measured(row(128, 128, 259)) == 256
    assert quantity.measured(row(256, 128, 259)) == 256
    assert quantity.measured(row(None, None, 259)) == 259
    assert quantity.measured(row(128, None, 259)) == 259
    assert quantity.measured(row(128, 128, None)) == 256
    assert quantity.measured(row(None, None, None)) is None
    assert quantity.sums(row(512, 0, 568)) == {f"{ld} + {ldsm}": 512, ld: 512, pipe: 568}


def test_what_the_data_decide_is_simulated(ncu: Any) -> None:
    report, by = ncu.predicted(ncu.WORKS["gather of f32"], "sim:cuda:90")
    assert by == "simulator" and report["global_load_sectors"] > 4096


def test_conflicts_are_predicted(ncu: Any) -> None:
    """64 x 64 floats read by columns: 32 lanes in one bank, or each in its own."""
    plain, _ = ncu.predicted(ncu.WORKS["shared, plain, conflicts on purpose"], "sim:cuda:90")
    swizzled, _ = ncu.predicted(ncu.WORKS["shared, swizzled"], "sim:cuda:90")
    assert plain["shared_load_wavefronts"] == 4096 and swizzled["shared_load_wavefronts"] == 128


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_every_kernel_is_predicted(ncu: Any, target: str) -> None:
    assert len(ncu.WORKS) >= 20
    for name, work in ncu.WORKS.items():
        if work.least > int(target[-2:]):
            continue
        report, _ = ncu.predicted(work, target)
        assert ncu.compared(name, report, "", None), name


def _table(ncu: Any, names: list[str], opcodes: bool) -> str:
    """What ncu would print if it measured what is predicted."""
    rows = [[*HEAD, *ncu.METRICS], [""] * (len(HEAD) + len(ncu.METRICS))]
    for i, name in enumerate(names):
        report, _ = ncu.predicted(ncu.WORKS[name], "sim:cuda:90")
        cells = dict.fromkeys(ncu.METRICS, "0")
        warps, threads = dict[str, int](), dict[str, int]()
        for quantity in ncu.QUANTITIES:
            for metric, *_ in quantity.metrics:
                cells[metric] = str(quantity.predicted(report) or 0)
            for opcode in quantity.opcodes[:1]:
                (threads if quantity.threads else warps)[opcode] = quantity.predicted(report) or 0
        for metric, counts in ((ncu.OPCODES, warps), (ncu.THREAD_OPCODES, threads)):
            listed = "; ".join(f"{k}: {v}" for k, v in counts.items())
            cells[metric] = f"{sum(counts.values())} ({listed})" if opcodes else "n/a"
        function = ncu.WORKS[name].kernel.__name__
        rows.append([str(i), "1", function, "(128, 1, 1)", "9.0", *(cells[m] for m in ncu.METRICS)])
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)


def _run_with(tmp_path: Path, text: str, *arguments: str, picky: bool = False) -> subprocess.CompletedProcess[str]:
    """The script with a program in the place of ncu that prints a text; a picky one refuses newer metrics."""
    tool = tmp_path / "ncu"
    refuse = "import sys\nif 'smsp__sass' in ' '.join(sys.argv):\n    sys.exit('==ERROR== no')\n" if picky else ""
    tool.write_text(f"#!{sys.executable}\n{refuse}print({text!r})\n")
    tool.chmod(0o755)
    command = [sys.executable, str(BENCHMARKS / "ncu.py"), "--ncu", str(tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="a script takes the place of ncu")
@pytest.mark.slow
def test_the_whole_script(ncu: Any, tmp_path: Path) -> None:
    names = [name for name in ncu.WORKS if "copy f32" in name]
    table = _table(ncu, names, True)
    done = _run_with(tmp_path, table, "--only", "copy f32", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"of {len(names)} kernels are as predicted\n" in done.stdout
    facts = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert facts["missing"] == [] and len(facts["lines"]) >= 4 * len(names)
    done = _run_with(tmp_path, table.replace('"1024"', '"1023"'), "--only", "copy f32")
    assert done.returncode == 1 and "DIFFERS" in done.stdout
    done = _run_with(tmp_path, _table(ncu, names, False), "--only", "copy f32")
    assert done.returncode == 0 and "not measured: sass__inst_executed_per_opcode (no instances)" in done.stdout
    done = _run_with(tmp_path, table.rpartition("\n")[0], "--only", "copy f32")
    assert done.returncode == 1 and f"not measured: the kernel '{names[-1]}'" in done.stdout
    done = _run_with(tmp_path, table, "--only", "copy f32", picky=True)
    assert done.returncode == 0 and "not measured: memory_l1_wavefronts_shared, smsp__sass" in done.stdout, done.stdout
    done = _run_with(tmp_path, "==ERROR== ERR_NVGPUCTRPERM", "--only", "copy f32")
    assert done.returncode == 2 and "ERR_NVGPUCTRPERM" in done.stderr


def test_the_table_in_the_documentation_is_that_of_its_run(ncu_table: Any) -> None:
    page = ncu_table.PAGE.read_text("utf-8")
    name, there = ncu_table.shown(page)
    assert f"results/{name})" in page and there.count("\n") > 40
    assert there == ncu_table.table(ncu_table.read(name)), "to write it: python benchmarks/ncu_table.py --update"
    assert ncu_table.shown_newly(page.replace(there, "| old |\n"), name) == page


def test_counts_that_differ_are_seen_in_the_table(ncu_table: Any) -> None:
    lines = [
        {"kernel": "k", "quantity": "global load sectors", "predicted": 1024, "measured": 1024},
        {"kernel": "k", "quantity": "global loads", "predicted": 64, "measured": 64},
        {"kernel": "k", "quantity": "global stores", "predicted": 32, "measured": None},
    ]
    assert ncu_table.table({"lines": lines}).splitlines()[2] == "| k |  |  | 1,024 |  | 64 |  |  | 2 of 2 |"
    wrong = copy.deepcopy(lines)
    wrong[1]["measured"] = 65
    row = ncu_table.table({"lines": wrong}).splitlines()[2]
    assert row == "| k |  |  | 1,024 |  | 64, measured 65 |  |  | 1 of 2 |"
