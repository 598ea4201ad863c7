"""A kernel that is to be compiled, as Gluon source: its way to the layout IR, and the source of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.base import Unsupported
from weft.compiler import ASTSource, as_target, given_for_gpu, is_gpu, make_options
from weft.compiler.gpu import laid_out, tile_ir

from .kernel import WEFT, Asked, GluonSource, source_of

__all__ = ["written"]


def written(src: ASTSource, target: str, options: Mapping[str, Any], package: str = WEFT) -> GluonSource:
    """What becomes of a kernel for a GPU, as Gluon source.

    Unsupported for other targets; NoWord, one of those, where Gluon has no word for an operation.
    """
    if not is_gpu(target):
        raise Unsupported("Gluon source", target, hint='layouts are for threads of a GPU: target="cuda:90"')
    chosen = as_target(target)
    given = given_for_gpu(options, chosen.machine)
    module = laid_out(tile_ir(src, chosen, given), chosen.machine, make_options(given).language)
    return source_of(module, asked(src, target, package))


def asked(src: ASTSource, target: str, package: str = WEFT) -> Asked:
    """What the source of a kernel says of where it comes from."""
    names = src.fn.arg_names
    values = {names[path[0]]: value for path, value in src.constants.items() if len(path) == 1}
    constants = {name: values.get(name) for name, kind in src.signature.items() if kind == "constexpr"}
    kinds = dict(src.signature)
    file, line = src.fn.file_name, src.fn.starting_line_number
    return Asked(names, constants, kinds, target, file, line, package, as_target(target).machine.vendor)
