"""Parameters of a kernel that follow from its other arguments: `heuristics`.

@heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@jit
def kernel(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr): ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from weft.base import shortened

from .interface import KernelInterface, PickledByName
from .launches import Choosing, F, Fn, Launchable
from .tuning_checks import RULES, check_kernel, check_mapping, parameters_of


class Heuristics(Choosing[F], PickledByName, KernelInterface[Any]):  # type: ignore[misc]
    """A kernel some of whose parameters follow from others, made by `heuristics`.

    >>> @weft.heuristics({"EVEN": lambda arguments: arguments["n"] % arguments["BLOCK"] == 0})
    ... @weft.jit
    ... def double(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     mask = True if EVEN else i < n
    ...     tl.store(x + i, tl.load(x + i, mask) * 2, mask)
    >>> isinstance(double, Heuristics), double.completed((None, 60), {"BLOCK": 32})
    (True, {'BLOCK': 32, 'EVEN': False})
    """

    decorator = "heuristics"

    def __init__(
        self, fn: Any, arg_names: Sequence[str], values: Mapping[str, Callable[[dict[str, Any]], Any]]
    ) -> None:
        self.fn = fn
        self.values = values
        self.arg_names = list(arg_names)
        self._checked = False

    @shortened
    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the parameters, then launch."""
        kwargs = self.completed(args, kwargs)  # which says what is wrong with the kernel
        return self.fn.run(*args, **kwargs)

    def completed(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, with those that follow from the others."""
        if not self._checked:
            check_kernel(self.fn, "heuristics")
            check_mapping("what heuristics takes", self.values, RULES, all_callable=True)
            self._checked = True
        for name, rule in self.values.items():
            arguments = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
            try:
                kwargs[name] = rule(arguments)
            except KeyError as error:
                names = ", ".join(k for k in arguments if k not in ("grid", "warmup"))
                error.add_note(f"hint: the heuristic of `{name}` asks for {error}; it can ask for {names}")
                raise
        return kwargs


class _Decorator(Protocol):
    """What makes a kernel one with heuristics."""

    def __call__(self, fn: Launchable[Fn] | Choosing[Fn], /) -> Heuristics[Fn]: ...


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> _Decorator:
    """Compute parameters from the other arguments: `{"EVEN": lambda args: args["n"] % args["BLOCK"] == 0}`.

    >>> @weft.heuristics({"EVEN": lambda args: args["n"] % 4 == 0})
    ... @weft.jit
    ... def put(out, n, EVEN: tl.constexpr):
    ...     tl.store(out, 1 if EVEN else 0)
    >>> out = np.zeros(1, np.int32)
    >>> made = put[(1,)](out, 8)
    >>> out
    array([1], dtype=int32)
    """

    def decorate(fn: Any) -> Heuristics[Any]:
        return Heuristics(fn, parameters_of(fn), values)

    return decorate
