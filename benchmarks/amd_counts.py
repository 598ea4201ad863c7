"""What the main loop of a kernel is made of on AMD GPUs, beside what Triton 3.6.0 makes of the same source.

    make amd-counts                                          # the table; TRITON_PYTHON=an interpreter with Triton
    python benchmarks/amd_counts.py --only product --targets gfx942,gfx1201 --json

Both sides compile to assembly, for which no GPU is needed. The main loop is the one with the most matrix instructions
among those that have no other loop in them; of a kernel without such a loop the loop that moves the most bytes, or all
of it where there is none. What is counted there:

    matrix      MFMA and WMMA, weighted by the products of one (a 32x32x8 counts as two of 16x16x16)
    LDS         instructions, and what they cost: the bytes of a lane, of an access narrower than a bank's word 4
    global      likewise, direct-to-LDS copies among them
    exchanges   DPP, permutations, swizzles, readlane
    barriers    and in the whole kernel: spilled registers, registers, waves that fit on a SIMD by registers

A loop that does more at once, because it is unrolled, is compared by what it does: counts are divided by the products
(without matrix instructions: by the bytes of global memory) of the loop. Loops that load as many bytes do as much:
where waves multiply the same tile several times, that is more of `matrix`. Barriers are not compared where ours let two
groups of waves multiply in turns (ping-pong), which is what they are for. `*` marks what is more than Triton's.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from amd.assembly import Instruction, Kernel, parse  # noqa: E402
from amd.waits import generation, is_copy_to_local  # noqa: E402

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
SECONDS = 60
"""What one compile may take."""


@dataclass
class Case:
    """A kernel of a file, its types, constants and options; `{fp8}` is the target's own type."""

    file: str
    kernel: str
    signature: dict[str, str]
    constants: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)


def cases() -> dict[str, Case]:
    """All kernels."""
    f16, bf16, f32, i32 = "*fp16", "*bf16", "*fp32", "i32"
    found: dict[str, Case] = {}
    for word, kind, out, total, inner in (
        ("f16", f16, f16, "float32", 64), ("bf16", bf16, bf16, "float32", 64), ("int8", "*i8", "*i32", "int32", 128),
        ("fp8", "*{fp8}", f16, "float32", 128),
    ):  # fmt: skip
        for columns in (0, 1):
            found[f"product {word}, b by {'columns' if columns else 'rows'}"] = Case(
                "amd_kernels", "product",
                {"a": kind, "b": kind, "c": out, "M": i32, "N": i32, "K": i32},
                {"BM": 128, "BN": 128, "BK": inner, "COLUMNS": columns, "ACC": total},
            )  # fmt: skip
    found["product f16, 256x256, 8 waves"] = Case(
        "amd_kernels", "product", {"a": f16, "b": f16, "c": f16, "M": i32, "N": i32, "K": i32},
        {"BM": 256, "BN": 256, "BK": 64, "COLUMNS": 0, "ACC": "float32"}, {"num_warps": 8},
    )  # fmt: skip
    for sides, warps in (((64, 64, 32), 4), ((32, 32, 64), 4), ((64, 128, 64), 4), ((128, 64, 32), 2)):
        name = "product f16, " + "x".join(map(str, sides)) + f", {warps} waves" * (warps != 4)
        found[name] = Case(
            "amd_kernels", "product", {"a": f16, "b": f16, "c": f16, "M": i32, "N": i32, "K": i32},
            {"BM": sides[0], "BN": sides[1], "BK": sides[2], "COLUMNS": 0, "ACC": "float32"}, {"num_warps": warps},
        )  # fmt: skip
    attention = {"q": f16, "k": f16, "v": f16, "out": f16, "scale": "fp32", "n": i32}
    sizes = {"HEAD": 64, "BM": 128, "BN": 64}
    pair = {"m": i32, "n": i32}
    norm = {"x": f16, "w": f32, "b": f32, "out": f16, "columns": i32, "eps": "fp32"}
    return found | {
        "attention": Case("gpu_wider_kernels", "attention", attention, sizes | {"CAUSAL": 0}),
        "attention, causal": Case("gpu_wider_kernels", "attention", attention, sizes | {"CAUSAL": 1}),
        "attention, heads of 32": Case("gpu_wider_kernels", "attention", attention, sizes | {"HEAD": 32, "CAUSAL": 0}),
        "attention, heads of 128": Case(
            "gpu_wider_kernels", "attention", attention, sizes | {"HEAD": 128, "CAUSAL": 0}
        ),
        "softmax": Case("gpu_kernels", "softmax", {"x": f32, "out": f32, "columns": i32}, {"BLOCK": 4096}),
        "layer norm": Case(
            "gpu_kernels", "layer_norm",
            {"x": f16, "out": f16, "weight": f32, "bias": f32, "columns": i32, "eps": "fp32"}, {"BLOCK": 1024},
        ),
        "layer norm in passes": Case("gpu_wider_kernels", "layer_norm_in_passes", norm, {"BLOCK": 1024}),
        "transposition": Case("gpu_kernels", "transpose", {"x": f32, "out": f32} | pair, {"BLOCK": 64}),
        "transposition f16": Case("gpu_kernels", "transpose", {"x": f16, "out": f16} | pair, {"BLOCK": 64}),
        "transposition int8": Case("gpu_kernels", "transpose", {"x": "*i8", "out": "*i8"} | pair, {"BLOCK": 64}),
        "scan": Case("gpu_wider_kernels", "cumsum", {"x": f32, "out": f32, "columns": i32}, {"BLOCK": 2048}),
        "gather": Case("amd_kernels", "picked", {"x": f32, "index": "*i32", "out": f32}, {"N": 1024}),
        "rows of a table": Case(
            "gpu_wider_kernels", "gathered", {"x": f16, "index": "*i32", "out": f16, "columns": i32}, {"BLOCK": 1024}
        ),
        "row sums": Case("amd_kernels", "row_sums", {"x": f32, "out": f32, "n": i32}, {"M": 64, "N": 128}),
        "column sums": Case(
            "gpu_wider_kernels", "column_sums", {"x": f32, "out": f32, "rows": i32, "columns": i32},
            {"BM": 32, "BN": 64},
        ),
        "add": Case("gpu_kernels", "add", {"x": f32, "y": f32, "out": f32, "n": i32}, {"BLOCK": 1024}),
    }  # fmt: skip


