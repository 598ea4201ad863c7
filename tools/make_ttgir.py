"""Compile kernels with the real Triton (no GPU needed) and store their layout IR under tests/data/ttgir.

    python tools/make_ttgir.py            # all
    python tools/make_ttgir.py matmul     # those whose name contains a word

The kernels are some of tests/kernels, for cuda:80, cuda:90 or a GPU of AMD, and those of
tests/kernels/gluon_sources.py. Each gives one file, `<name>.ttgir`: what Triton's `ttgir` stage leaves, as Triton
prints it, with paths cut short. Of some Gluon kernels, `unresolved` holds what the front end made, before functions
were inlined and layouts inferred.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "tests" / "data" / "ttgir"

TRITON_KERNELS: dict[str, tuple[int | str, ...]] = {
    "atomic_histogram": (80,),
    "batched_matmul": (80, 90),
    "block_pointer_matmul_f16": (90,),
    "calls": (80,),
    "carried_pointers": (80,),
    "cast_float32_to_float8_e5m2": (90,),
    "concatenate": (80,),
    "cross_entropy": (80,),
    "descriptor_window": (90,),
    "descriptor_matmul": (80, 90),
    "descriptor_reduce": (90,),
    "device_descriptor_matmul": (90,),
    "dot_3d": (80,),
    "dynamic_if": (80,),
    "early_return": (80,),
    "extremes": (80,),
    "flash_attention_64": (80, 90),
    "float_atomics": (80,),
    "gather_rows": (90,),
    "gathers": (80,),
    "half_scaled_matmul": (90,),
    "histograms": (80,),
    "join_split": (80,),
    "layer_norm_forward": (80,),
    "linear_recurrence": (80,),
    "mapped": (80,),
    "matmul_bf16": (90,),
    "matmul_f16": (80, 90, "gfx942"),
    "matmul_f64": (80,),
    "matmul_fp8_e4m3": (90,),
    "matmul_int8": (80,),
    "nested_loops": (80,),
    "persistent": (80,),
    "reshape_permute_4x8x16": (80,),
    "scaled_matmul_e2m1": (80, 90),
    "softmax": (80, 90, "gfx942", "gfx1100"),
    "spin_lock": (80,),
    "sum_both_axes": (80,),
    "transpose_copy_f16": (80,),
    "unpack_int4": (80,),
    "vector_add": (80, 90),
    "welford": (80,),
    "while_tile": (80,),
}
"""Cases of tests/kernels, and what to compile each for: compute capabilities, and architectures of AMD."""


UNRESOLVED = ("gluon_inferred_layouts", "gluon_producer_consumer", "gluon_shape_operations", "gluon_tma_copy")
"""Those of which the front end's text is kept too."""


def _ttgir(source: Any, machine: int | str, options: dict[str, Any]) -> tuple[str, str]:
    """The text that Triton's front end makes of a source, and the text that its ttgir stage leaves."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend

    if isinstance(machine, str):
        target = GPUTarget("hip", machine, 64 if machine.startswith("gfx9") else 32)
    else:
        target = GPUTarget("cuda", machine, 32)
    backend = make_backend(target)
    parsed = backend.parse_options(options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target, parsed, backend.get_codegen_implementation(parsed), backend.get_module_map(), context
    )
    first = strip_locations(str(module))
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, source.language)
    metadata: dict[str, Any] = {}
    for name, stage in stages.items():
        module = stage(module, metadata)
        if name == "ttgir":
            break
    return first, strip_locations(str(module))


def strip_locations(text: str) -> str:
    """The IR with each location's path cut short, so that it does not depend on where it was made."""
    text = text.replace(str(ROOT / "tests" / "kernels") + "/", "")
    return re.sub(r'"/[^"]*/site-packages/', '"', text)


def _triton_sources() -> Iterator[tuple[str, Any, int | str, dict[str, Any]]]:
    from triton.compiler import ASTSource

    from kernels import load_cases

    cases = load_cases("triton")
    for name, machines in TRITON_KERNELS.items():
        case = cases.get(name)
        if case is None:
            print(f"there is no kernel {name}", file=sys.stderr)
            continue
        for machine in machines:
            source = ASTSource(case.kernel, *case.signature(case.make_inputs()))
            yield f"{name}_{'' if isinstance(machine, str) else 'sm'}{machine}", source, machine, case.options


def _gluon_sources() -> Iterator[tuple[str, Any, int | str, dict[str, Any]]]:
    from triton.experimental.gluon._runtime import GluonASTSource

    from kernels.gluon_sources import SOURCES

    for name, found in SOURCES.items():
        signature = {**found.signature, **dict.fromkeys(found.constexprs, "constexpr")}
        pointers = [i for i, type in enumerate(found.signature.values()) if type.startswith("*")]
        attributes = {(i,): [["tt.divisibility", 16]] for i in pointers}
        source = GluonASTSource(found.kernel, signature, found.constexprs, attributes)
        yield f"gluon_{name}", source, found.capability, found.options


def main(words: list[str]) -> int:
    """Write the files; report and count the failures."""
    sys.path.insert(0, str(ROOT / "tests"))
    (OUT / "unresolved").mkdir(parents=True, exist_ok=True)
    failures = written = 0
    for name, source, machine, options in (*_triton_sources(), *_gluon_sources()):
        if words and not any(word in name for word in words):
            continue
        try:
            first, text = _ttgir(source, machine, options)
        except Exception as error:  # the report goes on with the next kernel
            failures += 1
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        (OUT / f"{name}.ttgir").write_text(text)
        if name in UNRESOLVED:
            (OUT / "unresolved" / f"{name}.ttgir").write_text(first)
        written += 1
    print(f"{written} written, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
