"""What Nsight Compute would say of a launch, by the names of its metrics: what is counted, and what the model predicts.

metric                                                       value        from
l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum           1,048,576        counted
dram__throughput.avg.pct_of_peak_sustained_elapsed            93 %        predicted
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from .record import Explanation

__all__ = ["Metric", "metrics_of"]

COUNTED = (
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "global_load_sectors"),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "global_store_sectors"),
    ("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "shared_load_wavefronts"),
    ("smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "shared_store_wavefronts"),
)
"""Sums over the grid, and the counter that has them."""
OF_PEAK = (
    ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM"),
    ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2"),
    ("l1tex__throughput.avg.pct_of_peak_sustained_active", "L1"),
    ("sm__inst_issued.avg.pct_of_peak_sustained_active", "issue"),
    ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "matrix units"),
    ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", "special functions"),
    ("sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active", "double precision"),
)
"""Parts of the time, and the resource that is busy for it; those of a multiprocessor by the time that it is active."""


@dataclass(frozen=True)
class Metric:
    """One of Nsight Compute's metrics."""

    name: str
    value: float
    unit: str
    """"", "%", "us", or what is counted."""
    source: str
    """"counted" (exact if the counts are), "assembled" (by ptxas), "computed" from these, or "predicted"."""

    def __str__(self) -> str:
        number = f"{self.value:,.0f}" if self.value == int(self.value) else f"{self.value:,.2f}"
        return f"{number} {self.unit}".strip()


def metrics_of(e: Explanation) -> tuple[Metric, ...]:
    """All that can be said; empty for a CPU, and for GPUs that Nsight Compute is not for."""
    o = e.occupancy
    if o is None or not e.target.startswith("cuda"):
        return ()
    found = [Metric(name, e.counts[counter], "", "counted") for name, counter in COUNTED if e.counts.counted]
    if o.registers is not None:
        found.append(Metric("launch__registers_per_thread", o.registers, "", "assembled"))
    found += [
        Metric("launch__shared_mem_per_block", o.shared_bytes, "bytes", "computed"),
        Metric("launch__waves_per_multiprocessor", round(o.waves, 2), "", "computed"),
        Metric("sm__maximum_warps_per_active_cycle_pct", round(100 * o.part, 1), "%", "computed"),
    ]
    if e.counts.machine_instructions:
        found.append(Metric("smsp__inst_executed.sum", e.counts.machine_instructions, "", "predicted"))
    if e.time is not None:
        found.append(Metric("gpu__time_duration.sum", e.time.microseconds, "us", "predicted"))
        for name, resource in OF_PEAK:
            part = 100 * e.time.utilisation.get(resource, 0.0)
            if part >= 0.5:
                found.append(Metric(name, round(part), "%", "predicted"))
    return tuple(found)


def idle_text(e: Explanation) -> str:
    """How much of the machine has nothing to do in the last wave; empty where nothing is known of waves."""
    o = e.occupancy
    if o is None or not o.waves:
        return ""
    whole = ceil(o.waves)
    last = o.waves - (whole - 1)
    if whole == 1:
        return f"{o.waves:.2f} waves: {1 - last:.0%} of the places for programs are empty"
    told = f"{o.waves:.2f} waves: in the last one {1 - last:.0%} of the places for programs are empty"
    return f"{told}, {(whole - o.waves) / whole:.0%} of all of them"
