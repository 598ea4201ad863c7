"""From a compiled kernel to a function that launches it: the format of its argument slots, and what is checked first.

    fire = make_fire(kernel, leaves)            # fire(gx, gy, gz, v0, v1, ...)
    guard = make_guard(kernel, ...)             # guard(x, y, ..., v0, v1, ...) -> may it run as it was compiled?

`v0, v1, ...` are what the binder took from the arguments: addresses, numbers, tuples of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from weft.base import LaunchError, LaunchOverflowError, LaunchTypeError, load
from weft.ops import BY_LANGUAGE

from . import knobs
from .arrays import array_facts, is_plain_tensor, meet
from .binder import grid_of, handler_for
from .specialize import leaves

Leaf = tuple[tuple[int, ...], str]
"""Where a value is (parameter, index in a tuple, ...) and its type in the signature."""
MapMaker = tuple[Callable[[Any], tuple[Any, ...]], str]
"""What makes the slots of an argument that is a descriptor, for a kernel that takes tensor maps of it, from what the
argument was bound to; and the codes of the slots."""

_SMALL_FLOATS = frozenset(name for name, e in BY_LANGUAGE.items() if e.is_float and e.bits < 32)


def _bits_of(name: str) -> Callable[[Any], int]:
    """Numbers as the bits of a small float type, most of which come with a package of their own."""
    function: Callable[[Any], int] = load("weft.runtime.small_floats").bits_of(name)
    return function


def _single(value: float) -> float:
    """A Python float as the nearest single, infinite where it is too large."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def descriptor_rank(type_name: str) -> int:
    """The rank of a descriptor type: tensordesc<fp16[64, 64]> has 2, tensordesc_im2col<...,4> has 4."""
    if type_name.startswith("tensordesc_im2col"):
        return int(type_name.removesuffix(">").rpartition(",")[2])
    match = re.search(r"\[([^\]]*)\]", type_name)
    return len(match[1].split(",")) if match else 0


def runtime_leaves(signature: Sequence[Any]) -> list[Leaf]:
    """The values that a kernel gets at run time: every leaf of the signature that is not constant."""
    return [(path, name) for path, name in leaves(tuple(signature)) if name != "constexpr"]


def _at(path: tuple[int, ...]) -> str:
    return f"v{path[0]}" + "".join(f"[{i}]" for i in path[1:])


def make_fire(
    kernel: Any,
    leaves: Sequence[Leaf],
    count: int | Sequence[int],
    launcher: Callable[[str], Callable[..., None]] | None = None,
    maps: Sequence[MapMaker | None] = (),
    made_maps: Sequence[Any] = (),
    instead: Callable[[], Callable[..., None]] | None = None,
) -> Callable[..., None]:
    """A function (gx, gy, gz, *values); `count` says which parameters the values are of.

    A kernel that checks its accesses takes the limits of its arrays after them (see `limits_of`). `launcher` makes
    what takes the slots of a launch, from their codes; that of the loaded kernel if none is given. `maps` make the
    tensor maps of descriptors, one for each of them in order, or None for one that has none. `made_maps` are those of
    tensors that no argument describes (made_maps.py), which come last; where there is none for the values of a launch,
    it is done as `instead` gives it.
    """
    names = [f"v{i}" for i in (range(count) if isinstance(count, int) else count)]
    codes, arguments, described = [], [], 0
    slots: list[str] = []  # of a launch, as source, but for maps
    spaces: dict[str, Any] = {"__name__": __name__, "single": _single}  # a frame of Weft: see `base/frames.py`
    for path, name in leaves:
        value = _at(path)
        if name.startswith("*"):
            code = "Q"
        elif name.startswith("tensordesc"):
            made = maps[described] if maps else None
            described += 1
            code, value = "Q" + "q" * (1 + 2 * descriptor_rank(name)), f"*{value}"
            if made is not None:
                maker = f"map{described}"
                (spaces[maker], code), value = made, f"*{maker}({_at(path)})"
        elif name == "fp32":
            code = "f4x"
            value = f"{value} if -3.4028234e38 <= {value} <= 3.4028234e38 else single({value})"
        elif name == "fp64":
            code = "d"
        elif name in _SMALL_FLOATS:
            code, value = "Q", f"to_{name}({value})"
            spaces[f"to_{name}"] = _bits_of(name)
        elif name in ("u1", "i1"):
            code, value = "q", f"1 if {value} else 0"
        elif name == "u64":
            code = "Q"
        elif name[:1] in "iu" and name[1:].isdigit():
            code = "q"
        else:
            raise LaunchTypeError(f"an argument of type {name} cannot be passed to a kernel")
        codes.append(code)
        arguments.append(value)
        is_described = name.startswith("tensordesc")
        slots += [f"{_at(path)}[{k}]" for k in range(slots_of(name))] if is_described else [value]
    for k in range(2 * len(kernel.metadata.checked)):
        codes.append("q")
        arguments.append(f"l{k}")
        names.append(f"l{k}")
    lookups = []
    for k, by_values in enumerate(made_maps):
        spaces[f"made{k}"] = by_values
        lookups.append(f"made{k}[{', '.join(slots[n] for n in by_values.numbers)},]")
        codes.append("128s")
        arguments.append(f"m{k}")
    launch = (launcher or kernel.load().launcher)("".join(codes))
    if arguments == names:
        return launch
    spaces["launch"] = launch
    if made_maps:
        assert instead is not None
        called = f"launch(x, y, z, {', '.join(arguments)})"
        fire: Callable[..., None] = load("weft.runtime.made_maps").fire_with(called, names, lookups, spaces, instead)
        return fire
    source = f"lambda x, y, z{''.join(', ' + n for n in names)}: launch(x, y, z{''.join(', ' + g for g in arguments)})"
    return eval(source, spaces)  # type: ignore[no-any-return]