# What a side compiles, in a process of its own --------------------------------------------------------------------


def function(side: str, case: Case) -> Any:
    """A kernel, decorated by a side."""
    sys.modules["sides"] = sides = types.ModuleType("sides")
    if side == "weft":
        import weft
        import weft.language

        vars(sides).update(jit=weft.jit, tl=weft.language)
    else:
        import triton
        import triton.language

        vars(sides).update(jit=triton.jit, tl=triton.language)
    name = f"{case.file}_{side}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{case.file}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return getattr(sys.modules[name], case.kernel), vars(sides)["tl"]


def assembly(side: str, case: Case, target: str) -> str:
    """What a side makes of a kernel for a processor."""
    kernel, tl = function(side, case)
    own = "fp8e4b8" if target == "gfx942" else "fp8e4nv"
    signature = {name: kind.format(fp8=own) for name, kind in case.signature.items()}
    constants = {n: getattr(tl, c) if isinstance(c, str) else c for n, c in case.constants.items()}
    kinds = {**signature, **dict.fromkeys(constants, "constexpr")}
    facts = {
        (place,): [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if kind[0] == "*" else [])
        for place, kind in enumerate(signature.values()) if kind[0] == "*" or kind == "i32"
    }  # fmt: skip
    wave = 64 if target.startswith("gfx9") else 32
    if side == "weft":
        from weft.compiler import ASTSource, GPUTarget, compile as compile_source

        return str(
            compile_source(
                ASTSource(kernel, kinds, constants, facts), GPUTarget("hip", target, wave), case.options
            ).asm["amdgcn"]
        )
    import triton
    from triton.backends.compiler import GPUTarget as TheirTarget
    from triton.compiler import ASTSource as TheirSource

    source = TheirSource(kernel, kinds, constants, facts)
    return str(
        triton.compile(source, target=TheirTarget("hip", target, wave), options=dict(case.options)).asm["amdgcn"]
    )


def serve(side: str, target: str, names: list[str]) -> None:
    """Compile kernels and print {name: assembly, or what went wrong after `error: `} as JSON, a line for each."""
    for name in names:
        signal.alarm(SECONDS)
        try:
            text = assembly(side, cases()[name], target)
        except Exception as error:
            text = f"error: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(json.dumps({name: text}), flush=True)


def compiled(side: str, python: str, target: str, names: list[str]) -> dict[str, str]:
    """The assembly of kernels by one side; what ended its process (LLVM aborts) costs one kernel."""
    texts: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        environment = {"TRITON_CACHE_DIR": f"{folder}/triton"} | os.environ | {"WEFT_CACHE_DIR": f"{folder}/weft"}
        while left := [name for name in names if name not in texts]:
            command = [python, str(Path(__file__).resolve()), "--serve", side, "--targets", target, "--kernels", *left]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            for line in done.stdout.splitlines():
                if line.startswith("{"):
                    texts.update(json.loads(line))
            if first := next((name for name in left if name not in texts), None):
                late = done.returncode == -signal.SIGALRM
                reason = f"more than {SECONDS} s" if late else (done.stderr.strip().splitlines() or ["?"])[-1]
                texts[first] = f"error: the process ended: {reason}"
    return texts


