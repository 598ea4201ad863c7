"""Comparing tile IR with the real Triton's, where it is installed; no GPU is needed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from weft.base import CompileOptions

__all__ = ["OPTIONS", "canonical", "negated_by_subtraction", "through_triton", "triton_ir_of"]

# What options a cuda:90 compilation gives the language.
OPTIONS = CompileOptions(
    default_dot_input_precision="tf32",
    allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    supported_fp8_dtypes=("fp8e4b15", "fp8e4nv", "fp8e5"),
    deprecated_fp8_dot_operand_dtypes=("fp8e4b15",),
    max_num_imprecise_acc_default=2**30,
)


def through_triton(text: str, options: dict[str, Any], path: Path) -> str:
    """Tile IR after Triton's first stage for cuda:90."""
    from triton._C.libtriton import ir as triton_ir
    from triton.backends.compiler import GPUTarget, Language
    from triton.compiler import make_backend

    backend = make_backend(GPUTarget("cuda", 90, 32))
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    path.write_text(text, encoding="utf-8")
    module = triton_ir.parse_mlir_module(str(path), context)
    module.context = context
    assert module.verify()
    stages: dict[str, Any] = {}
    backend.add_stages(stages, backend.parse_options(options), Language.TRITON)
    return str(stages["ttir"](module, {}))


_NEGATION = re.compile(r"^( *)%([\w.$-]+) = arith\.negf (%[\w.$-]+) : (.*?)( loc\(.*\))?$", re.MULTILINE)


def negated_by_subtraction(text: str) -> str:
    """IR text with `0 - x` for `-x`, as Triton 3.6 writes it, whose back end cannot compile `arith.negf`.

    It gives 0 for -0.0 where Weft, as later versions, gives what the sign bit says.

    >>> print(negated_by_subtraction("  %1 = arith.negf %0 : tensor<8xf32>"))
      %zero_of_1 = arith.constant dense<0.000000e+00> : tensor<8xf32>
      %1 = arith.subf %zero_of_1, %0 : tensor<8xf32>
    """

    def subtraction(match: re.Match[str]) -> str:
        indent, result, operand, kind, place = match.groups("")
        zero = "dense<0.000000e+00>" if kind.startswith("tensor") else "0.000000e+00"
        return (
            f"{indent}%zero_of_{result} = arith.constant {zero} : {kind}\n"
            f"{indent}%{result} = arith.subf %zero_of_{result}, {operand} : {kind}{place}"
        )

    return _NEGATION.sub(subtraction, text)


_LOCATION = re.compile(r' loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)')
_CONSTANT = re.compile(r"(%[\w.$-]+) = arith\.constant (.*)$")
_RESULT = re.compile(r"%[\w.$-]+(?=(?::\d+)?(?:, %[\w.$-]+)* = )")
_ARGUMENT = re.compile(r"%[\w.$-]+(?=: )")
_NAME = re.compile(r"%[\w.$-]+")


def canonical(text: str) -> list[str]:
    """IR text without locations, values numbered in the order of their definition, constants written where used."""
    text = _LOCATION.sub("", re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE))
    meaning: dict[str, str] = {}
    count = 0
    result = []
    for line in filter(None, map(str.strip, text.splitlines())):
        constant = _CONSTANT.match(line)
        if constant:
            meaning[constant[1]] = "{" + constant[2] + "}"
            continue
        defining = _ARGUMENT if line.startswith(("^", "tt.func", "partition")) else _RESULT
        defined = {match.start() for match in defining.finditer(line)}
        before = dict(meaning)
        for match in defining.finditer(line):
            meaning[match[0]] = f"%{count}"
            count += 1
        result.append(_NAME.sub(lambda m: (meaning if m.start() in defined else before).get(m[0], m[0]), line))
    return result


def triton_ir_of(kernel: Any, signature: dict[str, Any], constants: dict[tuple[int, ...], Any]) -> str:
    """Tile IR as Triton's frontend makes it for cuda:90."""
    from triton._C.libtriton import ir as triton_ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend

    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    source = ASTSource(kernel, signature, constants, {})
    context = triton_ir.context()
    triton_ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    return str(module)
