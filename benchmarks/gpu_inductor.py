"""`torch.compile` on an NVIDIA GPU: the kernels that Inductor writes, compiled by Weft and by Triton.

    python benchmarks/gpu_inductor.py                   # 40 graphs (gpu_inductor_graphs.py)
    python benchmarks/gpu_inductor.py --only norm --seconds 200
    python benchmarks/gpu_inductor.py --keep FOLDER     # keeps what Inductor wrote, by side

Each side is a process of its own, as a process has one package `triton`. A graph is compiled anew by one after the
other (the first run counts as build time: with one compile thread, or `--threads`): whatever the other ran on the GPU
meanwhile would disturb the choice among configurations, which are tried once. The results are compared, and the runs of
both alternate, as CUDA graphs. What is neither's, such as the products, which both leave to cuBLAS, is in both times.

A graph that falls short of its goal (goals.py) is printed with the kernels that take longer than Triton's.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import atexit
import functools
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
from pathlib import Path

from goals import ROWS, Line, short_of

HERE = Path(__file__).resolve().parent
TURNS = 7
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


def line(name: str, sides: list[Side], folder: Path, turns: int = TURNS) -> tuple[Line, str]:
    """(the line of a graph, the kernels that Weft's side runs longest beyond Triton's): built, compared and timed."""
    results = [folder / f"{s.name}.pt" for s in sides]
    built = [s.ask("build", name, str(result)) for s, result in zip(sides, results, strict=True)]
    compare(*results)
    samples: list[list[float]] = [[], []]
    for turn in range(turns):
        for at in (0, 1) if turn % 2 else (1, 0):
            samples[at].append(sides[at].ask("time", name))
    ours, theirs = (s.ask("kernels", name)["us"] for s in sides)
    for s in sides:
        s.ask("drop", name)
    beyond = sorted(((us - theirs.get(kernel, 0.0), kernel) for kernel, us in ours.items()), reverse=True)
    slower = [
        f"{kernel[:60]} {ours[kernel]:.1f} us, by Triton {theirs.get(kernel, 0.0):.1f}" for _, kernel in beyond[:2]
    ]
    both = ("Weft", "Triton")
    figures = {side: 1 / statistics.median(times) for side, times in zip(both, samples, strict=True)}
    return Line(name, figures, "runs/s", built=dict(zip(both, built, strict=True))), ", ".join(slower)


def begin(folder: Path, threads: int = 1) -> list[Side]:
    """The processes of both sides, which have built and run a first graph: what that takes longer is in no figure."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = [Side(name, folder, threads) for name in ("weft", "triton")]
    atexit.register(lambda: [s.process.kill() for s in sides])
    line(parts()[0], sides, folder, 1)
    return sides


def parts() -> list[str]:
    """The graphs."""
    from gpu_inductor_graphs import GRAPHS

    return [name for name, _ in GRAPHS]


def prepare(part: str) -> None:
    """Nothing can be compiled ahead: building is measured."""


@functools.cache
def both_sides() -> tuple[list[Side], Path]:
    """The processes of both sides, and their folder."""
    folder = Path(tempfile.mkdtemp(prefix="weft-gpu-inductor-"))
    return begin(folder), folder


def measure(part: str):
    """The line of a graph."""
    try:
        yield line(part, *both_sides())[0]
    except SystemExit:  # a side has ended: the next graph gets others
        both_sides.cache_clear()
        raise


def main() -> int:
    """Prints a line for each graph; 1 if a goal is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="parts of names, with commas between")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        side(options.side)
        return 0
    start = time.monotonic()
    from gpu_facts import machine

    facts = machine("torch", "triton")
    print(facts)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="weft-gpu-inductor-"))
    sides = begin(folder, options.threads)
    lines: list[Line] = []
    for name in (name for name in parts() if any(word in name for word in options.only.split(","))):
        if time.monotonic() - start > options.seconds:
            print("out of time before", name)
            break
        try:
            one, slower = line(name, sides, folder, options.turns)
        except (RuntimeError, AssertionError) as error:
            one, slower = Line(name, error=" ".join(str(error).split())[:400]), ""
        lines.append(one)
        missed = short_of("inductor", one, facts["gpu"])
        print(one.shown() + (f"{missed}: {slower}" if missed else ""), flush=True)
    verdicts = ROWS["inductor"].verdicts(lines, facts["gpu"])
    for verdict in verdicts:
        print(": ".join(filter(None, verdict.cells())))
    return int(not all(verdict.is_met for verdict in verdicts))


if __name__ == "__main__":
    raise SystemExit(main())
