"""Gradients of attention from plain source, beside Triton, cuDNN and PyTorch's own, on an NVIDIA GPU.

    python benchmarks/gpu_attention_backward.py [--only WORD] [--forms WORD,...] [--seconds N] [--all]

bf16, 16 heads of 128 or 32 of 64, 16 Ki tokens, random data, the sides take turns. What is timed is all of it: the sums
of out * dout, and the gradients of queries, keys and values in bf16. The source is one of three, each with a list of
configurations, the same for both sides, of which each side has its best:

    pointers   one program makes dk and dv of a block, and then dq of one, as Triton's tutorial does it
    apart      dk and dv in one kernel of descriptors, dq in another: the best of each
    atomics    all in one loop of five products, dq summed by atomics in f32, which are zeroed before and narrowed after

Figures are TFLOP/s of five products (2.5 times the forward's), of causal attention for the half that is computed. A
line that falls short of its goals (goals.py) says so, and the program ends with status 1.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import math
import sys

import torch
import torch.nn.functional as F
import triton
import triton.language
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.tools.tensor_descriptor import TensorDescriptor

import weft
import weft.language
from goals import Line, short_of
from gpu_facts import machine
from gpu_sides import load_side, medians, quickest

FILE = "gpu_attention_backward_kernels"
SIDES = {
    "Weft": (load_side("weft", FILE, jit=weft.jit, tl=weft.language), weft.TensorDescriptor),
    "Triton": (load_side("triton", FILE, jit=triton.jit, tl=triton.language), TensorDescriptor),
}
LENGTH = 16384
LOG2E = 1.4426950408889634
OF_KEYS = [
    (64, 128, 8, 2, False), (64, 128, 8, 3, False), (128, 128, 8, 2, False), (32, 128, 4, 5, False),
    (64, 64, 4, 3, False), (64, 128, 4, 2, False), (128, 64, 4, 2, False), (64, 64, 4, 3, True),
    (64, 128, 8, 2, False, True), (128, 128, 8, 2, False, True), (32, 128, 4, 5, False, True),
    (64, 64, 4, 3, False, True), (128, 64, 4, 2, False, True),
]  # fmt: skip
"""Rows of queries, of keys, warps, stages, whether warps are to be specialised, and whether factors are rounded to bf16
(NARROW): for dk and dv, and for all at once."""
OF_QUERIES = [
    (128, 64, 8, 2, False), (128, 64, 8, 3, False), (128, 128, 8, 2, False), (64, 64, 4, 3, False),
    (64, 64, 4, 3, True), (128, 64, 8, 3, False, True), (64, 64, 4, 3, False, True),
]  # fmt: skip
"""The same for dq."""
BOTH = [(128, 64, 8, 2, False), (128, 64, 8, 3, False), (64, 64, 4, 3, False), (128, 32, 4, 5, False)]
"""The block of a program, that of a loop's step, and as above: for `pointers`."""
ROWS = [(head, causal) for head in (128, 64) for causal in (False, True)]
FORMS = ("pointers", "apart", "atomics")
SECONDS = 0.15
"""Of timing, for each configuration of a list."""


