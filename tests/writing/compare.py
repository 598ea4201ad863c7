"""Kernels of the tests, written as Gluon source, and the lane programs of both.

python -m writing.compare [part of a name]      from tests/: every kernel, those that differ or have no word, and counts
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import weft
from digests.compiled import CASES, CLUSTERS, GLUON, benchmarks
from gluon.sources import arguments_of
from hopper.test_pointed import CASES as POINTED
from hopper.test_specialized import ATTENTIONS, PRODUCTS
from weft.base import WeftError
from weft.compiler import as_target, lane_program
from weft.ir.lane import text_of
from weft.runtime.watching import Watched
from weft.writing import GluonSource, NoWord, written

TARGETS = ("cuda:80", "cuda:90")


class NotCompiled(Exception):
    """The kernel is not for the target."""


Made = tuple[Callable[[], Any], dict[str, Any]]
"""(what makes the source that is compiled, the options)."""


class Launched(Watched):
    """A `with` in which the last launch is kept and not done."""

    def note(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.last = kernel, args, kwargs


def launches() -> dict[str, Callable[[], Any]]:
    """Kernels that are launched, by their names: with `num_ctas`, and those of which loops are divided among warps."""
    found: dict[str, Callable[[], Any]] = {}
    for name, check in CLUSTERS.items():
        found[f"clusters/{name.replace(' ', '_')}"] = lambda check=check: check(_launch)
    for name, case in (*PRODUCTS.items(), *ATTENTIONS.items(), *POINTED.items()):
        if name == "no step":  # an empty matrix has no descriptor
            continue
        found[f"specialized/{name.replace(' ', '_').replace(',', '')}"] = case.run
    return found


def _launch(kernel: Any, grid: Any, *args: Any, **more: Any) -> None:
    kernel[grid](*args, **more)


def programs_of_launch(launch: Callable[[], Any], target: str) -> tuple[str, str]:
    """As `programs`, of what is launched last."""
    with Launched(target) as watched, suppress(AssertionError, AttributeError):  # nothing is computed
        launch()
    kernel, args, more = watched.last
    source = kernel.to_gluon(*args, **more, target=target)
    options = {k: v for k, v in more.items() if k not in kernel.arg_names}
    with redirect_stdout(io.StringIO()):
        wanted = kernel.warmup(*args, **more, grid=(1,), target=f"sim:{target}")
        found = source.kernel.warmup(
            *source.arguments, **{**options, **source.options}, grid=(1,), target=f"sim:{target}"
        )
    return without_names(wanted.asm["lane"]), without_names(found.asm["lane"])


def kernels() -> dict[str, Made]:
    """Every kernel by its name: those in the Triton language, those of the benchmarks, those in Gluon."""
    found: dict[str, Made] = {}
    for name, case in CASES.items():
        found[f"kernels/{name}"] = (lambda case=case: _of_case(case), case.options)
    for name, case in benchmarks().items():
        found[f"benchmarks/{name}"] = (case.source, case.options)
    for name, source in GLUON.items():
        if source.capability <= 90:
            found[f"gluon/{name}"] = (lambda source=source: _of_gluon(source), source.options)
    return found


def _of_case(case: Any) -> Any:
    types, values, attributes = case.signature(case.make_inputs())
    return weft.ASTSource(case.kernel, types, values, attributes)


def _of_gluon(source: Any) -> Any:
    signature, attributes = arguments_of(source)
    return weft.ASTSource(source.kernel, signature, source.constexprs, attributes)


def applies(name: str, target: str) -> bool:
    """Whether a kernel is for a target: one in Gluon may need a later one."""
    collection, _, kernel = name.partition("/")
    return collection != "gluon" or int(target.removeprefix("cuda:")) >= GLUON[kernel].capability


def programs(made: Made, target: str, folder: Path) -> tuple[str, str, GluonSource]:
    """The lane programs of a kernel and of its Gluon source, without the names of values, and that source.

    NoWord where it cannot be written, NotCompiled where the kernel itself is refused.
    """
    source, options = made
    with redirect_stdout(io.StringIO()):  # some print while they are traced
        try:
            wanted = lane_program(source(), f"sim:{target}", options)
        except WeftError as error:
            raise NotCompiled from error
        text = written(source(), target, options)
        path = folder / f"written_{len(list(folder.iterdir()))}.py"
        path.write_text(text.text, encoding="utf-8")
        kernel = _loaded(path, text.name)
        first = source()
        again = weft.ASTSource(kernel, first.signature, first.constants, first.attrs) if not text.parts else (
            _with_parts(kernel, text, first))  # fmt: skip
        found = lane_program(again, f"sim:{target}", {**options, **text.options})
    return without_names(text_of(wanted)), without_names(text_of(found)), text


def _with_parts(kernel: Any, text: GluonSource, first: Any) -> Any:
    """A kernel of which some parameters are parts of a descriptor: they have the types that they had in the IR."""
    names = kernel.arg_names
    signature = {n: text.types[n][0] if n in text.types else "constexpr" for n in names}
    attributes = {(names.index(n),): [["tt.divisibility", by]] for n, (_, by) in text.types.items() if by > 1}
    constants = {first.fn.arg_names[path[0]]: value for path, value in first.constants.items()}
    return weft.ASTSource(kernel, signature, constants, attributes)


def _loaded(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def without_names(text: str) -> str:
    """The text of a lane program in which a constant stands where it is used, and values are numbered as they come;
    parameters have a type and no name.

    >>> print(without_names("k() for m\\n  %0: i32 = constant {value=2}\\n  %1: i32 = arith.addi %0, %0"))
    k() for m
      %0: i32 = arith.addi [i32 2], [i32 2]
    """
    constants: dict[str, str] = {}
    names: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        constant = re.fullmatch(r"\s*(%\d+): (\S+) = constant \{value=(.*)\}", line)
        if constant:
            constants[constant[1]] = f"[{constant[2]} {constant[3]}]"
        else:
            lines.append(line)

    def named(match: re.Match[str]) -> str:
        return constants.get(match[0]) or names.setdefault(match[0], f"%{len(names)}")

    lines[0] = re.sub(r"(%\d+: )\S+ ", r"\1", lines[0])
    return "\n".join(re.sub(r"%\d+", named, line) for line in lines)


def compared(name: str, target: str, made: Made | Callable[[], Any]) -> str:
    """"the same" where a kernel and its source have the same program, else what is the case; "" for another target."""
    with TemporaryDirectory() as folder:
        try:
            if callable(made):
                wanted, found = programs_of_launch(made, target)
            else:
                wanted, found, _ = programs(made, target, Path(folder))
            return "the same" if wanted == found else "different"
        except NoWord as error:
            return f"no word: {error.feature}"
        except NotCompiled:
            return ""
        except WeftError as error:
            return f"an error: {str(error).splitlines()[0]}"


def every() -> Iterator[tuple[str, str, Made | Callable[[], Any]]]:
    """Every kernel with each of its targets."""
    for name, made in kernels().items():
        yield from ((name, target, made) for target in TARGETS if applies(name, target))
    for name, launch in launches().items():
        yield from ((name, target, launch) for target in TARGETS if as_target(target).machine.async_proxy)


def main() -> None:
    """Print what differs, what has no word, and how many there are."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    counts: dict[str, Counter[str]] = {target: Counter() for target in TARGETS}
    for name, target, made in every():
        result = compared(name, target, made) if part in name else ""
        if result:
            counts[target][result.partition(":")[0]] += 1
        if result not in ("", "the same"):
            print(f"{name} {target}: {result}", flush=True)
    for target, found in counts.items():
        told = ", ".join(f"{count} {what}" for what, count in found.most_common())
        print(f"{target}: {sum(found.values())} kernels: {told}")


if __name__ == "__main__":
    main()
