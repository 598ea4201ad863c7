"""`torch.compile` on an NVIDIA GPU: the kernels that Inductor writes, compiled by Weft and by Triton.

    python benchmarks/gpu_inductor.py                   # 40 graphs (gpu_inductor_graphs.py)
    python benchmarks/gpu_inductor.py --only norm --seconds 200 --save
    python benchmarks/gpu_inductor.py --keep FOLDER     # keeps what Inductor wrote, by side

Each side is a process of its own, as a process has one package `triton`; the two take turns on the GPU. A graph is
compiled anew by each (the first run counts as build time: with one compile thread, or `--threads`), the results are
compared, and the runs of both alternate, as CUDA graphs. "reached" is Triton's time by Weft's. What is neither's, such
as the products, which both leave to cuBLAS, is in both times.

Required of Weft: 0.95 of Triton in each, 1.05 in the geometric mean, and builds of at most 1.1 of Triton's time.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import gc
import json
import logging
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
LEAST, LEAST_MEAN, BUILD = 0.95, 1.05, 1.1
SAMPLE = 0.008
"""Seconds of work between two events."""


# -- a side -----------------------------------------------------------------------------------------------------------


def side(name: str) -> None:
    """Obeys commands on stdin, one a line, and answers each by a line of JSON on what was stdout."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    if name == "weft":
        import weft.compat

        weft.compat.install()
    import torch

    sys.path.insert(0, str(HERE))
    logging.basicConfig(stream=sys.stderr, format="%(message)s")
    logging.getLogger("torch._inductor.runtime.triton_heuristics").setLevel(logging.DEBUG)  # times of configurations
    torch.set_default_device("cuda")
    torch.set_float32_matmul_precision("high")
    from gpu_inductor_graphs import GRAPHS

    graphs, runs, repeats = dict(GRAPHS), {}, {}

    def build(graph: str, result: str) -> float:
        torch.manual_seed(0)
        work, args, leaves = graphs[graph]()
        torch._dynamo.reset()
        call = torch.compile(work)

        def run():
            return torch.autograd.grad(call(*args), leaves) if leaves else call(*args)

        torch.cuda.synchronize()
        begin = time.perf_counter()
        out = run()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begin
        torch.save(flat(out), result)
        del out
        runs[graph] = captured(run)
        repeats[graph] = max(3, math.ceil(SAMPLE / measured(run, 3)))
        return seconds

    def captured(run):
        """A run as a CUDA graph: what is measured is the GPU, not the host, whose time is PyTorch's and varies more."""
        with torch.cuda.stream(torch.cuda.Stream()):
            run(), run()
        torch.cuda.synchronize()
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            kept = run()
        return lambda: (recorded.replay(), kept)[0]

    def measured(run, times: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        run()
        begin.record()
        for _ in range(times):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / times / 1e3

    def kernels(run, times: int = 5) -> dict[str, float]:
        """Microseconds of each kernel of a run, by name."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(times):
                run()
            torch.cuda.synchronize()
        return {"us": {event.key: event.self_device_time_total / times for event in profile.key_averages()}}

    for line in sys.stdin:
        command, graph, *rest = json.loads(line)
        try:
            if command == "build":
                answer = build(graph, *rest)
            elif command == "kernels":
                answer = kernels(runs[graph])
            elif command == "time":
                answer = measured(runs[graph], repeats[graph])
            else:
                answer = runs.pop(graph, None) and None
                gc.collect()
                torch.cuda.empty_cache()
        except Exception as error:  # told to the parent, which names the graph
            import traceback

            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(answer) + "\n")


def flat(result) -> list:
    """The tensors of a result."""
    import torch

    return [result.detach()] if isinstance(result, torch.Tensor) else [t for part in result for t in flat(part)]


class Side:
    """The process of a side."""

    def __init__(self, name: str, folder: Path, threads: int) -> None:
        self.name = name
        environment = os.environ | {
            "TORCHINDUCTOR_CACHE_DIR": str(folder / name),
            "WEFT_CACHE_DIR": str(folder / "weft-cache"),
            "TRITON_CACHE_DIR": str(folder / f"{name}-triton"),
            "TORCHINDUCTOR_COMPILE_THREADS": str(threads),
            "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
            "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        }
        (folder / "weft-cache").mkdir(mode=0o700, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--side", name],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / f"{name}.log").open("w"),
            text=True,
            bufsize=1,
        )

    def ask(self, *command):
        """A command's answer."""
        self.process.stdin.write(json.dumps(command) + "\n")
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process of {self.name} ended by {self.process.wait()}")
        value = json.loads(answer)
        if isinstance(value, dict) and "error" in value:
            raise RuntimeError(f"{self.name}: {value['error']}")
        return value


# -- both -------------------------------------------------------------------------------------------------------------


def compare(first: Path, second: Path) -> None:
    """A figure for a wrong result is no figure."""
    import torch

    for a, b in zip(torch.load(first), torch.load(second), strict=True):
        tolerance = 3e-2 if a.itemsize < 4 else 1e-2  # convolutions and their gradients are in TF32
        a, b = a.float(), b.float()
        scale = b.abs().amax().item() if b.numel() else 0.0
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance * max(scale, 1e-6), equal_nan=True)


