"""What parameters of kernels are annotated with, for type checkers: `pointer`, `Scalar`, and what stands for any value.

    @weft.jit
    def scale(x: tl.pointer, n: tl.Scalar, factor: tl.Scalar, BLOCK: tl.constexpr) -> None: ...

A parameter is two things: on the host the array, number or constant that a launch passes, in the kernel a value of the
language. The annotations say of the host's side what it must have (`pointer` has a dtype and a shape, so a list is
refused), and leave the kernel's side open: their base is `Any`, so `n.to(tl.int64)` is accepted of a number.

`constexpr` and the element types are classes and values that annotations name too (`BLOCK: tl.constexpr`,
`n: tl.int32`). Type checkers are told that they are `Any`: a constant may be any Python value, and an instance
(`tl.int32` is one) is no type to them. When programs run, they are what `constants` and `dtypes` define.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

__all__ = ["Scalar", "pointer"]

MYPY = False
"""mypy takes it for true."""

if TYPE_CHECKING:
    import weft.language.anything as anything

    __all__ += ["constexpr", "void", "bfloat16", "float16", "float32", "float64"]
    __all__ += ["float8e4b15", "float8e4b8", "float8e4nv", "float8e5", "float8e5b16", "int1"]
    __all__ += ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

    if MYPY:  # a product with `Any` is `Any` to it, and it warns of a function that returns one

        class Value(anything.value, Protocol):  # type: ignore[misc]
            """Any value, as there is nothing that it must have, and fit for all, as its base is `Any`."""

        class constexpr(anything.value, Protocol):  # type: ignore[misc]
            """Any value, in the same way. Where a call makes one it is `Any`: no `__init__` says how."""

            __init__: Any

    else:
        Value: TypeAlias = anything.Value
        constexpr: TypeAlias = anything.constexpr
    const: TypeAlias = anything.const
    void: TypeAlias = anything.void
    bfloat16: TypeAlias = anything.bfloat16
    float16: TypeAlias = anything.float16
    float32: TypeAlias = anything.float32
    float64: TypeAlias = anything.float64
    float8e4b15: TypeAlias = anything.float8e4b15
    float8e4b8: TypeAlias = anything.float8e4b8
    float8e4nv: TypeAlias = anything.float8e4nv
    float8e5: TypeAlias = anything.float8e5
    float8e5b16: TypeAlias = anything.float8e5b16
    int1: TypeAlias = anything.int1
    int8: TypeAlias = anything.int8
    int16: TypeAlias = anything.int16
    int32: TypeAlias = anything.int32
    int64: TypeAlias = anything.int64
    uint8: TypeAlias = anything.uint8
    uint16: TypeAlias = anything.uint16
    uint32: TypeAlias = anything.uint32
    uint64: TypeAlias = anything.uint64

    class pointer(anything.value, Protocol):  # type: ignore[misc]
        """An array on the host, a pointer to its elements in the kernel."""

        @property
        def dtype(self) -> Any: ...
        @property
        def shape(self) -> Any: ...
        def __add__(self, offset: Any, /) -> Value: ...
        def __sub__(self, offset: Any, /) -> Value: ...

    class Scalar(anything.value, Protocol):  # type: ignore[misc]
        """A number: what int, float and the scalars of NumPy have in common, and arrays lack (`__round__`)."""

        def __add__(self, other: Any, /) -> Value: ...
        def __radd__(self, other: Any, /) -> Value: ...
        def __sub__(self, other: Any, /) -> Value: ...
        def __rsub__(self, other: Any, /) -> Value: ...
        def __mul__(self, other: Any, /) -> Value: ...
        def __rmul__(self, other: Any, /) -> Value: ...
        def __truediv__(self, other: Any, /) -> Value: ...
        def __floordiv__(self, other: Any, /) -> Value: ...
        def __mod__(self, other: Any, /) -> Value: ...
        def __neg__(self) -> Value: ...
        def __lt__(self, other: Any, /) -> Value: ...
        def __le__(self, other: Any, /) -> Value: ...
        def __gt__(self, other: Any, /) -> Value: ...
        def __ge__(self, other: Any, /) -> Value: ...
        def __round__(self) -> Value: ...

    class tensor_descriptor(anything.value, Protocol):  # type: ignore[misc]
        """A `weft.TensorDescriptor` on the host, a `tl.tensor_descriptor` in the kernel."""

        @property
        def shape(self) -> Any: ...
        @property
        def strides(self) -> Any: ...
        @property
        def block_shape(self) -> Any: ...

else:

    class pointer:
        """Annotates a parameter that takes an array: in the kernel it is a pointer to the first element.

        It is for type checkers, which then report a launch that passes a list. It has no other effect.

        >>> @weft.jit
        ... def double(x: tl.pointer):
        ...     i = tl.arange(0, 4)
        ...     tl.store(x + i, tl.load(x + i) * 2)
        >>> x = np.ones(4, np.float32)
        >>> made = double[(1,)](x)
        >>> x
        array([2., 2., 2., 2.], dtype=float32)
        """

    class Scalar:
        """Annotates a parameter that takes a number, whose type in the kernel is that of the argument.

        It is for type checkers, which then refuse a launch that passes an array or a string, and changes nothing else;
        `n: tl.int64` would fix the type.

        >>> @weft.jit
        ... def fill(x: tl.pointer, value: tl.Scalar):
        ...     tl.store(x + tl.arange(0, 4), value)
        >>> x = np.zeros(4, np.float32)
        >>> made = fill[(1,)](x, 2.5)
        >>> x
        array([2.5, 2.5, 2.5, 2.5], dtype=float32)
        """
