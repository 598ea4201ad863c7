"""The examples in hints are right: each is read and verified, its operands taken as arguments of a function."""

from __future__ import annotations

import re

import pytest

from weft import layouts
from weft.ir import parse_module, tt, verify
from weft.ir.gpu.names import EXAMPLES as LAYOUTS
from weft.ir.text import OPERATIONS
from weft.ir.text.examples import EXAMPLES, written
from weft.ir.text.reader import Reader
from weft.ir.text.types import type_text
from weft.layouts.zoo.examples import EXAMPLES as PARAMETERS

ALIASES = """#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
"""
ENDS = ("tt.return", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return", "scf.yield", "scf.condition")


def used(text: str) -> dict[str, str]:
    """The values that an operation uses and does not define, with their types."""
    reader = Reader(ALIASES + text, "example")
    for _ in range(4):
        reader.at = reader.texts.index("=", reader.at) + 1
        reader.attribute()
    reader._blocks.append({})
    reader.operation()
    assert reader.kinds[reader.at] == "e"
    return {name: type_text(value.type) for name, (value, _) in reader._pending.items()}


@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in (*ENDS, "cf.br", "cf.cond_br")])
def test_an_example_is_right(name: str) -> None:
    text = EXAMPLES[name]
    if name == "builtin.module":
        module = parse_module(text)
    elif name == "tt.func":
        module = parse_module(f"module {{ {text} }}")
    else:
        arguments = ", ".join(f"{value}: {kind}" for value, kind in used(text).items())
        attributes = 'attributes {"ttg.num-warps" = 1 : i32} ' if "#" in text else ""
        module = parse_module(f"{ALIASES}module {attributes}{{ tt.func @f({arguments}) {{ {text} tt.return }} }}")
    verify(module, *(["layout"] if "#" in text else []))
    assert name in [op.name for op in module.walk()]


@pytest.mark.parametrize("name", [*ENDS, "cf.br", "cf.cond_br"])
def test_an_example_of_an_end_is_read(name: str) -> None:
    assert EXAMPLES[name].startswith(name)
    used(EXAMPLES[name])


def test_every_operation_has_one() -> None:
    for name, operation in OPERATIONS.items():
        shown = written(name)
        assert shown is not None and name.removeprefix("builtin.") in shown
        if name in EXAMPLES or "type(" in shown or operation is tt.ReturnOp:
            continue
        if re.search(r"%[xyz]\b", shown):  # a table's: read as it stands
            assert used(shown)


def test_layouts_of_hints_can_be_made() -> None:
    for name in set(PARAMETERS) - {"LinearLayout"}:  # LinearLayout(...) is what `weft layout` calls from_bases
        assert eval(str(layouts.example(name)), vars(layouts)) is not None
    for text in LAYOUTS.values():
        reader = Reader(
            f"#blocked = {LAYOUTS['#ttg.blocked']}\n#mma = {LAYOUTS['#ttg.nvidia_mma']}\n#it = {text}", "it"
        )
        assert reader.alias("#it") is not None