def enter_hooks(kernel: Any, grid: tuple[int, ...], args: Iterable[Any]) -> Any:
    """Call the hook before a launch; what both hooks are told."""
    told = kernel.launch_metadata(grid, None, *args)
    if hook := knobs.runtime.launch_enter_hook:
        hook(told)
    return told


def leave_hooks(told: Any) -> None:
    """Call the hook after a launch."""
    if hook := knobs.runtime.launch_exit_hook:
        hook(told)


def limits_of(kernel: Any, leaves: Sequence[Leaf], args: Sequence[Any]) -> list[int]:
    """For each array that a kernel checks its accesses to, the addresses between which its elements lie."""
    by_slot = positions(leaves)[1]
    limits: list[int] = []
    for checked in kernel.metadata.checked:
        path, _ = by_slot[checked["slot"]]
        array: Any = args
        for i in path:
            array = array[i]
        array = getattr(array, "base", array) if hasattr(array, "block_shape") else array
        facts = array_facts(array)
        if facts is None:
            raise LaunchTypeError(f"argument `{checked['name']}` must be an array, got a {type(array).__name__}")
        low, high = facts.span
        limits += (facts.address + low, facts.address + high)
    return limits


def _refuse_read_only(name: str) -> None:
    raise LaunchError.read_only(name)


def _label(names: Sequence[str], path: Sequence[int]) -> str:
    """A part of an argument as the user would write it: `pair[1]`."""
    return names[path[0]] + "".join(f"[{i}]" for i in path[1:])


def refuse_read_only(kernel: Any, leaves: Sequence[Leaf], names: Sequence[str], args: Sequence[Any]) -> None:
    """LaunchError where an array that the kernel stores to is read-only; `args` are those of the leaves."""
    by_argument = positions(leaves)[0]
    for argument in kernel.metadata.stored_params:
        path = by_argument[argument][0]
        array: Any = args
        for i in path:
            array = array[i]
        if not _writeable(getattr(array, "base", array) if hasattr(array, "block_shape") else array):
            _refuse_read_only(_label(names, path))


def _writeable(array: Any) -> bool:
    facts = array_facts(array)
    return facts is None or facts.writeable


def slots_of(type_name: str) -> int:
    """How many slots of a launch an argument of a type takes."""
    return 2 + 2 * descriptor_rank(type_name) if type_name.startswith("tensordesc") else 1


def positions(leaves: Sequence[Leaf]) -> tuple[dict[int, Leaf], dict[int, Leaf]]:
    """The leaves by their position among the arguments of the tile IR, and among the slots of a launch.

    A descriptor is followed by its shape and strides in the IR, and takes an address, a padding, shape and strides.
    """
    by_argument, by_slot = {}, {}
    argument = slot = 0
    for leaf in leaves:
        by_argument[argument], by_slot[slot] = leaf, leaf
        slots = slots_of(leaf[1])
        argument += max(1, slots - 1)
        slot += slots
    return by_argument, by_slot