# What is counted --------------------------------------------------------------------------------------------------

MATRIX = re.compile(r"v_(?:s?mfma|s?wmma)[a-z]*_(?:scale_)?\w*?_(\d+)x(\d+)x(\d+)")
EXCHANGE = re.compile(r"ds_(?:b?permute|swizzle)|v_permlane|v_readlane|v_writelane|\w+_dpp\b|v_mov_b32_dpp")


def bytes_of(instruction: Instruction) -> int:
    """How many bytes of a lane an access moves.

    >>> names = "ds_read_u16 ds_read2st64_b64 buffer_load_dwordx4 global_load_b128 ds_read_b64_tr_b16"
    >>> [bytes_of(Instruction(1, name)) for name in names.split()]
    [2, 16, 16, 16, 8]
    """
    name = instruction.name
    times = 2 if re.search(r"(read|write|load|store|xchg)(_?2addr|2)(st64|_stride64)?_", name) else 1
    if match := re.search(r"dword(x(\d))?", name):
        return times * 4 * int(match[2] or 1)
    if match := re.search(r"_[bsuif]+(8|16|32|64|96|128)\b|_[bsuif]+(8|16|32|64|96|128)_", name):
        return times * int(match[1] or match[2]) // 8
    if re.search(r"_(ubyte|sbyte|byte)", name):
        return times
    if re.search(r"_(ushort|sshort|short)", name):
        return 2 * times
    return 4 * times


@dataclass
class Counts:
    """What a loop does."""

    products: int = 0
    matrix: int = 0
    lds: int = 0
    lds_cost: int = 0
    global_: int = 0
    global_cost: int = 0
    exchanges: int = 0
    barriers: int = 0
    spill_accesses: int = 0
    instructions: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def is_in_turns(self) -> bool:
        """Whether two groups of waves run it in turns, which takes barriers: waves that multiply have a priority."""
        return "s_setprio" in self.kinds and self.barriers > 2

    def add(self, instruction: Instruction) -> None:
        """Count an instruction."""
        name = instruction.name
        self.instructions += 1
        if match := MATRIX.match(name):
            self.matrix += 1
            m, n, k = map(int, match.groups())
            self.products += m * n * k
        elif EXCHANGE.match(name):
            self.exchanges += 1
        elif name.startswith("ds_"):
            self.lds += 1
            self.lds_cost += max(4, bytes_of(instruction))
        elif name.startswith("scratch_"):
            self.spill_accesses += 1
        elif name.startswith(("global_", "buffer_", "flat_")) and re.search("load|store|atomic", name):
            self.global_ += 1
            self.global_cost += max(4, bytes_of(instruction))
            if is_copy_to_local(instruction):
                self.kinds["direct to LDS"] += 1
        elif name in ("s_barrier", "s_barrier_wait"):
            self.barriers += 1
        elif name != "s_setprio":
            return
        self.kinds[name] += 1


def main_loop(kernel: Kernel) -> tuple[str, Counts]:
    """(what was counted, its counts)."""

    def counts_of(places: Iterable[int]) -> Counts:
        counts = Counts()
        for place in places:
            counts.add(kernel.instructions[place])
        return counts

    whole = counts_of(range(len(kernel.instructions)))
    inner = [body for body in kernel.loops if not any(other < body for other in kernel.loops)]
    best = max(map(counts_of, inner), key=lambda c: (c.products, c.global_cost), default=Counts())
    return ("loop", best) if best.products or (best.global_cost and not whole.products) else ("kernel", whole)