def line(name: str, sides: list[Side], folder: Path, turns: int) -> dict:
    """Builds a graph with both sides, compares and times them."""
    results = [folder / f"{s.name}.pt" for s in sides]
    builds = [s.ask("build", name, str(result)) for s, result in zip(sides, results, strict=True)]
    compare(*results)
    samples: list[list[float]] = [[], []]
    for turn in range(turns):
        for at in (0, 1) if turn % 2 else (1, 0):
            samples[at].append(sides[at].ask("time", name))
    parts = [s.ask("kernels", name)["us"] for s in sides]
    for s in sides:
        s.ask("drop", name)
    ours, theirs = (statistics.median(s) for s in samples)
    return {
        "graph": name,
        "weft_us": ours * 1e6,
        "triton_us": theirs * 1e6,
        "reached": theirs / ours,
        "weft_build_s": builds[0],
        "triton_build_s": builds[1],
        "weft_kernels_us": parts[0],
        "triton_kernels_us": parts[1],
    }


def slower(row: dict) -> str:
    """The kernels of a graph that Weft's side runs longest beyond Triton's."""
    ours, theirs = row["weft_kernels_us"], row["triton_kernels_us"]
    beyond = sorted(((us - theirs.get(name, 0.0), name) for name, us in ours.items()), reverse=True)
    return ", ".join(f"{name[:60]} {ours[name]:.1f} against {theirs.get(name, 0.0):.1f}" for _, name in beyond[:2])


def geometric(values: list[float]) -> float:
    """Geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))


def main() -> int:
    """Prints a line for each graph; 1 if a requirement is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, with commas between")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side(options.side)
        return 0
    begin = time.monotonic()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="weft-gpu-inductor-"))
    folder.mkdir(parents=True, exist_ok=True)
    from gpu_facts import machine

    facts = machine("torch", "triton")
    print(facts)
    sys.path.insert(0, str(HERE))
    from gpu_inductor_graphs import GRAPHS

    words = options.only.split(",")
    names = [name for name, _ in GRAPHS if any(word in name for word in words)]
    sides = [Side(name, folder, options.threads) for name in ("weft", "triton")]
    line(names[0], sides, folder, 1)  # what a process does once is in no build time
    rows, failed = [], []
    print(f"{'graph':<40} {'Weft us':>9} {'Triton us':>9} {'reached':>8} {'build s':>8} {'of':>6}")
    for name in names:
        if time.monotonic() - begin > options.seconds:
            print("out of time before", name)
            break
        try:
            row = line(name, sides, folder, options.turns)
        except (RuntimeError, AssertionError) as error:
            failed.append(name)
            print(f"{name:<40} FAILED {str(error).strip()[:400]}")
            continue
        rows.append(row)
        mark = "" if row["reached"] >= LEAST else f"   below {LEAST}: {slower(row)}"
        print(
            f"{name:<40} {row['weft_us']:>9.1f} {row['triton_us']:>9.1f} {row['reached']:>8.3f}"
            f" {row['weft_build_s']:>8.2f} {row['weft_build_s'] / row['triton_build_s']:>6.2f}{mark}",
            flush=True,
        )
    for s in sides:
        s.process.stdin.close()
        s.process.wait(20)
    mean = geometric([row["reached"] for row in rows])
    build = sum(row["weft_build_s"] for row in rows) / sum(row["triton_build_s"] for row in rows)
    short = [row["graph"] for row in rows if row["reached"] < LEAST]
    print(f"{len(rows)} graphs: geometric mean {mean:.3f} of Triton, {len(short)} below {LEAST}, {len(failed)} failed;")
    print(f"all builds together take {build:.2f} of Triton's time")
    if options.save:
        card = "h200" if "H200" in facts["gpu"] else "h100" if "H100" in facts["gpu"] else "gpu"
        path = RESULTS / f"inductor-{card}-{datetime.now(UTC).date()}.json"
        path.write_text(json.dumps({"machine": facts, "threads": options.threads, "rows": rows}, indent=1) + "\n")
    return int(bool(short or failed) or mean < LEAST_MEAN or build > BUILD)


if __name__ == "__main__":
    raise SystemExit(main())