class _GuardWriter:
    """Writes the source of a guard, line by line, for arguments of the kinds that `args` are."""

    def __init__(self, leaves: Sequence[Leaf], params: Sequence[str], args: Sequence[Any]) -> None:
        self.lines: list[str] = []
        self.spaces: dict[str, Any] = {}
        self._params, self._args = params, args
        self._by_argument, self._by_slot = positions(leaves)
        self._sizes: dict[str, str] = {}

    def _place(self, leaf: Leaf) -> tuple[str, str, Any]:
        """The array of a pointer or a descriptor and its address, as source; and the array of the first call."""
        path, kind = leaf
        array, address = f"a{path[0]}" + "".join(f"[{i}]" for i in path[1:]), _at(path)
        value: Any = self._args
        for i in path:
            value = value[i]
        if kind.startswith("tensordesc"):
            return f"{array}.base", f"{address}[0]", value.base
        return array, address, value

    def refuse_read_only(self, argument: int) -> None:
        """Look whether an array that the kernel stores to may be written to."""
        leaf = self._by_argument[argument]
        if not leaf[1].startswith(("*", "tensordesc")):
            return
        array, _, value = self._place(leaf)
        label = _label(self._params, leaf[0])
        # Another array of the same elements may be of another class next time: all are asked, one class quickly.
        if type(value) is np.ndarray:
            test = f"{array}.flags.writeable if {array}.__class__ is ndarray else writeable({array})"
        elif is_plain_tensor(value):
            self.spaces[f"class{argument}"] = type(value)  # of those none is read-only
            test = f"{array}.__class__ is class{argument} or writeable({array})"
        else:
            test = f"writeable({array})"
        self.lines.append(f"if not ({test}): refuse({label!r})")

    def _sized(self, slot: int) -> tuple[str, str, str]:
        """The array, its address, and a variable for its size where it is dense and does not run backwards, or None."""
        array, address, value = self._place(self._by_slot[slot])
        if array not in self._sizes:
            self._sizes[array] = f"size{len(self._sizes)}"
            if is_plain_tensor(value):
                text = f"{array}.numel() * {value.element_size()} if {array}.is_contiguous() else None"
            else:
                dense = f"({array}.base is None or {array}.flags.forc)"
                text = f"{array}.nbytes if {array}.__class__ is ndarray and {dense} else None"
            self.lines.append(f"{self._sizes[array]} = {text}")
        return array, address, self._sizes[array]

    def refuse_overlap(self, i: int, j: int, strict: int, step: int, low: int, width: int) -> None:
        """Look whether two arrays overlap; unless `strict`, they may be one and the same. With a `step`, they may
        overlap where their distance, from `low` on and modulo the step, is more than a `width`.
        """
        (x, v, size), (y, w, other) = self._sized(i), self._sized(j)
        self.lines += [
            f"d = {w} - {v}",
            f"if {f'(d - {low}) % {step} <= {width}' if step else 'True'}{'' if strict else ' and d'}:",
            f"    if {size} is not None and {other} is not None:",
            f"        if -{other} < d < {size}: return False",
            f"    elif meet({x}, {y}, d): return False",
        ]


def make_guard(
    kernel: Any,
    leaves: Sequence[Leaf],
    params: Sequence[str],
    args: Sequence[Any],
    values: Sequence[int],
    *,
    alias: bool,
) -> Callable[..., bool] | None:
    """A function (*arguments, *values): false when arrays overlap in a way the code was compiled not to expect.

    It raises when the kernel stores to an array that is read-only.  `args` are the arguments of the first call: the
    kinds of arrays they are decide what has to be looked at.  None when there is nothing to check.  For a kernel that
    checks its accesses it is always false: such a launch takes more than `values`, see `limits_of`.
    """
    writer = _GuardWriter(leaves, params, args)
    for argument in kernel.metadata.stored_params:
        writer.refuse_read_only(argument)
    for pair in kernel.metadata.alias_pairs if alias else ():
        writer.refuse_overlap(*pair)
    checked = bool(kernel.metadata.checked)
    if not writer.lines and not checked:
        return None
    names = [f"a{i}" for i in range(len(params))] + [f"v{i}" for i in values]
    body = "\n    ".join([*writer.lines, f"return {not checked}"])
    spaces: dict[str, Any] = {
        "ndarray": np.ndarray,
        "refuse": _refuse_read_only,
        "writeable": _writeable,
        "meet": meet,
        **writer.spaces,
    }
    exec(f"def guard({', '.join(names)}):\n    {body}\n", spaces)
    return spaces["guard"]  # type: ignore[no-any-return]


def parts_of(kinds: Sequence[Any], name: str, value: Any) -> list[tuple[Any, Any]]:
    """The parts of a tuple with their types. LaunchTypeError for what is no tuple of as many."""
    if isinstance(value, (tuple, list)) and len(value) == len(kinds):
        return list(zip(kinds, value, strict=True))
    shown = f"one of {len(value)}" if isinstance(value, (tuple, list)) else f"a {type(value).__name__}"
    raise LaunchTypeError(f"argument `{name}` was compiled as a tuple of {len(kinds)}, got {shown}", name)


