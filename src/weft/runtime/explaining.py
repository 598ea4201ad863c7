"""Explanations of launches: arguments bound as a launch binds them, the kernel compiled, and handed to `weft.explain`.

e = kernel.explain(x, out, 1000, BLOCK=1024, grid=(64,), target="cuda:90")
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from weft import compiler, explain as room
from weft.base import CompilationError, LaunchError, OutOfResources, Span, WeftError
from weft.explain import Explanation, Launch
from weft.explain.costs import devices_of
from weft.ir.lane import ELEMENT_BITS
from weft.language.keys import is_constexpr_value
from weft.machines import DEFAULT, machine_of
from weft.sim.memory import bytes_at

from . import compiling
from .again import Again, arguments_by_name
from .arrays import array_facts, is_array, may_be_on_gpu, meet
from .autotuner import Autotuner
from .binder import asked_grid, grid_of
from .calibrating import calibrated
from .descriptor import TensorDescriptor
from .hosted import flattened
from .launch import runtime_leaves
from .rules import Heuristics
from .simulate import SimulatedKernel
from .specialize import leaf_at
from .tensors import MockTensor, looks_like_dtype
from .watching import SIMULATED, Watched
from .wrapping import told_of_wrapping

COUNTED = f"{SIMULATED}{DEFAULT.name}"
"""The machine for which kernels of the CPU are counted."""
OPTIONS = ("num_warps", "num_stages", "num_ctas")


def explain(
    kernel: Any, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any], changes: Mapping[str, Any] | None = None
) -> Explanation:
    """The explanation of a launch of a kernel, or of what computes some of its arguments.

    `changes` take the place of arguments and options, and of what a decorator computes.
    """
    given, kwargs = (kernel, args, kwargs), dict(kwargs)
    if changes:
        kwargs, args = {**arguments_by_name(kernel, args, kwargs), **changes}, ()
    while not hasattr(kernel, "_compile_for"):
        kernel, kwargs = _inner(kernel, args, kwargs)
        kwargs.update(changes or {})
    asked = kwargs.pop("target", None) if "target" not in kernel.arg_names else None
    args = [MockTensor.wrap_dtype(value) for value in args]
    kwargs = {name: MockTensor.wrap_dtype(v) if looks_like_dtype(v) else v for name, v in kwargs.items()}
    bound, options = kernel._bind(*args, **kwargs)
    names = kernel.arg_names
    target = (asked or _target_of(kernel, bound)).removeprefix(SIMULATED)
    simulated = f"{SIMULATED}{target}" if f"{SIMULATED}{target}" in compiler.SIMULATED else target
    with compiling.target(simulated):
        compiled_before = len(kernel.compiled_for)
        bound = tuple(map(_on_host, bound))
        made = kernel._compile_for(bound, options, warmup=True)
        del kernel.compiled_for[compiled_before:]  # whoever asks why it was compiled means launches
    named = dict(zip(names, bound, strict=True))
    sizes = grid_of(asked_grid(grid, named) if callable(grid) else grid)
    values = [leaf_at(bound, path) for path, _ in runtime_leaves(list(made.src.signature.values()))]
    texts = _texts(named, made.src.signature)
    outer, outer_args, outer_kwargs = given
    named_target = {} if "target" in names else {"target": target}
    again = Again(explain, outer, outer_args, grid, {**outer_kwargs, **named_target, **(changes or {})})
    like = _for_memory(kernel, bound, options) if target == "cpu" else None
    return replace(explained(made, target, sizes, values, texts, kernel, like), again=again)


def _for_memory(kernel: Any, bound: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """The same kernel as a lane program of one warp, of which it can be counted what goes to and from memory; None
    where there is none."""
    compiled_before = len(kernel.compiled_for)
    try:
        with compiling.target(COUNTED):
            made = kernel._compile_for(bound, {**options, "num_warps": 1}, warmup=True)
    except (CompilationError, OutOfResources):
        return None
    finally:
        del kernel.compiled_for[compiled_before:]
    return made if isinstance(made, SimulatedKernel) else None


class _Elsewhere(MockTensor):
    """What stands for an array in the memory of a GPU: its type, its shape, and how its address is aligned."""

    device = "cpu"

    def __init__(self, dtype: Any, shape: Any, address: int) -> None:
        super().__init__(dtype, shape)
        self._address = address

    def data_ptr(self) -> int:  # type: ignore[override]
        """The address, which is only looked at."""
        return self._address


def _on_host(value: Any) -> Any:
    """An argument as it is, but for arrays that are on a GPU, and need not be read."""
    if isinstance(value, tuple):
        parts = [_on_host(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if hasattr(value, "block_shape") and hasattr(value, "base"):
        described = copy(value)
        object.__setattr__(described, "base", _on_host(value.base))
        return described
    if not may_be_on_gpu(value) or isinstance(value, MockTensor) or not is_array(value):
        return value
    facts = array_facts(value)
    if facts is None or facts.device is None:
        return value
    shape = getattr(value, "shape", None)
    return _Elsewhere(facts.element, shape if shape is not None else (1,), facts.address)


def _target_of(kernel: Any, bound: tuple[Any, ...]) -> str:
    """The target of a launch for which none is said: that of the GPU where its arrays are, or of launches."""
    if compiling.asked() is None and any(map(may_be_on_gpu, bound)) and kernel.is_for_gpu(bound):
        return str(kernel._on_gpu().target_for(bound))
    return compiling.current_target()


def predicted(kernel: Any, arguments: Mapping[str, Any]) -> float:
    """Microseconds that a launch is predicted to take, for the autotuner; infinite where it cannot be run.

    LaunchError for a target whose times are not predicted.
    """
    arguments = {name: value for name, value in arguments.items() if name != "warmup"}
    grid = arguments.pop("grid")
    try:
        e = explain(kernel, (), grid, arguments)
    except (CompilationError, OutOfResources):
        return math.inf
    machine = machine_of(e.target) if e.target != "cpu" else None
    if machine is not None and e.occupancy is not None and e.occupancy.shared_bytes > machine.shared_bytes:
        return math.inf
    if e.time is None:
        why = f": {e.counts.note}" if e.counts.note else ""
        raise LaunchError(
            f'perf_model is "prediction", and no time is predicted for {e.target}{why}',
            hint="give a function as perf_model, or leave it out and measure",
        )
    return e.time.microseconds


def explained(
    made: Any,
    target: str,
    grid: tuple[int, int, int],
    values: Sequence[Any],
    arguments: Mapping[str, str],
    kernel: Any = None,
    like: Any = None,
) -> Explanation:
    """The explanation of a compiled kernel, launched over a grid with the values of its parameters; of one for the CPU
    with `like`, the same kernel for a machine whose programs can be counted."""
    span = Span(kernel.file_name, kernel.starting_line_number, 0) if kernel is not None else None
    if not isinstance(made, SimulatedKernel):
        options = {name: int(getattr(made.metadata, name)) for name in OPTIONS if hasattr(made.metadata, name)}
        launch = Launch(made.name, target, span, grid, arguments, options, rates=calibrated())
        if like is None:
            return room.explanation(launch, made.remarks)
        program = like.program
        facts = _scalars(program, values), _sizes(program, values), _data(program, values, like.metadata.stored_params)
        launch = replace(
            launch, scalars=facts[0], sizes=facts[1], data=facts[2], overlapping=_overlapping(made, program, values),
            wrapped=tuple(told_of_wrapping(each) for each in like.wrapped),
        )  # fmt: skip
        return room.explanation(launch, made.remarks, like=program)
    made = _launched(made, values)
    program = made.program
    registers, spills, image, texts = _assembled(made)
    options = {"num_warps": program.warps, "num_ctas": program.blocks}
    if stages := getattr(made.metadata, "num_stages", 0):
        options["num_stages"] = int(stages)
    scalars, sizes = _scalars(program, values), _sizes(program, values)
    wrapped = tuple(told_of_wrapping(facts) for facts in made.wrapped)
    data = _data(program, values, made.metadata.stored_params)
    device = compiling.asked_device()
    known = devices_of(program.machine)
    if device and device not in known:
        raise LaunchError(
            f"no times of a device {device!r} are known for {target}", hint=f"known are {', '.join(known)}"
        )
    launch = Launch(
        made.name, target, span, grid, arguments, options, scalars, sizes, registers, spills, wrapped, image=image,
        texts=texts, device=device, data=data, is_gluon=kernel is not None and kernel.is_gluon(),
    )  # fmt: skip
    return room.explanation(launch, made.remarks, program)


def _launched(made: SimulatedKernel, values: Sequence[Any]) -> SimulatedKernel:
    """The kernel that a launch with these values runs: where they describe no tensor that there is a map for (a size of
    0, a negative stride), the one whose threads load through pointers."""
    parameters, scalars = made.program.parameters, _scalars(made.program, values)
    plain = [p for p in parameters if p.elem != "tensormap"]
    given = {i: scalars.get(p.name, 0) for i, p in enumerate(plain) if p.elem == "ptr" or p.name in scalars}
    numbers = {i: 0 if isinstance(x, float) else int(x) for i, x in given.items()}  # no map is made of a float
    made_of = [p.made for p in parameters if p.made is not None]
    if not all(numbers.keys() >= set(tensor.numbers) for tensor in made_of):
        return made  # of IR as text, whose numbers need not be given
    try:
        for tensor in made_of:
            tensor.parts(numbers)
    except ValueError:
        return made.plain
    return made


def _overlapping(made: Any, program: Any, values: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """The names of arrays that overlap in a way a kernel for the CPU was compiled not to expect."""
    names = [p.name for p in program.parameters]
    found = []
    for i, j, strict, step, low, width in made.metadata.alias_pairs if len(names) == len(values) else ():
        if any(isinstance(value, MockTensor) or not is_array(value) for value in (values[i], values[j])):
            continue
        first, second = array_facts(values[i]), array_facts(values[j])
        if first is None or second is None:
            continue
        distance = second.address - first.address
        apart = (not strict and not distance) or (step and (distance - low) % step > width)
        if not apart and meet(values[i], values[j], distance):
            found.append((names[i], names[j]))
    return tuple(found)


def of_compiled(made: Any, target: str, grid: Any, numbers: Mapping[str, int | float]) -> Explanation:
    """The explanation of what `weft.compile` made of IR as text; numbers among its arguments are given by name."""
    parameters = made.program.parameters if isinstance(made, SimulatedKernel) else ()
    names = [p.name for p in parameters]
    unknown = sorted(numbers.keys() - set(names))
    if unknown:
        raise LaunchError(f"there is no argument `{unknown[0]}`", hint=f"the kernel takes {', '.join(names)}")
    values = [numbers.get(name) for name in names]
    types = {p.name: f"*{p.pointee}" if p.pointee else f"a number of {p.elem} that is not given" for p in parameters}
    texts = {name: str(numbers.get(name, types[name])) for name in names}
    return explained(made, target, grid_of(grid), values, texts)


class Launches(Watched):
    """A `with` in which launches are explained and not done: `explanations`, those that are alike once.

    with Launches("cuda:90") as launches:
        main()                              # arrays stay as they are
    """

    def __init__(self, target: str, name: str | None = None) -> None:
        super().__init__(target, name)
        self._found: dict[Any, Explanation] = {}

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """In the order of the launches."""
        return tuple(self._found.values())

    def note(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        bound, options = kernel._bind(*args, **{n: v for n, v in kwargs.items() if n != "target"})
        named = dict(zip(kernel.arg_names, bound, strict=True))
        sizes = grid_of(asked_grid(grid, named) if callable(grid) else grid)
        given = tuple((name, _text(value, type(value).__name__)) for name, value in named.items())
        key = (kernel, sizes, given, str(sorted(options.items())))
        if key not in self._found:
            self._found[key] = explain(kernel, args, grid, {**kwargs, "target": self.target})


def _inner(kernel: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The kernel that a decorator is around, and the arguments that it gives it."""
    if isinstance(kernel, Heuristics):
        return kernel.fn, kernel.completed(args, kwargs)
    if isinstance(kernel, Autotuner):
        configs = kernel.configs
        if len(configs) != 1:
            raise LaunchError(
                f"{len(configs)} configurations are tuned: which is to be explained is not known",
                hint="kernel.fn.explain(..., **config.all_kwargs()) explains one of kernel.configs",
            )
        return kernel.fn, {**kwargs, **configs[0].all_kwargs()}
    raise LaunchError(f"a {type(kernel).__name__} cannot be explained", hint="explain the kernel that it launches")


