"""What everything that can be launched has in common: kernels, and what tunes them."""

from __future__ import annotations

import difflib
import operator
import pickle
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from weft.base import LaunchTypeError, load, shortened
from weft.language.callable import MISSING

from .tensors import MockTensor, looks_like_dtype

if TYPE_CHECKING:
    from weft.explain import Explanation

    from .handed_over import HandedOver

T = TypeVar("T")


class KernelInterface(Generic[T]):
    """Something that can be launched: `kernel[grid](*args)` is `kernel.run(*args, grid=grid, warmup=False)`.

    >>> @weft.jit
    ... def one(x):
    ...     tl.store(x, 1)
    >>> x = np.zeros(1, np.int32)
    >>> _ = one.run(x, grid=(1,), warmup=False)
    >>> isinstance(one, KernelInterface), x
    (True, array([1], dtype=int32))
    """

    run: T

    @shortened
    def warmup(self, *args: Any, grid: Any = MISSING, **kwargs: Any) -> Any:
        """Compile for arguments of these types without launching; element types may stand for arrays."""
        if grid is MISSING:
            near = difflib.get_close_matches("grid", kwargs, 1)
            told = f", and was given `{near[0]}`" if near else ""
            raise LaunchTypeError(f"warmup needs the grid of the launch{told}", hint="kernel.warmup(..., grid=(1,))")
        args = tuple(MockTensor.wrap_dtype(a) for a in args)
        kwargs = {k: MockTensor.wrap_dtype(v) if looks_like_dtype(v) else v for k, v in kwargs.items()}
        return self.run(*args, grid=grid, warmup=True, **kwargs)  # type: ignore[operator]

    @shortened
    def explain(self, *args: Any, grid: Any, **kwargs: Any) -> Explanation:
        """Explain a launch with these arguments without launching: its time, layouts, accesses and findings.

        Arrays may be `weft.like(shape, dtype)`, or element types alone; `target` is a GPU, present or not, or the CPU.
        """
        explained: Explanation = load("weft.runtime.explaining").explain(self, args, grid, kwargs)
        return explained

    @shortened
    def to_gluon(self, *args: Any, **kwargs: Any) -> HandedOver:
        """Write what a launch with these arguments would run as Gluon source, with its layouts, buffers and copies.

        Arguments are those of `explain`, without a grid. `str(source)` is the file, `source.save(path)` writes it,
        `source.kernel` is its kernel. With `package="triton.experimental"` it imports Gluon from Triton.
        """
        source: HandedOver = load("weft.runtime.handing_over").to_gluon(self, args, kwargs)
        return source

    __iter__: ClassVar[None] = None
    """Not one launcher after another without end, which Python makes of `__getitem__`."""

    def __getitem__(self, grid: Any) -> T:
        """The launcher for a grid: a tuple of 1 to 3 sizes, or a function of the arguments by name that returns one."""
        return shortened(lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs))  # type: ignore


class PickledByName:
    """Kernels, and what tunes them, are pickled as functions are, by name: the other process imports the module."""

    def __reduce__(self) -> tuple[Any, ...]:
        function: Any = self
        while isinstance(function, KernelInterface):
            function = function.fn  # type: ignore[attr-defined]
        if function is None:
            raise pickle.PicklingError(f"cannot pickle a {type(self).__name__} whose kernel has lost its function")
        module, name = function.__module__, function.__qualname__
        try:
            named = _named(module, name)
        except (ImportError, AttributeError) as error:
            raise pickle.PicklingError(f"cannot pickle the kernel {name}, which is not in module {module}") from error
        if named is not self:
            raise pickle.PicklingError(f"cannot pickle this kernel: {name} of module {module} is something else")
        return _named, (module, name)

    def __copy__(self) -> Any:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy


def _named(module: str, name: str) -> Any:
    """What a module calls by a dotted name."""
    return operator.attrgetter(name)(load(module))
