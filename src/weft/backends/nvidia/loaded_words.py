"""How many words a thread holds, if all that it loads is to be on its way before it computes.

    $L__BB0_2:
        ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%rd1];
        add.f32 %r1, %r1, %r4;        # %r1 is carried: 1 word, and the loop's counter another
        ...                           # 4 words are loaded at a time
        @%p1 bra $L__BB0_2;

Counted are words of 32 bits in PTX, before ptxas has ordered it: what the loop carries, and the most that is loaded and
not used up yet. Addresses and what is computed come on top. Only loops without another label in them are looked at, and
programs without a loop, but such as only count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

REGISTER = re.compile(r"%(?:rd|rs|fd|r|f)\d+")
PREDICATE = re.compile(r"@!?%p\d+\s+")
LABEL = re.compile(r"(\$\w+):")
BACK = re.compile(r"(?:@!?%p\d+\s+)?bra(?:\.uni)?\s+(\$\w+)")
NO_RESULT = ("st.", "red.", "bra", "bar.", "cp.", "prefetch", "fence", "membar", "mbarrier")
LOAD = "ld.global"
KNOWN_END = re.compile(r"setp\.\w+\.[us]32\s+%p\d+, %r\d+, \d+;")
WRITTEN_OUT = 280
"""Instructions that ptxas makes a loop's body of, at most, when it writes several iterations one after the other."""
TOGETHER = 16
"""Words that a thread asks for at a time in loops, which is enough with half of the warps."""
COUNTING = 3
"""The most instructions of a loop that counts."""


def held_in_an_iteration(ptx: str) -> int:
    """The most words that an iteration of one of the loops that load carries and has loaded; 0 where there is none.

    >>> loop = "$L__BB0_2:\\n ld.global.b32 %r2, [%rd1];\\n add.f32 %r1, %r1, %r2;\\n @%p1 bra $L__BB0_2;"
    >>> held_in_an_iteration(loop)
    2
    """
    return max(map(_held, _loops(ptx)), default=0)


def held_written_out(ptx: str) -> int:
    """The same of loops that ptxas writes out, as it knows how many iterations they have: of several iterations, as far
    as these load no more than is good to have on its way.

    >>> loop = "$L__BB0_2:\\n ld.global.b32 %r2, [%rd1];\\n add.f32 %r1, %r1, %r2;\\n setp.lt.u32 %p1, %r3, 1020;"
    >>> held_written_out(loop + "\\n @%p1 bra $L__BB0_2;"), held_written_out(loop.replace("1020", "%r4"))
    (17, 0)
    """
    return max((_held(x, WRITTEN_OUT // len(x)) for x in _loops(ptx) if any(map(KNOWN_END.match, x))), default=0)


def held_without_loops(ptx: str) -> int:
    """The most words that a program has loaded at a time; 0 where it branches back, but for loops that only count,
    which ptxas removes.

    >>> held_without_loops("ld.global.v2.b32 {%r2, %r3}, [%rd1];\\n st.shared.v2.b32 [%r1], {%r2, %r3};")
    2
    """
    begins, body = dict[str, int](), list[str]()
    for line in map(str.strip, ptx.splitlines()):
        if label := LABEL.match(line):
            begins[label[1]] = len(body)
        elif (branch := BACK.match(line)) and branch[1] in begins and not _counts(body[begins[branch[1]] :]):
            return 0
        elif line and line[0] not in "./{}":
            body.append(line)
    return _held(body)


def _loops(ptx: str) -> Iterator[list[str]]:
    """The instructions between a label and a branch back to it, where no other label is between them."""
    label, body = "", list[str]()
    for line in map(str.strip, ptx.splitlines()):
        if match := LABEL.match(line):
            label, body = match[1], []
        elif (back := BACK.match(line)) and back[1] == label:
            yield body
        elif line and line[0] not in "./{}":
            body.append(line)


def _held(body: list[str], iterations: int = 1) -> int:
    """Words that are carried, and the most that so many iterations load at a time; 0 where nothing is loaded."""
    carried, defined = set[str](), set[str]()
    last: dict[str, int] = {}
    loaded: list[tuple[int, str]] = []
    for at, line in enumerate(body):
        results, used = _operands(line)
        carried.update(name for name in used if name not in defined)
        last.update(dict.fromkeys(used, at))
        defined.update(results)
        if LOAD in line:
            loaded += [(at, name) for name in results]
    changes = [0] * (len(body) + 1)
    for at, name in loaded:
        if last.get(name, at) > at:
            changes[at] += _words(name)
            changes[last[name]] -= _words(name)
    most = now = 0
    for change in changes:
        now += change
        most = max(most, now)
    if iterations > 1:
        most = max(most, min(most * iterations, TOGETHER))
    return most + sum(_words(name) for name in carried & defined) if most else 0


def _counts(loop: list[str]) -> bool:
    """Whether a loop does no more than count."""
    return len(loop) <= COUNTING and all(line.startswith(("add.s", "setp.", "mov.")) for line in loop)


def _operands(line: str) -> tuple[list[str], list[str]]:
    """The registers that an instruction writes, and those that it reads."""
    text = PREDICATE.sub("", line, count=1)
    if text.startswith(NO_RESULT):
        return [], REGISTER.findall(text)
    operands = text.partition("\t")[2] or text.partition(" ")[2]
    results, _, used = operands.partition("}" if operands.lstrip().startswith("{") else ",")
    return REGISTER.findall(results), REGISTER.findall(used)


def _words(name: str) -> int:
    return 2 if name.startswith(("%rd", "%fd")) else 1
