"""Launches for a simulated GPU: every instruction that would be emitted is run, checked and counted.

    with weft.target("sim:cuda:80"):
        made = kernel[grid](x, y, n, BLOCK=1024)                   # arrays of the host, changed in place
    kernel[grid](x, y, n, BLOCK=1024, target="sim:cuda:80")        # the same
    weft.compile("kernel.ttgir", target="sim:cuda:80")[grid](x, y, n)
    print(made.report, made.asm["ptx"], made.metadata.num_warps)   # what it did; the kernel of cuda:80

Each kernel keeps its programs, by specialisation, options and target.  The texts and the facts of the kernel as it is
compiled for the GPU are made when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any

from weft import compiler
from weft.base import DeviceAssertionError, LaunchError, LaunchTypeError, load, shortened
from weft.base.remarks import Remarks
from weft.compiler.backends import backend_of
from weft.ir.lane import ELEMENT_BITS, LaneProgram, Parameter, text_of
from weft.sim import Report, SimulationError, count, last_run, libdevice, run

from .binder import grid_of
from .hosted import flattened, launched
from .made_maps import described
from .views import numpy_view
from .wrapping import warn_of_wrapping


def _in_the_library(symbol: str) -> Any:
    """What runs a function of libdevice on arrays; imported when the simulator meets one that it does not know."""
    return load("weft.backends.llvm.evaluate").find(symbol)


libdevice.extend(_in_the_library)


def launch(kernel: Any, target: str, grid: Any, /, *args: Any, **kwargs: Any) -> SimulatedLaunch | None:
    """Run a JITFunction over a grid in the simulator: the kernel, with the report of what it did.

    None where a hook says that there is to be no kernel.
    """
    launches: list[SimulatedLaunch] = []

    def fire(simulated: SimulatedKernel, sizes: tuple[int, int, int], values: tuple[Any, ...]) -> None:
        launches.append(simulated.run(sizes, values))

    return None if launched(kernel, target, grid, fire, args, kwargs) is None else launches[0]


def compiled(source: Any, target: str, options: Mapping[str, Any], compile: Callable[..., Any]) -> SimulatedKernel:
    """A source compiled for a simulated target, to be launched; `compile` makes the kernel of the GPU."""
    source.hash()  # making it notes what the kernel captures
    wrapped: list[Mapping[str, Any]] = []

    def told(offsets: Iterable[Mapping[str, Any]]) -> None:
        wrapped.extend(offsets)
        warn_of_wrapping(wrapped)

    def made(options: Mapping[str, Any], told: Any) -> SimulatedKernel:
        program = compiler.lane_program(source, target, options, told)
        on_gpu = partial(compile, source, target.removeprefix("sim:"), options)
        plain = partial(made, {**options, "made_tensors": False}, None)
        return SimulatedKernel(source, program, on_gpu, wrapped, plain)

    return made(options, told)


class SimulatedKernel:
    """A kernel for a simulated target, made by `weft.compile` or `kernel.warmup`.

    `kernel[grid](*args)` takes the values of the parameters that are no constexprs, in order, and gives the launch with
    its report; `count` says the same of a launch without running it.  What else it is asked for is answered by the
    kernel of the GPU, `on_gpu`.
    """

    def __init__(
        self,
        src: Any,
        program: LaneProgram,
        compile: Callable[[], Any],
        wrapped: Sequence[Mapping[str, Any]] = (),
        plain: Callable[[], SimulatedKernel] | None = None,
    ) -> None:
        self.src = src
        self.program = program
        self.wrapped = tuple(wrapped)
        """Offsets that are known to wrap, as plain data (`weft.analysis.wrapped_offsets`)."""
        self.name = program.name
        self._compile, self._make_plain = compile, plain
        backend = backend_of(program.machine)
        stages = ("source", "ttir", "ttgir", *backend.shown, *backend.codes)
        later: dict[str, Callable[[], Any]] = {name: partial(self._text, name) for name in stages}
        self.asm = compiler.AsmDict({}, later={"lane": lambda: text_of(program), **later})

    @cached_property
    def on_gpu(self) -> Any:
        """The kernel as it is compiled for the GPU, without one; made when it is first asked for."""
        return self._compile()

    @cached_property
    def plain(self) -> SimulatedKernel:
        """The kernel without tensors that a launch makes of several arguments; the kernel itself if it has none, or if
        a Gluon kernel describes them itself."""
        if not self._has_made or self._make_plain is None:
            return self
        plain = self._make_plain()
        return self if plain._has_made else plain

    @property
    def _has_made(self) -> bool:
        return any(p.made is not None for p in self.program.parameters)

    def run(self, sizes: tuple[int, int, int], values: Sequence[Any]) -> SimulatedLaunch:
        """A launch with the values of its parameters; one of `plain` where they describe no tensor that there is a map
        for."""
        try:
            return SimulatedLaunch(self, _run(self.program, sizes, values))
        except LaunchError:
            if self.plain is self:
                raise
            return self.plain.run(sizes, values)

    def _text(self, stage: str) -> Any:
        return self.on_gpu.asm[stage]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_compile", "_make_plain", "on_gpu", "plain"):
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")
        return getattr(self.on_gpu, name)

    def __getitem__(self, grid: Any) -> Any:
        """The launcher for a grid."""
        return shortened(lambda *args: self.run(grid_of(grid), args))

    def count(self, grid: Any, **scalars: int | float) -> Report:
        """What a launch over a grid would count, for these values of scalar parameters (see `weft.sim.count`)."""
        return count(self.program, grid_of(grid), scalars)

    @cached_property
    def remarks(self) -> Remarks:
        """What the compiler decided about this kernel and why; see `weft.remarks`."""
        return self.program.remarks.collected()

    @property
    def layouts(self) -> list[Any]:
        """The layouts of its tiles, each with what shows it on the layout page; see `weft.view.LayoutLink`."""
        return list(load("weft.view").links_of(self.remarks, ELEMENT_BITS))

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that each program needs."""
        return self.program.shared_bytes

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class SimulatedLaunch:
    """A launch in the simulator: the `kernel`, and the `report` of what it did.

    Either one's names are its own: `made.asm["ptx"]`, `made.n_regs`, `made.kinds`, `made["global_load_sectors"]`.
    """

    def __init__(self, kernel: SimulatedKernel, report: Report) -> None:
        self.kernel = kernel
        self.report = report

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("kernel", "report"):
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")
        return getattr(self.report if hasattr(self.report, name) else self.kernel, name)

    def __getitem__(self, asked: Any) -> Any:
        """A counter by its name; for a grid, the launcher of the kernel."""
        return self.report[asked] if isinstance(asked, str) else self.kernel[asked]

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def _run(program: LaneProgram, sizes: tuple[int, int, int], values: Sequence[Any]) -> Report:
    """Launch with the values of the parameters; what the program printed is printed."""
    arguments = _arguments(program, values)
    try:
        report = run(program, sizes, arguments)
    except (SimulationError, DeviceAssertionError) as error:
        _show(last_run())
        raise error.with_traceback(None) from None  # where in the simulator it was found says nothing
    _show(report)
    return report


