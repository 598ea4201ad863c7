"""How long explanations take: the kernel's own compilation, what is added to it, and the whole of another explanation.

    python benchmarks/explain_cost.py                     # needs no GPU
    python benchmarks/explain_cost.py --only causal
    python benchmarks/explain_cost.py --profile causal    # where the time goes

Kernels are those of gpu_wider.py that took the longest, and some of every day, with shapes in place of arrays. Times
are of the processor; the compilation is without the assembler, which is a process of its own. `again` is all of
`kernel.explain` for the kernel that is compiled by then, and of its text. `followed` is the number of programs that
were followed, and `turns` counts iterations of loops, of programs that are followed together once: these do not depend
on the machine that this runs on. At most 2 s are to be added, and what is compiled is to be explained in 0.3 s.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import cProfile
import pstats
import time

import sides_of
import weft
from weft.explain import gather, programs
from weft.sim import control

FILES = ("gpu_wider_kernels", "gpu_more_kernels", "gpu_product_kernels", "gpu_serving_kernels", "gpu_kernels")
LOG2E = 1.4426950408889634


def cases():
    """(name, kernel, grid, arguments, more) of each."""
    like = weft.like

    def attention(dtype, head, causal, bm, bn, warps, stages, precision=None):
        q = like((32, 4096, head), dtype)
        more = {"HEAD": head, "BM": bm, "BN": bn, "CAUSAL": causal, "num_warps": warps, "num_stages": stages}
        args = (q, q, q, q, head**-0.5 * LOG2E, 4096)
        return "attention", (4096 // bm, 32), args, more

    def product(dtype, out, bm, bn, bk, warps, stages):
        a, c = like((4096, 4096), dtype), like((4096, 4096), out)
        more = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "ACC": "float32", "num_warps": warps, "num_stages": stages}
        grid = (-(-4096 // bm) * -(-4096 // bn),)
        return "matmul", grid, (a, a, c, 4096, 4096, 4096), more

    def persistent(kernel, k):
        a, c = like((4096, k), "fp16"), like((4096, 4096), "fp16")
        more = {"BM": 128, "BN": 128, "BK": 64, "BLOCKS": 132, "num_warps": 4, "num_stages": 3}
        return kernel, (132,), (a, a, c, 4096, 4096, k), more

    rows = like((4096, 4096), "fp16")
    yield "persistent matmul by descriptors, K 4096", *persistent("persistent_described", 4096)
    yield "persistent matmul f16, K 4096", *persistent("persistent", 4096)
    yield "persistent matmul f16, K 512", *persistent("persistent", 512)
    yield "attention bf16 d128 causal 128x128 w8", *attention("bf16", 128, True, 128, 128, 8, 2)
    yield "attention f16 d64 causal 128x64 w4", *attention("fp16", 64, True, 128, 64, 4, 3)
    yield "attention f16 d64 128x64 w4", *attention("fp16", 64, False, 128, 64, 4, 3)
    yield "attention bf16 d128 128x64 w8", *attention("bf16", 128, False, 128, 64, 8, 2)
    yield "matmul f16 128x256x64 w8", *product("fp16", "fp16", 128, 256, 64, 8, 3)
    yield "matmul f16 64x64x32 w4", *product("fp16", "fp16", 64, 64, 32, 4, 4)
    yield "matmul f32 128x128x32 w8", *product("fp32", "fp32", 128, 128, 32, 8, 3)
    yield "softmax f16 4096", "softmax", (4096,), (rows, rows, 4096), {"BLOCK": 4096, "num_warps": 8}
    yield "softmax f16 4097", "softmax", (4096,), (rows, rows, 4097), {"BLOCK": 8192, "num_warps": 8}
    row, wide = like((4096,), "fp32"), like((8192, 8192), "fp16")
    norm = {"BLOCK": 8192, "num_warps": 8}
    yield "layer norm backward f16 8192", "layer_norm_backward", (8192,), (wide, wide, wide, wide, 8192, 1e-5), norm
    logits = like((4096, 50257), "fp16")
    loss = (logits, like((4096,), "i32"), row, 50257)
    yield "cross entropy f16 50257", "cross_entropy", (4096,), loss, {"BLOCK": 4096, "num_warps": 8}
    q, sums = like((32, 4096, 64), "fp16"), like((32, 4096), "fp32")
    grads = (q, q, q, q, sums, sums, q, q, 0.125, 4096)
    yield "attention backward f16 d64", "attention_backward", (64, 32), grads, {"HEAD": 64, "BM": 64, "BN": 64}
    image, taps = like((8, 56, 56, 128), "fp16"), like((9, 128, 128), "fp16")
    of_taps = {"C": 128, "F": 128, "BM": 128, "BN": 128, "BK": 64, "num_warps": 8}
    yield "convolution 3x3 f16", "convolution", (196, 1), (image, taps, image, 56, 56), of_taps
    flat = like((1 << 26,), "fp32")
    yield "copy f32", "copy_1d", (1 << 16,), (flat, flat, 1 << 26), {"BLOCK": 1024}


def work():
    """Counters of what is done: programs followed and iterations of loops. They are added to while it runs."""
    done = {"followed": 0, "turns": 0}
    step, follow = control._step, programs._followed

    def stepped(context, op):
        done["turns"] += 1
        step(context, op)

    def followed(program, given, numbers, *more):
        done["followed"] += len(numbers)
        return follow(program, given, numbers, *more)

    control._step, programs._followed = stepped, followed
    return done


def measure(name, kernel, grid, args, more, loaded, done):
    """One line of the table; whether the explanation keeps to its bounds."""
    given = {k: getattr(weft.language, v) if k == "ACC" else v for k, v in more.items()}
    ours = next(getattr(file, kernel) for file in loaded if hasattr(file, kernel))
    spent = [0.0]
    explanation = gather.explanation

    def timed(*values):
        begin = time.process_time()
        try:
            return explanation(*values)
        finally:
            spent[0] += time.process_time() - begin

    done.update(followed=0, turns=0)
    from weft import explain as room

    room.explanation = timed
    try:
        begin = time.process_time()
        with weft.target("cuda:90"):
            e = ours.explain(*args, **given, grid=grid)
        whole = time.process_time() - begin
    finally:
        room.explanation = explanation
    work_done = f"{done['followed']:8} {done['turns']:7}"
    str(e)
    begin = time.process_time()
    with weft.target("cuda:90"):
        text = str(ours.explain(*args, **given, grid=grid))
    again = time.process_time() - begin
    assert text
    kept = "" if spent[0] <= 2 and again <= 0.3 else "  MORE THAN 2 s, or than 0.3 s"
    print(
        f"{name:44} {whole - spent[0]:7.2f} {spent[0]:7.2f} {again:7.3f} {work_done} "
        f"{'exact' if e.counts.exact else e.counts.note[:40]}{kept}",
        flush=True,
    )
    return not kept


def main():
    """Print the table; 1 where a kernel takes longer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()
    loaded = [sides_of.loaded(file) for file in FILES]
    done = work()
    profile = cProfile.Profile() if options.profile else None
    print(f"{'kernel':44} {'compile':>7} {'explain':>7} {'again':>7} {'followed':>8} {'turns':>7}")
    kept = True
    for case in cases():
        if options.only in case[0]:
            if profile:
                profile.enable()
            kept = measure(*case, loaded, done) and kept
            if profile:
                profile.disable()
    if profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    return int(not kept)


if __name__ == "__main__":
    raise SystemExit(main())
