"""The comparison with Nsight Compute, on tables like those that it prints: no GPU is needed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def ncu() -> Any:
    """The script as a module, beside its kernels."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("ncu_script", BENCHMARKS / "ncu.py")
        assert spec is not None and spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        sys.modules["ncu_script"] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(BENCHMARKS))


HEAD = ["ID", "Process ID", "Kernel Name", "Block Size", "CC"]
SAMPLE = """==PROF== Connected to process 4711
==PROF== Profiling "copy": 0%....100% - 3 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Kernel Name","CC","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",\
"sass__inst_executed_per_opcode"
"","","","","sector","sector","","inst"
"0","4711","copy","9.0","1,024","1024","0","512 (IMAD: 128; LDG: 64; STG.E: 64; EXIT: 32)"
"1","4711","softmax(float *)","9.0","1000","1000","n/a","(!) n/a"
"""


def test_a_table_is_read(ncu: Any) -> None:
    first, second = ncu.rows_of(SAMPLE)
    assert (first.kernel, second.kernel) == ("copy", "softmax")
    assert first.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 1024
    assert first.opcodes == {"IMAD": 128, "LDG": 64, "STG": 64, "EXIT": 32}
    assert second.metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] is None
    assert second.opcodes is None
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
    ]
    assert not any(line.differs for line in lines)
    assert ncu.last_line(lines, []) == "4 of 4 counts of 1 kernels are as predicted"
    row.opcodes["LDG"] = 65
    row.opcodes["SHFL"] = 1
    lines = ncu.compared("copy f32", report, by, row)
    assert [line.quantity for line in lines if line.differs] == ["global loads", "shuffles"]
    assert ncu.last_line(lines, ["x"]) == (
        "3 of 5 counts of 1 kernels are as predicted; 2 differ, in 1 kernels; not measured: x"
    )


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
        report, _ = ncu.predicted(work, target)
        assert ncu.compared(name, report, "", None), name


def _table(ncu: Any, names: list[str], opcodes: bool) -> str:
    """What ncu would print if it measured what is predicted."""
    rows = [[*HEAD, *ncu.METRICS], [""] * (len(HEAD) + len(ncu.METRICS))]
    for i, name in enumerate(names):
        report, _ = ncu.predicted(ncu.WORKS[name], "sim:cuda:90")
        cells = dict.fromkeys(ncu.METRICS, "0")
        counts = dict[str, int]()
        for quantity in ncu.QUANTITIES:
            for metric in quantity.metrics[:1]:
                cells[metric] = str(quantity.predicted(report))
            for opcode in quantity.opcodes[:1]:
                counts[opcode] = quantity.predicted(report)
        listed = "; ".join(f"{k}: {v}" for k, v in counts.items())
        cells[ncu.OPCODES] = f"{sum(counts.values())} ({listed})" if opcodes else "n/a"
        function = ncu.WORKS[name].kernel.__name__
        rows.append([str(i), "1", function, "(128, 1, 1)", "9.0", *(cells[m] for m in ncu.METRICS)])
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)


def _run_with(tmp_path: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script with a program in the place of ncu that prints a text."""
    tool = tmp_path / "ncu"
    tool.write_text(f"#!{sys.executable}\nprint({text!r})\n")
    tool.chmod(0o755)
    command = [sys.executable, str(BENCHMARKS / "ncu.py"), "--ncu", str(tool), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="a script takes the place of ncu")
def test_the_whole_script(ncu: Any, tmp_path: Path) -> None:
    names = [name for name in ncu.WORKS if "copy" in name]
    table = _table(ncu, names, True)
    done = _run_with(tmp_path, table, "--only", "copy", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"of {len(names)} kernels are as predicted\n" in done.stdout
    facts = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert facts["missing"] == [] and len(facts["lines"]) >= 4 * len(names)
    done = _run_with(tmp_path, table.replace('"1024"', '"1023"'), "--only", "copy")
    assert done.returncode == 1 and "DIFFERS" in done.stdout
    done = _run_with(tmp_path, _table(ncu, names, False), "--only", "copy")
    assert done.returncode == 0 and "not measured: sass__inst_executed_per_opcode (no instances)" in done.stdout
    done = _run_with(tmp_path, table.rpartition("\n")[0], "--only", "copy")
    assert done.returncode == 1 and f"not measured: the kernel '{names[-1]}'" in done.stdout
    done = _run_with(tmp_path, "==ERROR== ERR_NVGPUCTRPERM", "--only", "copy")
    assert done.returncode == 2 and "ERR_NVGPUCTRPERM" in done.stderr
