"""Compile every case with the real Triton (no GPU needed) and store its IR under tests/data/ttir.

    python tests/kernels/make_ttir.py            # all
    python tests/kernels/make_ttir.py softmax    # those whose name contains a word

Each case gives two files: `<case>.ttir`, the IR as Triton prints it, and `<case>.json`, what a launch must know that
the IR does not say (argument order and types, compile-time values, attributes, grid, options, Triton's version).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "tests" / "data" / "ttir"


def compile_case(case: Any) -> tuple[str, dict[str, Any]]:
    """The TTIR text of a case for cuda:90, and its launch facts."""
    import triton
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend

    signature, values, attributes = case.signature(case.make_inputs())
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options(case.options)
    source = ASTSource(case.kernel, signature, values, attributes)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    module = stages["ttir"](module, {})
    facts = {
        "kernel": case.kernel.__name__,
        "arguments": list(case.kernel.arg_names),
        "signature": signature,
        "constexprs": {name: jsonable(value) for name, value in values.items()},
        "attributes": {str(position[0]): value for position, value in attributes.items()},
        "grid": list(case.grid),
        "options": case.options,
        "triton": triton.__version__,
        "target": "cuda:90",
    }
    return strip_locations(str(module)), facts


def strip_locations(text: str) -> str:
    """The IR with each location's path cut short, so that it does not depend on where it was made."""
    text = text.replace(str(ROOT / "tests" / "kernels") + "/", "")
    return re.sub(r'"/[^"]*/site-packages/', '"', text)


def jsonable(value: Any) -> Any:
    """A compile-time value as JSON: types by name."""
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def main(words: list[str]) -> int:
    """Write the files; report and count the failures."""
    sys.path.insert(0, str(ROOT / "tests"))
    from kernels import load_cases

    OUT.mkdir(parents=True, exist_ok=True)
    failures = written = 0
    for name, case in load_cases("triton").items():
        if not case.ttir or (words and not any(word in name for word in words)):
            continue
        try:
            text, facts = compile_case(case)
        except Exception as error:  # the report goes on with the next case
            failures += 1
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        (OUT / f"{name}.ttir").write_text(text)
        (OUT / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
        written += 1
    print(f"{written} written, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
