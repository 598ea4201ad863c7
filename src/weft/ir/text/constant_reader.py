"""Numbers, and constants of many numbers, read from text.

    array<i32: 1, 0>   dense<0.0> : tensor<8xf32>   dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>   dense<"0x00FF"> : ...

A float in hexadecimal is its bits, kept as they are: a NaN keeps its payload.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import builtin
from xdsl.ir import Attribute

from ..attrs import splat_attr
from ..types import is_float, is_tensor
from .tokens import unescape
from .type_reader import TypeReader
from .types import type_text

DENSE = "a tensor of constants is dense<0.0> : tensor<64xf32>, or dense<[1, 2]> : tensor<2xi32>"


class ConstantReader(TypeReader):
    """A cursor that reads types and constants."""

    __slots__ = ()

    def _number_of(self, text: str, type: Attribute, at: int) -> Attribute:
        if isinstance(type, builtin.IntegerType | builtin.IndexType):
            value = self._int_of(text, type, at)
            return builtin.IntegerAttr(value, type)
        if not is_float(type) or is_tensor(type):
            self.fail(
                f"{type_text(type)} is not the type of a number",
                at,
                "write 1 : i32, 0.5 : f32 or dense<0> : tensor<64xi32>",
            )
        return builtin.FloatAttr(self._float_of(text, type, at), type)  # type: ignore

    def _int_of(self, text: str, type: Attribute, at: int) -> int:
        if "." in text or len(text) > 40:
            self.fail(
                f"expected an integer, found '{text[:40]}'", at, f"floats have types of floats, {text[:40]} : f32"
            )
        value = int(text, 16 if "0x" in text else 10)
        width = 64 if isinstance(type, builtin.IndexType) else type.width.data  # type: ignore[attr-defined]
        if not -(1 << max(width - 1, 0)) <= value < 1 << width:
            low, high = -(1 << max(width - 1, 0)), (1 << width) - 1
            wider = "; use a wider type" if width < 64 else ""
            holds = f"{type_text(type)} holds {low} to {high}, signed or unsigned{wider}"
            self.fail(f"{text} does not fit in {type_text(type)}", at, holds)
        return value

    def _float_of(self, text: str, type: Attribute, at: int) -> float:
        if "0x" in text:
            return float(type.unpack(self._bits_of(text, type, at), 1)[0])  # type: ignore[attr-defined]
        if len(text) > 400:
            self.fail("a number of this length is not read", at, "write fewer digits: f64 holds 17, or its bits, 0x...")
        return float(text)

    def _bits_of(self, text: str, type: Attribute, at: int) -> bytes:
        """The bytes of a float whose bits are written in hexadecimal."""
        size = type.compile_time_size  # type: ignore[attr-defined]
        bits = int(text, 16)
        if not 0 <= bits < 1 << (8 * size):
            self.fail(
                f"{text[:40]} does not fit in {type_text(type)}", at, f"these are its bits, {2 * size} digits at most"
            )
        return bits.to_bytes(size, "little")

    def _array(self) -> Attribute:
        self.at += 1
        self.expect("<", " after 'array'", "an array is array<i32: 1, 0>")
        element = self.type(", the element type of the array,")
        if not (isinstance(element, builtin.IntegerType) or (is_float(element) and not is_tensor(element))):
            self.fail(f"an array cannot hold {type_text(element)}", self.at - 1, "it holds numbers, array<i32: 1, 0>")
        values: list[int] = []
        floats: list[float] = []
        if self.accept(":"):
            while True:
                at = self.at
                if self.texts[at] in ("true", "false"):
                    self.at += 1
                    values.append(int(self.texts[at] == "true"))
                elif isinstance(element, builtin.IntegerType):
                    value = self._int_of(self.need("n"), element, at)
                    values.append(int(element.get_normalized_value(value)))
                else:
                    floats.append(self._float_of(self.need("n"), element, at))
                if not self.accept(","):
                    break
        self.expect(">")
        return builtin.DenseArrayBase.from_list(element, values if isinstance(element, builtin.IntegerType) else floats)  # type: ignore

    def _dense(self) -> Attribute:
        start = self.at
        self.at += 1
        self.expect("<", " after 'dense'", DENSE)
        shape: tuple[int, ...] = ()
        items: list[tuple[int, str]] = []
        blob: str | None = None
        if self.kinds[self.at] == "s":
            blob = unescape(self.need("s"))
        elif self.texts[self.at] != ">":
            shape = self._nested(items)
        self.expect(">")
        self.expect(":", " and a type after 'dense<...>'", DENSE)
        at = self.at
        type = self.type()
        if not isinstance(type, builtin.TensorType):
            self.fail(
                f"dense<...> is a tensor, not {type_text(type)}", at, f"{DENSE}; write a scalar alone, 0.0 : f32"
            )
        element = type.element_type
        if not (isinstance(element, builtin.IntegerType | builtin.IndexType) or is_float(element)):
            self.fail(f"dense<...> cannot hold {type_text(element)}", at, "its elements are integers or floats")
        whole = tuple(d.data for d in type.shape.data)
        if blob is not None:
            return self._dense_blob(blob, type, start)
        if len(items) == 1 and shape == ():
            return self._dense_splat(items[0], type)
        if shape != whole:
            self.fail(
                f"dense<...> has the shape {list(shape)}, its type the shape {list(whole)}",
                start,
                "a single number fills the whole tensor, dense<0.0>",
            )
        if isinstance(element, builtin.IntegerType):
            ints = [int(element.get_normalized_value(self._element_int(text, element, i))) for i, text in items]
            return builtin.DenseIntOrFPElementsAttr(type, builtin.BytesAttr(element.pack(ints)))
        floats = b"".join(self._element_bytes(text, element, i) for i, text in items)
        return builtin.DenseIntOrFPElementsAttr(type, builtin.BytesAttr(floats))

    def _dense_splat(self, item: tuple[int, str], type: builtin.TensorType[Attribute]) -> Attribute:
        at, text = item
        element = type.element_type
        if isinstance(element, builtin.IntegerType | builtin.IndexType):
            return splat_attr(type, self._element_int(text, element, at))
        return builtin.DenseIntOrFPElementsAttr(type, builtin.BytesAttr(self._element_bytes(text, element, at)))  # type: ignore

    def _element_int(self, text: str, element: Attribute, at: int) -> int:
        if text in ("true", "false"):
            return int(text == "true")
        return self._int_of(text, element, at)

    def _element_bytes(self, text: str, element: Attribute, at: int) -> bytes:
        """The bytes of one float; written in hexadecimal they are kept bit for bit, which keeps a NaN's payload."""
        if text in ("true", "false"):
            self.fail(f"expected a number, found '{text}'", at, "true and false are elements of tensors of i1")
        if "0x" in text:
            return self._bits_of(text, element, at)
        try:
            packed: bytes = element.pack((self._float_of(text, element, at),))  # type: ignore[attr-defined]
        except OverflowError:
            self.fail(f"{text[:40]} does not fit in {type_text(element)}", at, "use a smaller number, or f32")
        return packed

    def _dense_blob(self, blob: str, type: builtin.TensorType[Attribute], at: int) -> Attribute:
        size = type.element_type.compile_time_size  # type: ignore[attr-defined]
        count = prod(d.data for d in type.shape.data)
        try:
            data = bytes.fromhex(blob[2:]) if blob.startswith("0x") else b""
        except ValueError:
            data = b""
        if len(data) not in (size, size * count) or not data:
            self.fail(
                f"dense<...> holds {len(data)} bytes, its type {size * count}",
                at,
                f'a string in it is all elements, or one for all, in hexadecimal: dense<"0x{"00" * size}">',
            )
        return builtin.DenseIntOrFPElementsAttr(type, builtin.BytesAttr(data))  # type: ignore

    def _nested(self, items: list[tuple[int, str]]) -> tuple[int, ...]:
        """Numbers, or lists of lists of them of one shape; gives the shape."""
        if not self.accept("["):
            text = self.texts[self.at]
            if self.kinds[self.at] != "n" and text not in ("true", "false"):
                self.fail(f"expected a number, found {self.found()}", hint=DENSE)
            items.append((self.at, text))
            self.at += 1
            return ()
        self.enter()
        count = 0
        inner: tuple[int, ...] | None = None
        for at in self.items("]"):
            shape = self._nested(items)
            if inner is not None and shape != inner:
                self.fail(
                    "the rows of dense<...> differ in shape", at, "write dense<[[1, 2], [3, 4]]>, or one number for all"
                )
            inner = shape
            count += 1
        self.leave()
        return (count, *(inner or ()))