def _assembled(made: SimulatedKernel) -> tuple[int | None, int | None, bytes, Mapping[str, Any]]:
    """Registers of a thread, words that it spills, the machine code and the texts that it was made of; None and nothing
    where there is no assembler."""
    try:
        gpu = made.on_gpu
        return int(gpu.n_regs), int(gpu.n_spills), bytes(gpu.machine_code), gpu.asm
    except (WeftError, OSError):
        return None, None, b"", {}


def _scalars(program: Any, values: Sequence[Any]) -> dict[str, int | float]:
    """The numbers among the values, by the names that the program has for them."""
    parameters = [p for p in program.parameters if p.made is None]
    parts = flattened(values, lambda at: at < len(parameters) and parameters[at].elem == "tensormap")
    pairs = zip(parameters, parts, strict=False)
    return {p.name: _number(v) for p, v in pairs if isinstance(v, (bool, int, float, np.number)) and p.elem != "ptr"}


def _sizes(program: Any, values: Sequence[Any]) -> dict[str, int]:
    """Bytes of the arrays among the values that say their shape."""
    parameters = [p for p in program.parameters if p.made is None]
    parts = flattened(values, lambda at: at < len(parameters) and parameters[at].elem == "tensormap")
    sizes = {}
    for parameter, value in zip(parameters, parts, strict=False):
        array = getattr(value, "base", value) if parameter.elem == "tensormap" else value
        shape = getattr(array, "shape", None)
        if parameter.elem in ("ptr", "tensormap") and shape is not None and list(shape) != [1]:
            sizes[parameter.name] = math.prod(shape) * max(1, ELEMENT_BITS.get(parameter.pointee, 8) // 8)
    plain = [p.name for p in parameters if p.elem != "tensormap"]
    made = {p.name: plain[p.made.base] for p in program.parameters if p.made is not None}
    return sizes | {name: sizes[base] for name, base in made.items() if base in sizes}


def _data(program: Any, values: Sequence[Any], stored: Sequence[int]) -> dict[str, Any]:
    """The bytes of arrays among the values that are in this process' memory and that the program does not write.

    `stored` counts parameters of tile IR, where a descriptor is itself, its shape and its strides. What descriptors
    describe is left out: it is loaded for products, not for addresses.
    """
    parameters = [p for p in program.parameters if p.made is None]
    maps = {i for i, p in enumerate(parameters) if p.elem == "tensormap"}
    found = {}
    at, place = 0, 0
    for value in values:
        parts = flattened([value], {i - place for i in maps}.__contains__)
        if len(parts) == 1 and place < len(parameters) and parameters[place].elem == "ptr" and at not in stored:
            facts = None if isinstance(value, MockTensor) or not is_array(value) else array_facts(value)
            if facts is not None and facts.device is None and facts.span[0] == 0 < facts.span[1]:
                found[parameters[place].name] = bytes_at((value, facts), facts.address, facts.span[1])
        at += 1 + 2 * len(value.shape) if isinstance(value, TensorDescriptor) else 1
        place += len(parts)
    return found


def _number(value: Any) -> int | float:
    plain: int | float = value.item() if isinstance(value, np.number) else value
    return plain


def _texts(named: Mapping[str, Any], signature: Mapping[str, Any]) -> dict[str, str]:
    """Arguments for people: arrays as their types, with their shapes if they have some."""
    return {name: _text(value, signature.get(name, "")) for name, value in named.items()}


def _text(value: Any, kind: Any) -> str:
    value = value.value if is_constexpr_value(value) else value
    if kind == "constexpr" or isinstance(value, (bool, int, float, str, np.number)):
        return repr(value) if not hasattr(value, "__name__") else str(value.__name__)
    shape = getattr(value, "shape", None)
    sizes = "x".join(map(str, shape)) if shape is not None and list(shape) != [1] else ""
    return f"{kind}[{sizes}]" if sizes else str(kind)
