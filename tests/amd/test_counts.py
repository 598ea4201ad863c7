"""benchmarks/amd_counts.py: what is counted of an assembly text, and which cells are behind."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from .assembly import parse
from .test_waits import by_llvm

TOOL = Path(__file__).resolve().parents[2] / "benchmarks" / "amd_counts.py"


@pytest.fixture(scope="module")
def tool() -> Any:
    """The tool."""
    spec = importlib.util.spec_from_file_location("amd_counts", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("processor", ["gfx942", "gfx1100", "gfx1201"])
def test_the_loop_is_what_is_counted(tool: Any, processor: str) -> None:
    what, counts = tool.main_loop(parse(by_llvm(processor))["f"])
    assert what == "loop"
    assert (counts.global_, counts.global_cost) == (2, 8)
    assert (counts.lds, counts.lds_cost, counts.exchanges, counts.barriers) == (2, 8, 1, 2)


def row(tool: Any, text: str) -> Any:
    """What is counted of a loop of these lines."""
    head = '.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n.type f,@function\nf:\nL:\n'
    figures = ".amdgpu_metadata\n---\namdhsa.kernels:\n  - .agpr_count: 0\n    .name: f\n    .vgpr_count: 96\n"
    return tool.row(
        f"{head}{text}\ns_cbranch_scc1 L\ns_endpgm\n{figures}    .vgpr_spill_count: 0\n.end_amdgpu_metadata\n"
    )


MFMA = "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]"


def test_loops_are_compared_by_their_products(tool: Any) -> None:
    once = row(tool, f"ds_read_b64 v[0:1], v4\n{MFMA}")
    twice = row(tool, f"ds_read_b128 v[0:3], v4\n{MFMA}\n{MFMA}")
    narrow = row(tool, f"ds_read_u16 v0, v4\nds_read_u16 v1, v4\nds_read_u16 v2, v4\n{MFMA}")
    assert (once.counts.matrix, once.counts.products, once.waves) == (1, 32 * 32 * 8, 5)
    assert tool.worse(once, twice) == [] and tool.worse(twice, once) == []
    assert tool.worse(narrow, once) == ["LDS"]
    assert tool.worse(once, narrow) == []
    load = "global_load_dword v0, v[2:3], off"
    same, again = row(tool, f"{load}\n{MFMA}"), row(tool, f"{load}\n{MFMA}\n{MFMA}")
    assert tool.worse(again, same) == ["matrix"] and tool.worse(same, again) == []


def test_a_loop_without_products_is_compared_by_its_bytes(tool: Any) -> None:
    once = row(tool, "global_load_dword v0, v[2:3], off\ns_barrier")
    wide = row(tool, "global_load_dwordx4 v[0:3], v[4:5], off\ns_barrier")
    assert tool.worse(once, wide) == ["barriers"]


def test_barriers_of_ping_pong_are_not_compared(tool: Any) -> None:
    phase = f"ds_read_b64 v[0:1], v4\ns_barrier\ns_setprio 1\n{MFMA}\ns_setprio 0\ns_barrier\n"
    in_turns, in_step = row(tool, phase * 2), row(tool, f"{phase.replace('s_setprio', 's_nop')}{MFMA}")
    assert tool.worse(in_turns, in_step) == ["LDS"]
    assert tool.worse(row(tool, (phase * 2).replace("s_setprio", "s_nop")), in_step) == ["LDS", "barriers"]


def test_without_triton_it_says_so(
    tool: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "find_triton", lambda: None)
    monkeypatch.setattr(sys, "argv", ["amd_counts.py"])
    tool.main()
    assert capsys.readouterr().out == "skipped: no Triton here (TRITON_PYTHON=an interpreter with Triton 3.6.0)\n"
