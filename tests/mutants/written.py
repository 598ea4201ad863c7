"""Faults written by hand, of the kinds that compilers really have.

Each row: the file below `src/weft`, what stands there once, what stands there instead, what is wrong. A test checks that
every row still applies, so that a change of the sources cannot lose one silently.
"""

from __future__ import annotations

from pathlib import Path

from .rules import Mutant

ROWS: tuple[tuple[str, str, str, str], ...] = (
    # masks
    ("lower/memory.py", "    active = c.all_of([masks, *c.once(c.layout(pointer), cluster=True)])\n",
     "    active = c.all_of([*c.once(c.layout(pointer), cluster=True)])\n", "a store drops its mask"),
    ("lower/memory.py", "    active = mask_of(c, mask, starts) if mask is not None else None\n",
     "    active = None\n", "a load drops its mask"),
    ("lower/memory.py", "active = c.all_of([*c.once(None, cluster=True), c[mask] if mask else None])",
     "active = c.all_of([*c.once(None, cluster=True)])", "a scalar store drops its mask"),
    ("lower/memory.py", "    active = c.all_of([masks, *c.once(c.layout(pointer), cluster=True)])\n",
     "    active = masks\n", "copies of an element are all stored"),
    ("lower/memory.py", "instead = c[other] if other is not None else zero",
     "instead = zero", "a scalar load forgets what masked-off lanes get"),
    # signs
    ("language/semantic/casts.py", "op = arith.ExtSIOp if source.is_int_signed() else arith.ExtUIOp",
     "op = arith.ExtUIOp if source.name in source.UINT_TYPES[1:] else arith.ExtSIOp", "a boolean is extended by its sign"),
    ("language/semantic/casts.py", "op = arith.ExtSIOp if source.is_int_signed() else arith.ExtUIOp",
     "op = arith.ExtUIOp if source.is_int_signed() else arith.ExtSIOp",
     "signed and unsigned extensions are swapped"),
    ("language/semantic/casts.py", "op = arith.SIToFPOp if source.is_int_signed() else arith.UIToFPOp",
     "op = arith.SIToFPOp", "an unsigned integer is converted to a float as a signed one"),
    ("language/semantic/casts.py", "op = arith.FPToSIOp if target.scalar.is_int_signed() else arith.FPToUIOp",
     "op = arith.FPToSIOp", "a float is converted to an unsigned integer as to a signed one"),
    ("language/semantic/casts.py", 'predicate = "une" if value.type.scalar.is_floating() else "ne"',
     'predicate = "one" if value.type.scalar.is_floating() else "ne"', "NaN is not true"),
    ("language/semantic/arithmetic.py", "return self._same(arith.DivSIOp if common.is_int_signed() else arith.DivUIOp, input, other)",
     "return self._same(arith.DivSIOp, input, other)", "unsigned quotients are signed"),
    ("language/semantic/arithmetic.py", "if scalar.is_int_unsigned() and scalar.int_bitwidth < 64:",
     "if scalar.is_int_unsigned() and scalar.int_bitwidth < 32:", "an offset of 32 unsigned bits is taken as signed"),
    ("backends/llvm/elementwise.py", 'up, down = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")',
     'up, down = ("sitofp", "fptosi")', "unsigned vectors are divided as signed ones"),
    ("backends/llvm/elementwise.py", '"arith.extsi": _cast("sext")', '"arith.extsi": _cast("zext")',
     "nothing is extended by its sign on the CPU"),
    ("backends/llvm/elementwise.py", "return f.select(is_zero, x if remainder else zero, result)",
     "return result", "a division by zero is not caught"),
    ("backends/llvm/elementwise.py", "safe = f.select(f.or_(is_zero, minus), one, y)",
     "safe = f.select(is_zero, one, y)", "the least integer is divided by -1"),
    # promotion
    ("language/semantic/arithmetic.py", "input, other = self.cast(input, dt.float32), self.cast(other, dt.float32)",
     "input, other = self.cast(input, dt.float16), self.cast(other, dt.float16)", "a quotient of integers is a half"),
    ("language/semantic/arithmetic.py", "input, other = self.cast(input, dt.float32), self.cast(other, dt.float32)",
     "input, other = self.cast(input, dt.float16), self.cast(other, dt.float16)", "integers are divided as float16"),
    ("language/semantic/casts.py", "if source.primitive_bitwidth == 16 and not to.is_fp32():",
     "if source.primitive_bitwidth == 16 and to.is_fp64():", "float16 becomes bfloat16 directly"),
    # barriers and order
    ("lower/barriers.py", "        block.ops.insert(index, op)\n        inserted.append((block, op))\n",
     "        inserted.append((block, op))\n", "no barrier is inserted"),
    ("analysis/hazards.py", "            block.ops.insert(index, barrier)\n            if not same:\n",
     "            if not same:\n", "barriers in loops are dropped as if they were redundant"),
    ("lower/barriers.py", 'blocks |= _in_loops(region, inside or op.name in ("for", "while"))',
     'blocks |= _in_loops(region, inside or op.name in ("for", "while", "if"))', "branches are taken for loops"),
    ("lower/reduce.py", "moved = [_from_lane(c, v, lane) for v in other]\n        values = combined(c, body, values, moved)\n    if plan.warps",
     "moved = [_from_lane(c, v, lane) for v in other]\n        values = combined(c, body, moved, values)\n    if plan.warps",
     "a reduction across lanes changes the order of its operands"),
    ("lower/reduce.py", "for others in ways[1:]:\n        total = combined(c, body, total, others)\n    return total\n\n\ndef _copies",
     "for others in ways[2:]:\n        total = combined(c, body, total, others)\n    return total\n\n\ndef _copies",
     "the result of one warp is left out"),
    ("lower/reduce.py", "partners = [_rep(taken, r ^ direction) for r in alive]",
     "partners = [_rep(taken, r | direction) for r in alive]", "registers are combined with others than their partners"),
    # facts about addresses
    ("analysis/axis.py", "return Facts((1,), (min(lower.divisibility[0], step.divisibility[0]),), (1,))",
     "return Facts((1,), (lower.divisibility[0],), (1,))", "the step of a loop is forgotten"),
    ("analysis/axis.py", "return Facts((size,), (two_part(start),), (1,))",
     "return Facts((size,), (size,), (1,))", "a range is as aligned as it is long"),
    ("analysis/axis.py", "return facts[0] | facts[1]", "return facts[0]", "only one side of a branch is looked at"),
    ("analysis/axis.py", "            if joined == guess:\n                return guess\n", "            return guess\n",
     "what a loop does to a value is not looked at"),
    (
        "analysis/axis.py",
        "tuple(a if g else c for g, a, c in zip(grown, after, source.constancy, strict=True)),",
        "after,",
        "what is broadcast along one axis is the same along all",
    ),
    ("analysis/axis.py", "whole = min(source.divisibility) if all(c == 1 for c in source.contiguity) else _of_each(source)",
     "whole = min(source.divisibility)", "a new axis is as aligned as the first element"),
    ("ops/bounds.py", "return min(MOST, number & -number) if number else MOST",
     "return min(MOST, number) if number else MOST", "a number is divisible by itself"),
    ("lower/memory.py", "c.keeps_layouts and in_registers", "False",
     "what an author has apart in a thread is accessed together"),
    ("passes/gpu_pipelines.py", "keeps_layouts=not relayout", "keeps_layouts=False", "an author's layout is replaced"),
    ("ops/bounds.py", "    if not 0 <= b.low <= b.high < bits:\n        return any_of(bits, a.multiple)\n", "",
     "a shift by the width or more is taken for one that fits"),
    ("ops/bounds.py", "    highs = [v.high for v in x if v.low >= 0]", "    highs = [v.high for v in x]",
     "a negative operand bounds a conjunction"),
    # instructions of PTX
    ("sim/nvidia/ptx_integers.py", "np.where(length == 0, 0, shifted << above >> above)", "shifted << above >> above",
     "a field of no bits has one"),
    ("sim/nvidia/ptx_conversions.py", "nan = 1 << bits - 1 if bits == 64 or source == \"f64\" else 0", "nan = 0",
     "NaN is zero in every integer type"),
    ("sim/nvidia/ptx_floats.py", "rounded(_odd(total, (product - (total - back)) + (addend - back)), type)",
     "rounded(total, type)", "fma rounds twice"),
    # algebra
    ("layouts/f2.py", "            vector ^= row[0]\n            used ^= row[1]\n        return used\n\n\ndef _independent",
     "            vector ^= row[0]\n            used |= row[1]\n        return used\n\n\ndef _independent", "sums over F2 are joins"),
    ("layouts/f2.py", "return [multiply(a, column) for column in b]", "return [multiply(b, column) for column in a]",
     "a product of matrices is turned around"),
    ("machines/machine.py", "banks: int = 32", "banks: int = 16", "shared memory has half the banks"),
    ("layouts/banks.py", "return phases << f2.rank(words) - f2.rank(banked), phases", "return phases, phases",
     "no bank conflict is ever seen"),
    ("layouts/plan/access.py", "return min((size for pair in self.gaps for size in pair), default=1 << 30)",
     "return 1 << 30", "accesses are cut by gaps of memory"),
    # launches and keys
    ("runtime/specialize.py", "COARSE)[value % 16]",
     "COARSE)[value % 8]", "8 is a multiple of 16"),
    ("runtime/specialize.py", 'name = f"*k{facts.element}" if is_const else f"*{facts.element}"',
     'name = f"*{facts.element}"', "a constant pointer may be written to"),
    ("runtime/specialize.py", '"D" * (align and facts.address % 16 == 0)',
     '"D" * (align and facts.address % 4 == 0)', "any word is as aligned as a vector"),
    ("compiler/stages.py", "        options.key(),\n", "", "the key forgets the options"),
    ("compiler/stages.py", "        src.hash(),\n", "        src.name,\n", "the key forgets the source"),
    ("compiler/stages.py", "        str(target),\n", "        target.backend,\n", "the key forgets which GPU"),
    ("compiler/stages.py", "        versions(),\n", "", "the key forgets the versions"),
    # PTX
    ("backends/gpu/memory.py", '    if elem == "i1":\n        parts = e.parts(word, "i8", shape.each)\n        return [e.early("icmp ne i8", e.name(p), "0") for p in parts]\n',
     '    if elem == "i1":\n        parts = e.parts(word, "i8", shape.each)\n        return [e.pure(f"trunc i8 {e.name(p)} to i1") for p in parts]\n',
     "a boolean byte of 2 is false"),
    ("backends/gpu/memory.py", "more = at * shape.bits // shape.each // 8\n            if mask in", "more = at * shape.bits // 8\n            if mask in",
     "the second vector of an access is too far away"),
    ("backends/nvidia/assembler_faults.py", "        if result not in compared:\n            return m[0]\n", "        return m[0]\n",
     "negations within minima are left to ptxas"),
    ("backends/nvidia/assembler_faults.py", "if capability >= f.first_capability)", "if capability > 90)",
     "no fault of ptxas is avoided on Hopper"),
)  # fmt: skip


def written(root: Path) -> list[Mutant]:
    """The rows as faults. ValueError where what a row replaces does not stand there once."""
    mutants = []
    for number, (path, old, new, rule) in enumerate(ROWS):
        source = (root / "src" / "weft" / path).read_text(encoding="utf-8")
        if source.count(old) != 1:
            raise ValueError(
                f"row {number} of tests/mutants/written.py ({rule}): {path} has {old!r} {source.count(old)} times"
            )
        offset = source.index(old)
        line = source.count("\n", 0, offset) + 1
        mutants.append(Mutant(f"written:{number}", f"src/weft/{path}", line, rule, offset, old, new))
    return mutants
