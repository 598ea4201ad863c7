"""Time the cold compilation of every kernel in the examples. Run by cpu.py in processes of their own.

    python benchmarks/compile_time.py record specs.json     # which kernels with which arguments (needs Weft)
    python benchmarks/compile_time.py weft specs.json
    python benchmarks/compile_time.py triton specs.json     # Triton for cuda:90, no GPU needed

Both sides get the same specialisations, start with an empty cache, have everything imported and one other kernel
compiled before the clock runs, and are timed around `compile` alone.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples"), str(HERE.parent / "tests")]


class Recorded(Exception):
    """Stops a launch when its arguments are known."""


def record(path: str) -> None:
    """Run the examples with a launch that writes down what would be compiled."""
    import weft
    from kernels.case import type_name
    from run import EXAMPLES

    specs: list[dict[str, Any]] = []

    def describe(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bound = inspect.signature(kernel.fn).bind(*args, **kwargs)
        bound.apply_defaults()
        signature, constexprs, attributes = {}, {}, {}
        for position, (name, value) in enumerate(bound.arguments.items()):
            annotation = str(kernel.fn.__annotations__.get(name, ""))
            if "constexpr" in annotation:
                signature[name], constexprs[name] = (
                    "constexpr",
                    value if isinstance(value, (int, str)) else f"tl.{value.name}",
                )
                continue
            if isinstance(value, weft.TensorDescriptor):
                block = ",".join(map(str, value.block_shape))
                signature[name] = f"tensordesc<{type_name(value.base)[1:]}[{block}]>"
                continue
            signature[name] = type_name(value)
            if signature[name] == "constexpr":
                constexprs[name] = value
            elif signature[name].startswith("*") or (type(value) is int and value % 16 == 0):
                attributes[position] = [["tt.divisibility", 16]]
        module = Path(inspect.getsourcefile(kernel.fn)).stem
        spec = {"module": module, "kernel": kernel.fn.__name__, "signature": signature, "constexprs": constexprs}
        specs.append({**spec, "attributes": attributes})

    def launch(kernel: Any, grid: Any) -> Any:
        return lambda *args, **kwargs: describe(kernel, args, kwargs)

    weft.JITFunction.__getitem__ = launch
    for name in EXAMPLES:
        for work in importlib.import_module(name).works():
            work.run()
    unique = {json.dumps(spec, sort_keys=True): spec for spec in specs}
    Path(path).write_text(json.dumps(list(unique.values()), indent=1))


def measure(which: str, path: str) -> dict[str, float]:
    """Seconds for each specialisation."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = os.environ["WEFT_CACHE_DIR"] = cache
        if which == "triton":
            import triton as compiler
            import triton.language as tl
            from triton.backends.compiler import GPUTarget
            from triton.compiler import ASTSource

            sys.modules["weft"], sys.modules["weft.language"] = compiler, tl
            target: Any = GPUTarget("cuda", 90, 32)
        else:
            import weft as compiler
            import weft.language as tl

            ASTSource, target = compiler.ASTSource, None
        kernels = importlib.import_module("kernels_for_warming")
        warm = {"x_ptr": "*fp32", "BLOCK": "constexpr"}
        compiler.compile(ASTSource(kernels.warming, warm, {"BLOCK": 128}), target=target)
        types = {value.name: value for value in vars(tl).values() if isinstance(value, tl.dtype)}
        times: dict[str, float] = {}
        for spec in json.loads(Path(path).read_text()):
            kernel = getattr(importlib.import_module(spec["module"]), spec["kernel"])
            constexprs = {
                name: types[value[3:]] if isinstance(value, str) and value.startswith("tl.") else value
                for name, value in spec["constexprs"].items()
            }
            attributes = {(int(position),): value for position, value in spec["attributes"].items()}
            source = ASTSource(kernel, spec["signature"], constexprs, attributes)
            start = time.perf_counter()
            compiler.compile(source, target=target)
            seconds = time.perf_counter() - start
            label = f"{spec['module']}.{spec['kernel']}"
            number = sum(key.split("#")[0] == label for key in times)
            times[f"{label}#{number}"] = seconds
        return times


def main(which: str, path: str) -> None:
    """The command line."""
    if which == "record":
        record(path)
    else:
        print("RESULT" + json.dumps(measure(which, path)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