def waves(registers: int, processor: str) -> int:
    """How many waves have room on a SIMD: its registers of a lane, taken by so many at once, and a limit of its own.

    >>> [waves(n, "gfx942") for n in (64, 65, 128, 256, 257)], [waves(n, "gfx1100") for n in (96, 97, 256)]
    ([8, 7, 4, 2, 1], [16, 12, 5])
    """
    whole, step, most = (512, 8, 8) if generation(processor) == 9 else (1536, 24, 16)
    return min(most, whole // (-(-max(registers, 1) // step) * step))


@dataclass
class Row:
    """A kernel on a target by one side."""

    what: str
    counts: Counts
    registers: int
    spills: int
    waves: int


def row(text: str) -> Row:
    """What is counted of an assembly text: of its largest function."""
    kernel = max(parse(text).values(), key=lambda k: len(k.instructions))
    what, counts = main_loop(kernel)
    figures = kernel.figures
    registers = figures["vgpr_count"]
    return Row(
        what, counts, registers, figures.get("vgpr_spill_count", 0) + figures.get("sgpr_spill_count", 0),
        waves(registers, kernel.processor),
    )  # fmt: skip


CELLS = ("matrix", "LDS", "global", "exchanges", "barriers", "spills", "waves")


def worse(ours: Row, theirs: Row) -> list[str]:
    """The cells in which Weft is behind."""
    a, b = ours.counts, theirs.counts
    scale = b.products / a.products if a.products and b.products else 1.0
    if a.global_cost == b.global_cost > 0:
        scale = 1.0
    elif not a.products and not b.products and ours.what == theirs.what == "loop" and a.global_cost:
        scale = b.global_cost / a.global_cost
    more = {
        "matrix": bool(b.products and not a.products) or a.products * scale > b.products,
        "LDS": a.lds_cost * scale > b.lds_cost,
        "global": a.global_cost * scale > b.global_cost,
        "exchanges": a.exchanges * scale > b.exchanges,
        "barriers": a.barriers * scale > b.barriers and not a.is_in_turns,
        "spills": ours.spills > theirs.spills or a.spill_accesses * scale > b.spill_accesses,
        "waves": ours.waves < theirs.waves,
    }
    return [cell for cell in CELLS if more[cell]]


def shown(found: Row) -> str:
    """A side's half of a line."""
    c = found.counts
    return (
        f"{c.matrix:5} {c.lds:4}/{c.lds_cost:<5} {c.global_:3}/{c.global_cost:<4} {c.exchanges:4} {c.barriers:3} "
        f"{found.spills:4} {found.registers:4} {found.waves:3}"
    )


def find_triton() -> str | None:
    """An interpreter that has Triton: TRITON_PYTHON, or this one."""
    for python in filter(None, (os.environ.get("TRITON_PYTHON"), sys.executable)):
        done = subprocess.run(
            [python, "-c", "import triton; print(triton.__version__)"], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            print(f"Triton {done.stdout.strip()}", file=sys.stderr)
            return python
    return None


def report(targets: Iterable[str], names: list[str], python: str, as_json: bool) -> int:
    """Print the table; how many cells are worse or could not be made."""
    behind, all_rows, cells = [], {}, 0
    head = "matrix  LDS/cost  global/cost exch barr spill regs waves"
    for target in targets:
        texts = {
            "weft": compiled("weft", sys.executable, target, names),
            "triton": compiled("triton", python, target, names),
        }
        if not as_json:
            print(f"\n{target:32} of    {'Weft: ' + head}   | {'Triton: ' + head}")
        for name in names:
            sides = {side: text[name] for side, text in texts.items()}
            wrong = {side: text for side, text in sides.items() if text.startswith("error: ")}
            if wrong:
                all_rows[f"{target}: {name}"] = wrong
                if "weft" in wrong and "triton" not in wrong:
                    behind.append((target, name, "does not compile"))
                if not as_json:
                    print(f"{name:32} " + "; ".join(f"{side}: {text[:100]}" for side, text in wrong.items()))
                continue
            ours, theirs = row(sides["weft"]), row(sides["triton"])
            marks = worse(ours, theirs)
            cells += len(CELLS)
            behind += [(target, name, mark) for mark in marks]
            all_rows[f"{target}: {name}"] = {"weft": asdict(ours), "triton": asdict(theirs), "worse": marks}
            if not as_json:
                print(f"{name:32} {ours.what:6} {shown(ours)} | {shown(theirs)} {'* ' * bool(marks)}{', '.join(marks)}")
    if as_json:
        print(json.dumps(all_rows, indent=1))
    else:
        print(f"\n{len(behind)} of {cells} cells are worse than Triton's" + (":" if behind else ""))
        for target, name, mark in behind:
            print(f"  {target}: {name}: {mark}")
    return len(behind)


def main() -> None:
    """Print the table, or be one side of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--only", default="", help="kernels that have this in their name")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the assembly texts of both sides")
    parser.add_argument("--serve", choices=["weft", "triton"], help=argparse.SUPPRESS)
    parser.add_argument("--kernels", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.targets, options.kernels)
        return
    python = find_triton()
    if python is None:
        print("skipped: no Triton here (TRITON_PYTHON=an interpreter with Triton 3.6.0)")
        return
    names = [name for name in cases() if options.only in name]
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        for target in options.targets.split(","):
            for side, interpreter in (("weft", sys.executable), ("triton", python)):
                for name, text in compiled(side, interpreter, target, names).items():
                    (options.keep / f"{name}.{target}.{side}.s").write_text(text, encoding="utf-8")
        return
    report(options.targets.split(","), names, python, options.json)


if __name__ == "__main__":
    main()
