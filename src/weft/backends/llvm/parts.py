"""Long functions in parts: LLVM takes more than twice as long for twice as many blocks, so no function has very many.

Nor has it blocks that store very often: scheduling instructions takes eight times as long for twice as many stores.

While a function is emitted, the emitter says where it may be cut: `with f.divisible():` encloses what runs in a row (a
body of a loop, a side of a branch, the function itself), and `f.cut()` stands between two things that follow each other
there. A function of at most `LONG` blocks is left as it is. Of a longer one, runs of at least `PART` blocks between two
cuts, the innermost first, become functions of their own, called in their place:

    entry:                                        entry:
      %v1 = getelementptr float, ptr %p0, i64 8     %v1 = getelementptr float, ptr %p0, i64 8
      ; 200 blocks that read %p0 and %v1            %v900 = call float @f.part1(ptr %p0, ptr %v1)
      ; and make %v900                              ...
      ...

What a run reads and does not define are its parameters, what is read behind it are its results. Addresses in the
scratch memory, at fixed distances from a parameter, are computed again within; memory of the stack that nothing else
uses goes with it; a variable is copied in and out, so that LLVM keeps it in a register. A run that may end the whole
function has one result more, which says so. A call takes nanoseconds, for some thousands of instructions each time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

LONG = 800
"""Blocks up to which a function stays in one piece: the longest of the examples and of the tests' kernels has 645."""
PART = 200
"""Blocks of a part, at least."""
MOST_RESULTS = 16
"""Results of a part: what leaves more behind stays where it is, as LLVM follows each field of an aggregate alone."""
STORE = 4
"""For how many blocks a store counts in a run that is no block of its own."""
BEGIN, CUT, END = ";{", ";|", ";}"
"""Lines of a function that are no text: the marks of `divisible`, `cut`, and the end of what is divisible."""

NAME = re.compile(r"%[\w.]+")
INCOMING = re.compile(r", (%[\w.]+) \]")
"""The block of a pair in a phi."""


@dataclass
class Call:
    """What stands where a part was: the lines that call it."""

    lines: list[str]
    last: str
    """The block that the run ended in, which phis behind it may name; nothing where it was all in one."""
    words: Counter[str]
    """How often the run named each register, before it was moved."""


Item = str | Call


@dataclass
class Scope:
    """What is between BEGIN and END: runs between two cuts."""

    runs: list[list[Item]] = field(default_factory=lambda: [[]])


class Divisible(Protocol):
    """A function under construction (`emit.Function`)."""

    name: str
    args: list[Any]
    attributes: list[str]
    lines: list[str]
    allocas: list[str]
    types: dict[str, Any]

    def written(self, lines: Iterable[str], at_entry: Sequence[str]) -> str:
        """These lines as the text of the function."""


def in_parts(function: Divisible) -> list[str]:
    """The text of a function, after those of the functions that parts of it became."""
    if _length(function.lines) > LONG:
        return _Divider(function).divide()
    return [function.written((line for line in function.lines if line[0] != ";"), function.allocas)]


def _length(lines: Iterable[str]) -> int:
    """The blocks of what is emitted, and what counts like them: stores, in a run without blocks."""
    length = blocks = stores = 0
    for line in lines:
        if line[-1] == ":":
            blocks += 1
        elif line[0] == ";":
            length += blocks or STORE * stores
            blocks = stores = 0
        elif line[2:7] == "store":
            stores += 1
    return length + (blocks or STORE * stores)


def _words(lines: Iterable[str]) -> Counter[str]:
    return Counter(name for line in lines for name in NAME.findall(line))