def _show(report: Report) -> None:
    for line in report.printed:
        print(line)


def _arguments(program: LaneProgram, values: Sequence[Any]) -> dict[str, Any]:
    """Values by the program's parameters: a descriptor is several of them."""
    made = [p for p in program.parameters if p.made is not None]
    parameters = [p for p in program.parameters if p.made is None]
    parts = flattened(values, lambda at: at < len(parameters) and parameters[at].elem == "tensormap")
    if len(parts) != len(parameters):
        names = ", ".join(p.name for p in parameters)
        raise LaunchTypeError(f"{len(parts)} arguments were given, the kernel takes {len(parameters)}: {names}")
    arguments = {p.name: _argument(p, v) for p, v in zip(parameters, parts, strict=True)}
    plain = [arguments[p.name] for p in parameters if p.elem != "tensormap"]
    return arguments | {p.name: described(p, plain) for p in made}


def _argument(parameter: Parameter, value: Any) -> Any:
    """An array of the host, or that of a descriptor, as NumPy's and in the same memory; a number as it is."""
    if parameter.elem == "ptr":
        return numpy_view(value, parameter.name)
    if parameter.elem == "tensormap":
        described = copy(value)
        object.__setattr__(described, "base", numpy_view(value.base, parameter.name))
        return described
    return value