def range_of(kind: str) -> tuple[int, int]:
    """(the least, one more than the greatest) of the integers that an argument of a type may be.

    What is narrower than the 8 bytes of a slot is taken by its bits, with a sign or without.

    >>> range_of("i8"), range_of("u64") == (0, 1 << 64)
    ((-128, 256), True)
    """
    bits = int(kind[1:])
    low, high = -(1 << bits - 1), 1 << bits
    return (low, high) if bits < 64 else (0, high) if kind[0] == "u" else (low, high >> 1)


def plain_value(kind: Any, name: str, value: Any) -> Any:
    """What is handed to a compiled kernel for an argument of a known type; refuses what does not fit it."""
    if not isinstance(kind, str):
        return tuple(plain_value(k, name, v) for k, v in parts_of(kind, name, value))
    if kind == "constexpr":  # in a tuple
        return None
    if kind.startswith("*"):
        fits = hasattr(value, "data_ptr") or array_facts(value) is not None
        expected = "an array"
    elif kind.startswith("tensordesc"):
        fits, expected = hasattr(value, "block_shape"), "a tensor descriptor"
    elif kind[0] in "iu" and kind[1:].isdigit():
        fits, expected = isinstance(value, (int, np.integer, np.bool_)), "an integer"
        low, high = range_of(kind)
        if fits and not low <= int(value) < high:
            raise LaunchOverflowError(f"argument `{name}` is {value}, which does not fit its type {kind}", name)
    else:
        fits, expected = isinstance(value, (int, float, np.number)), "a number"
    if not fits:
        raise LaunchTypeError(
            f"argument `{name}` was compiled as {kind}, so it must be {expected}, got a {type(value).__name__}", name
        )
    return handler_for(value)(value, False, False)[1]


def _classes(value: Any) -> Any:
    """What a guard is written for: the class of an argument, those of the parts of a tuple and of a descriptor."""
    if isinstance(value, tuple):
        return tuple(map(_classes, value))
    return (type(value), type(value.base)) if hasattr(value, "block_shape") else type(value)


def make_launcher(kernel: Any) -> Callable[..., None]:
    """For a CompiledKernel called by itself: (gx, gy, gz, *arguments), with or without the constants."""
    if getattr(kernel.metadata.target, "backend", "cpu") != "cpu":
        launcher: Callable[..., None] = load("weft.runtime.gpu_compiled").make_gpu_launcher(kernel)
        return launcher
    signature = getattr(kernel.src, "signature", None)
    types = list(signature.values()) if signature is not None else list(kernel.metadata.params)
    names = list(signature) if signature is not None else [f"{i}" for i in range(len(types))]
    leaves = runtime_leaves(types)
    fire = make_fire(kernel, leaves, len(types))
    dynamic = [i for i, t in enumerate(types) if t != "constexpr"]
    guards: dict[Any, Callable[..., bool] | None] = {}
    relaxed: list[Callable[..., None]] = []

    def fire_where_arrays_overlap() -> Callable[..., None]:
        """What launches the same kernel compiled without assuming that its arrays do not overlap."""
        if not relaxed:
            compiling = load("weft.runtime.compiling")
            options = {**kernel.given_options, "assume_no_alias": False}
            relaxed.append(
                make_fire(compiling.compile(kernel.src, kernel.metadata.target, options), leaves, len(types))
            )
        return relaxed[0]

    def launch(gx: Any, gy: Any, gz: Any, *args: Any) -> None:
        if len(args) == len(dynamic) != len(types):
            full: list[Any] = [None] * len(types)
            for i, value in zip(dynamic, args, strict=True):
                full[i] = value
            args = tuple(full)
        if len(args) != len(types):
            raise LaunchTypeError(f"{kernel.name} takes {len(types)} arguments, {len(args)} were given")
        values = [
            None if t == "constexpr" else plain_value(t, name, a) for a, t, name in zip(args, types, names, strict=True)
        ]
        classes = tuple(map(_classes, args))
        if classes not in guards:
            guards[classes] = make_guard(kernel, leaves, names, args, dynamic, alias=True)
        guard = guards[classes]
        may_run = guard is None or guard(*args, *(values[i] for i in dynamic)) or kernel.metadata.checked
        launches = fire if may_run else fire_where_arrays_overlap()
        launches(*grid_of((gx, gy, gz)), *values, *limits_of(kernel, leaves, args))

    return launch