def _lines(items: Iterable[Item]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        else:
            yield from item.lines


def _last_block(items: Sequence[Item]) -> str:
    """The block that a run ends in, by its name before anything was moved; nothing where it has begun there."""
    for item in reversed(items):
        if isinstance(item, Call) and item.last:
            return item.last
        if isinstance(item, str) and item[-1] == ":":
            return "%" + item[:-1]
    return ""


def _defined(line: str) -> str:
    """The register that a line defines, or nothing."""
    name, is_definition, _ = line.partition(" = ")
    return name.strip() if is_definition else ""


def _finished(items: Sequence[Item]) -> list[str]:
    """The lines of what is left; the blocks that runs ended in are those that called them."""
    result: list[str] = []
    block, ends = "%entry", {}
    for item in items:
        for line in [item] if isinstance(item, str) else item.lines:
            result.append(line)
            if line[-1] == ":":
                block = "%" + line[:-1]
        if isinstance(item, Call) and item.last:
            ends[item.last] = block
    return [_from(line, ends) if " = phi " in line else line for line in result]


def _from(phi: str, blocks: dict[str, str]) -> str:
    """A phi with other names for the blocks that one comes from."""
    return INCOMING.sub(lambda pair: f", {blocks.get(pair[1], pair[1])} ]", phi)


class _Divider:
    def __init__(self, function: Divisible) -> None:
        self.f = function
        self.parts: list[str] = []
        self.words = _words(function.lines)
        self.definitions = {name: line for line in function.lines if (name := _defined(line))}
        self.at_entry = {name: line for line in function.allocas if (name := _defined(line))}
        self.first = {NAME.findall(line)[-1]: line for line in function.allocas if not _defined(line)}
        """Of each variable, the line that stores its first value."""
        pairs = zip(function.args, function.attributes, strict=True)
        self.parameters = {value.name: attributes for value, attributes in pairs}

    def divide(self) -> list[str]:
        """The texts of the parts, and of what is left of the function."""
        scopes = [Scope()]
        for line in self.f.lines:
            if line == BEGIN:
                scopes.append(Scope())
            elif line == END:
                scope = scopes.pop()
                scopes[-1].runs[-1] += self._reduced(scope.runs)
            elif line == CUT:
                scopes[-1].runs.append([])
            else:
                scopes[-1].runs[-1].append(line)
        lines = _finished([item for run in scopes[0].runs for item in run])
        return [*self.parts, self.f.written(lines, self._entry_of(lines))]

    def _entry_of(self, lines: list[str]) -> list[str]:
        """What is still used of the lines at the entry."""
        used, kept = set(_words(lines)), []
        for line in reversed(self.f.allocas):
            names = NAME.findall(line)
            if (_defined(line) or names[-1]) in used:
                used.update(names)
                kept.append(line)
        return kept[::-1]

    def _reduced(self, runs: list[list[Item]]) -> list[Item]:
        """The items of a scope, with runs of it moved into parts where it is long."""
        if sum(sizes := [_length(_lines(run)) for run in runs]) <= 2 * PART:
            return [item for run in runs for item in run]
        result: list[Item] = []
        group: list[Item] = []
        size = 0
        for run, added in zip(runs, sizes, strict=True):
            group += run
            size += added
            if size >= PART:
                result += self._moved(group)
                group, size = [], 0
        return result + group

    def _moved(self, run: list[Item]) -> list[Item]:
        """A run becomes a part, if it can; gives what stands in its place."""
        lines = _finished(run)
        labels = {"%" + line[:-1] for line in lines if line[-1] == ":"}
        before = {block for line in lines if " = phi " in line for block in INCOMING.findall(line)} - labels
        lines = [_from(line, dict.fromkeys(before, "%entry")) if " = phi " in line else line for line in lines]
        words = _words(item for item in run if isinstance(item, str))
        for item in run:
            if isinstance(item, Call):
                words.update(item.words)
        defined = dict.fromkeys(name for line in lines if (name := _defined(line)))
        results = [name for name in defined if self.words[name] > words[name]]
        if len(results) > MOST_RESULTS:
            return run
        needed = dict.fromkeys(name for line in lines for name in NAME.findall(line))
        part = _Part(self, [n for n in needed if n not in defined and n not in labels and n != "%entry"], words)
        number = len(self.parts) + 1
        text, call = part.written(lines, results, f"{self.f.name}.part{number}", str(number))
        self.parts.append(text)
        return [Call(call, _last_block(run), words)]

    def is_in(self, name: str, parameter: str) -> bool:
        """Whether a pointer is computed from a parameter."""
        while name in self.definitions or name in self.at_entry:
            line = self.definitions.get(name) or self.at_entry[name]
            if "= getelementptr" not in line:
                return False
            name = NAME.findall(line)[1]
        return name == parameter


class _Part:
    """A function that a run becomes: its parameters, and what is done at its entry and before it returns."""

    def __init__(self, divider: _Divider, needed: Iterable[str], words: Counter[str]) -> None:
        self.d = divider
        self.outer_names: dict[str, str] = {}  # names within to names outside
        self.entry: list[str] = []
        self.leaving: list[str] = []
        for name in needed:
            self._have(name, words)

    def _have(self, name: str, words: Counter[str]) -> None:
        line = self.d.at_entry.get(name, "")
        if name in self.outer_names or line in self.entry:
            return
        if "= getelementptr" in line:
            for operand in NAME.findall(line)[1:]:
                self._have(operand, words)
            self.entry.append(line)
        elif name in self.d.first:
            self._copy(name, line)
        elif "= alloca" in line and self.d.words[name] == words[name]:
            self.entry.append(line)
        else:
            self.outer_names[name] = name

    def _copy(self, name: str, line: str) -> None:
        """A variable of the part's own, with the value of that outside."""
        type = line.partition(" = alloca ")[2].partition(",")[0]
        outside = f"{name}.outside"
        self.outer_names[outside] = name
        self.entry += [
            line,
            f"  {name}.before = load {type}, ptr {outside}, align 8",
            f"  store {type} {name}.before, ptr {name}, align 8",
        ]
        now = f"{name}.now{{}}"
        self.leaving += [
            f"  {now} = load {type}, ptr {name}, align 8",
            f"  store {type} {now}, ptr {outside}, align 8",
        ]

    def _parameter(self, within: str, outside: str) -> str:
        attributes = self.d.parameters.get(outside, "")
        others = [name for name in self.outer_names.values() if name != outside]
        if "noalias" in attributes and any(self.d.is_in(name, outside) for name in others):
            attributes = ""
        return f"{self.d.f.types[outside]}{' ' + attributes if attributes else ''} {within}"

    def written(self, lines: list[str], results: list[str], name: str, number: str) -> tuple[str, list[str]]:
        """The text of the function, and the lines that call it."""
        may_leave = "  ret void" in lines
        fields = ["i1"] * may_leave + [str(self.d.f.types[result]) for result in results]
        poison = [f"{type} poison" for type in fields[may_leave:]]
        aggregate = f"{{ {', '.join(fields)} }}" if len(fields) > 1 else fields[0] if fields else "void"
        body: list[str] = []
        exits = 0
        for line in lines:
            if line == "  ret void":
                exits += 1
                body += [exit.format(exits) for exit in self.leaving]
                line = f"  ret {aggregate} {{ {', '.join(['i1 true', *poison])} }}" if poison else "  ret i1 true"
            body.append(line)
        body += [exit.format(0) for exit in self.leaving]
        values = ["false"] * may_leave + results
        if len(fields) > 1:
            so_far = f"{{ {', '.join(['i1 false'] * may_leave + poison)} }}"
            for k in range(may_leave, len(fields)):
                body.append(f"  %all{k} = insertvalue {aggregate} {so_far}, {fields[k]} {values[k]}, {k}")
                so_far = f"%all{k}"
            body.append(f"  ret {aggregate} {so_far}")
        else:
            body.append(f"  ret {aggregate} {values[0]}" if fields else "  ret void")
        parameters = ", ".join(self._parameter(*pair) for pair in self.outer_names.items())
        head = f"define internal {aggregate} @{name}({parameters}) nounwind noinline {{"
        text = "\n".join([head, "entry:", *self.entry, *body, "}"]) + "\n"
        return text, self._call(f"{aggregate} @{name}", fields, results, may_leave, number)

    def _call(self, function: str, fields: list[str], results: list[str], may_leave: bool, number: str) -> list[str]:
        arguments = ", ".join(f"{self.d.f.types[name]} {name}" for name in self.outer_names.values())
        call = f"call {function}({arguments})"
        if not fields:
            return [f"  {call}"]
        if len(fields) == 1 and results:
            return [f"  {results[0]} = {call}"]
        aggregate = function.partition(" @")[0]
        whole, left = f"%part{number}", f"%left{number}"
        lines = [f"  {whole} = {call}"]
        if may_leave:
            if results:
                lines.append(f"  {left} = extractvalue {aggregate} {whole}, 0")
            lines.append(f"  br i1 {left if results else whole}, label %leave{number}, label %stay{number}")
            lines += [f"leave{number}:", "  ret void", f"stay{number}:"]
        for k, result in enumerate(results):
            lines.append(f"  {result} = extractvalue {aggregate} {whole}, {k + may_leave}")
        return lines