class Case:
    """Tensors of one line, and what launches the kernels of a side."""

    def __init__(self, head: int, causal: bool) -> None:
        self.head, self.causal, self.heads = head, causal, 2048 // head
        shape = (1, self.heads, LENGTH, head)
        self.q, self.k, self.v, self.dout = (
            torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=i < 3) for i in range(4)
        )
        self.scale = LOG2E / math.sqrt(head)
        flat = self.heads * LENGTH, head
        self.given = [x.detach().view(flat) for x in (self.q, self.k, self.v, self.dout)]
        self.dq, self.dk, self.dv = (torch.empty(flat, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        self.wide = torch.empty(flat, device="cuda", dtype=torch.float32)
        self.sums = torch.empty(flat[0], device="cuda", dtype=torch.float32)
        self.flat_out = torch.empty(flat, device="cuda", dtype=torch.bfloat16)
        self.most = torch.empty(flat[0], device="cuda", dtype=torch.float32)

    def solve(self) -> None:
        """Compute what the kernels are given of the forward pass, and what they are to compute."""
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out = F.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=self.causal)
        self.expected = torch.autograd.grad(out, (self.q, self.k, self.v), self.dout)
        self.flat_out.copy_(out.detach().view_as(self.flat_out))
        self.most.copy_(self._logarithms().flatten())

    def _logarithms(self) -> torch.Tensor:
        """log2 of the sums of exponentials of each row of scores."""
        rows = torch.empty(self.heads, LENGTH, device="cuda")
        q, k = self.q.detach()[0], self.k.detach()[0]
        for head in range(self.heads):
            for at in range(0, LENGTH, 2048):
                scores = (q[head, at : at + 2048] @ k[head].T).float() * self.scale
                if self.causal:
                    hidden = torch.arange(LENGTH, device="cuda") > torch.arange(at, at + 2048, device="cuda")[:, None]
                    scores.masked_fill_(hidden, float("-inf"))
                rows[head, at : at + 2048] = torch.logsumexp(scores * 0.6931471805599453, 1) * LOG2E
        return rows

    @property
    def work(self) -> float:
        """Floating-point operations."""
        return 10 * LENGTH * LENGTH * self.head * self.heads / (2 if self.causal else 1)

    def wrong(self) -> str:
        """What is wrong with the gradients that were computed; empty if nothing is."""
        told = ""
        for name, expected in zip("qkv", self.expected, strict=True):
            found = getattr(self, f"d{name}")
            error = (found.float() - expected.reshape(found.shape).float()).norm() / expected.float().norm()
            if not bool(error < 0.02):
                told += f" d{name}: relative error {float(error):.3g}"
        return told

    def row_sums(self, side: str):
        kernel = SIDES[side][0].row_sums
        return lambda: kernel[(self.sums.numel() // 64,)](
            self.flat_out, self.given[3], self.sums, HEAD=self.head, BM=64, num_warps=4
        )

    def launch(self, side: str, name: str, configuration):
        """One launch of a kernel."""
        module, descriptor = SIDES[side]
        first, second, warps, stages, asked, *narrow = configuration
        more = {"HEAD": self.head, "CAUSAL": self.causal, "SPECIALIZE": asked, "num_warps": warps, "num_stages": stages}
        kernel = getattr(module, name)
        q, k, v, dout = self.given
        rest = (self.most, self.sums, self.scale, LENGTH)
        if name == "by_pointers":
            more |= {"BLOCK": first, "STEP": second}
            args, block = (*self.given, self.dq, self.dk, self.dv, *rest), first
        else:
            more |= {"BM": first, "BN": second, "NARROW": bool(narrow)}
            of = (x for x in (first, second, second, first))
            sides = [descriptor.from_tensor(x, [n, self.head]) for x, n in zip((q, k, v, dout), of, strict=True)]
            out = [descriptor.from_tensor(x, [second, self.head]) for x in (self.dk, self.dv)]
            args, block = {
                "keys_and_values": ((*sides, *out, *rest), second),
                "of_queries": ((*sides, descriptor.from_tensor(self.dq, [first, self.head]), *rest), first),
                "all_at_once": ((*sides, self.wide, *out, *rest), second),
            }[name]
        return lambda: kernel[(LENGTH // block, self.heads)](*args, **more)

    def best(self, side: str, name: str, configurations, seconds: float, table: list) -> tuple | None:
        """The fastest configuration of a kernel that the side compiles, with its launch."""
        found = []
        for configuration in configurations:
            if side == "Triton" and configuration[4]:
                continue  # its pass for sm_90 fails on these loops, for some of them with an assertion
            if name == "all_at_once":
                self.wide.zero_()
            try:
                launch = self.launch(side, name, configuration)
                made = launch()
                torch.cuda.synchronize()
            except Exception as error:  # what a side cannot do is out of the list
                table.append((side, name, configuration, None, f"{type(error).__name__}: {str(error)[:80]}"))
                if "illegal" in str(error) or "DeviceLost" in type(error).__name__:
                    raise
                continue
            spills = getattr(made, "n_spills", 0)
            if spills and spills > 400:  # tens of times slower, and long to time
                table.append((side, name, configuration, None, f"spills {spills}"))
                continue
            found.append((configuration, launch, made))
        if not found:
            return None
        times = quickest([launch for _, launch, _ in found], seconds)
        for (configuration, _, made), t in zip(found, times, strict=True):
            told = f"{made.n_regs} registers, {made.n_spills} spilled"
            if side == "Weft" and "ttg.warp_specialize(" in made.asm["ttgir"]:
                told += ", specialized"
            table.append((side, name, configuration, t, told))
        return found[min(range(len(found)), key=times.__getitem__)][:2]

    def forms(self, side: str, chosen, seconds: float, table: list):
        """The ways to compute all gradients, each as what launches it, with its configurations."""
        sums, zero = self.row_sums(side), self.wide.zero_
        sums()
        if "pointers" in chosen and (one := self.best(side, "by_pointers", BOTH, seconds, table)):
            yield f"pointers {one[0]}", lambda: (sums(), one[1]())
        if "apart" in chosen:
            keys = self.best(side, "keys_and_values", OF_KEYS, seconds, table)
            queries = self.best(side, "of_queries", OF_QUERIES, seconds, table)
            if keys and queries:
                yield f"apart {keys[0]} {queries[0]}", lambda: (sums(), keys[1](), queries[1]())
        if "atomics" in chosen and (whole := self.best(side, "all_at_once", OF_KEYS, seconds, table)):
            narrow = SIDES[side][0].to_half
            grid = (self.wide.numel() // 4096,)

            def ended():
                narrow[grid](self.wide, self.dq, 1 / math.sqrt(self.head), BLOCK=4096, num_warps=8)

            yield f"atomics {whole[0]}", lambda: (sums(), zero(), whole[1](), ended())


def case_of(part: str) -> Case:
    """The tensors of a line."""
    head, _, *causal = part.removeprefix("bf16 d").split()
    return Case(int(head), bool(causal))


def parts() -> list[str]:
    """The lines of the table."""
    return [f"bf16 d{head} {LENGTH}{' causal' if causal else ''}" for head, causal in ROWS]


def prepare(part: str) -> None:
    """Compile the kernels of a line."""
    case = case_of(part)
    for side in SIDES:
        for _, launch in case.forms(side, FORMS, 0.0, []):
            launch()


def measure(part: str):
    """The line, with the best of each side and the libraries."""
    yield row(part, SIDES, FORMS, SECONDS, [])


def row(part: str, sides, chosen, seconds: float, table: list) -> Line:
    """A line: TFLOP/s of the best of each side, and of libraries; and what won."""
    case = case_of(part)
    case.solve()
    best = {}
    for side in sides:
        found = []
        for name, launch in case.forms(side, chosen, seconds, table):
            for x in (case.dq, case.dk, case.dv):
                x.fill_(float("nan"))
            launch()
            if told := case.wrong():  # nothing is timed that is not right
                print(f"{side} is wrong, {name}:{told}", flush=True)
            else:
                found.append((name, launch))
        if not found:
            raise SystemExit(f"{side} has no result")
        times = quickest([launch for _, launch in found], seconds)
        best[side] = found[min(range(len(found)), key=times.__getitem__)]
        table += [(side, "all", name, t, "") for (name, _), t in zip(found, times, strict=True)]
    libraries = {}
    for name, backend in (("cuDNN", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION)):
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(case.q, case.k, case.v, is_causal=case.causal)

        def library(out=out):
            torch.autograd.grad(out, (case.q, case.k, case.v), case.dout, retain_graph=True)

        libraries[name] = library
    times = medians(*(launch for _, launch in best.values()), *libraries.values(), seconds=2 * seconds)
    figures = dict(zip((*best, *libraries), (case.work / t / 1e12 for t in times), strict=True))
    return Line(part, figures, "TFLOP/s", {side: name for side, (name, _) in best.items()})


def main() -> int:
    """Print the table; 1 where a line falls short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="lines whose name contains this")
    parser.add_argument("--forms", default=",".join(FORMS), help="the sources that are tried")
    parser.add_argument("--sides", default="Weft,Triton", help="one of them alone is compared with nobody")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of timing, for each configuration of a list")
    parser.add_argument("--all", action="store_true", help="print each configuration")
    options = parser.parse_args()
    facts = machine()
    print(facts)
    falls_short = False
    for part in parts():
        if options.only not in part:
            continue
        table = []
        line = row(part, options.sides.split(","), options.forms.split(","), options.seconds, table)
        missed = short_of("backward", line, facts["gpu"]) if len(line.won) == 2 else ""
        falls_short |= bool(missed)
        print(line.shown() + missed, flush=True)
        for side, kernel, configuration, t, why in table if options.all else ():
            print(f"    {side:7} {kernel:16} {configuration!s:34} {f'{t * 1e3:8.3f} ms' if t else '':11} {why}")
    return int(falls_short)


if __name__ == "__main__":
    sys.exit(main())
