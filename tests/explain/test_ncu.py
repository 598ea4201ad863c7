"""What Nsight Compute would say, by its names."""

from __future__ import annotations

from weft import like
from weft.explain.ncu import idle_text

from .kernels import softmax, transpose


def test_counters_have_the_names_of_ncu() -> None:
    x = like((4096, 4112), "fp16")
    e = transpose.explain(x, x, 4112, SIZE=64, grid=(64, 64), target="cuda:90")
    metrics = {m.name: m for m in e.ncu}
    loaded = metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    assert (loaded.value, loaded.source) == (4096 * 4096 * 2 // 32, "counted")
    assert metrics["gpu__time_duration.sum"].value == e.time.microseconds
    assert 50 < metrics["dram__throughput.avg.pct_of_peak_sustained_elapsed"].value <= 100
    assert "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum" in str(e)


def test_instructions_are_those_of_the_machine_code() -> None:
    """By line as in all, where there is an assembler; the table has them in place of the lane program's."""
    x = like((4096, 4112), "fp16")
    e = transpose.explain(x, x, 4112, SIZE=64, grid=(64, 64), target="cuda:90")
    told = {m.name: m.value for m in e.ncu}.get("smsp__inst_executed.sum")
    if e.occupancy is None or e.occupancy.registers is None:
        assert told is None
        return
    of_lines = sum(line.counts.get("machine_instructions", 0) for line in e.lines)
    assert told == of_lines == e.counts.machine_instructions > 0
    assert told != e.counts["instructions"] and "machine instructions" in str(e)


def test_what_of_the_last_wave_is_idle() -> None:
    x = like((200, 4096), "fp32")
    e = softmax.explain(x, x, 4096, 4096, BLOCK=4096, grid=(200,), target="cuda:90", num_warps=32)
    assert "of the places for programs are empty" in idle_text(e)


def test_other_vendors_have_no_metrics_of_ncu() -> None:
    x = like((4096, 4096), "fp32")
    assert softmax.explain(x, x, 4096, 4096, BLOCK=4096, grid=(4096,), target="hip:gfx942").ncu == ()
    assert softmax.explain(x, x, 4096, 4096, BLOCK=4096, grid=(4096,), target="cpu").ncu == ()
