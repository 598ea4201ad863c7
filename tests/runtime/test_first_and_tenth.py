"""A launch does the same, and says the same where it is wrong, whether it is the first of its kernel or the tenth.

The first goes the general way. The tenth like it, and one that follows ten others, meet the plans of native code
(`weft.runtime.prepared`): what these do not take is the general way's again. One table of odd launches goes through
all of them.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.runtime import prepared

Launch = Callable[[Any, Any, Any], None]
"""(kernel, x, out): launches in some way. x holds 0 to 255 and is 64-aligned, out is as long and holds -1."""


def kernel(**facts: Any) -> Any:
    @weft.jit(**facts)
    def scaled(x, out, n, factor=2.0, flag=True, other=None, BLOCK: tl.constexpr = 64):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = (offsets < n) & (offsets < 256)
        y = tl.load(x + offsets, mask=mask) * factor
        if flag:
            y += 1
        if other is not None:
            y += tl.load(other + offsets, mask=mask)
        tl.store(out + offsets, y, mask=mask)

    return scaled


class Odd:
    """An array that does not say where it is."""

    dtype, shape = np.dtype(np.float32), (256,)

    def data_ptr(self) -> int:
        raise RuntimeError("no storage")


class Moved(Odd):
    def __init__(self, address: Any) -> None:
        self.address = address

    def data_ptr(self) -> Any:
        return self.address


class Index:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        return self.value


class Truth(int):
    """A bool of one's own, as no subclass of bool may be."""


class Size(enum.IntEnum):
    SMALL, ALL = 48, 256


class Named(enum.Enum):
    SMALL = 48


def misaligned(x: Any) -> Any:
    """A copy whose address is odd."""
    memory = bytearray(x.nbytes + 64)
    start = 1 - np.frombuffer(memory, np.uint8).__array_interface__["data"][0] % 2
    result = np.frombuffer(memory, x.dtype, x.size, offset=start)
    result[:] = x
    return result


def read_only(x: Any) -> Any:
    x = x.copy()
    x.flags.writeable = False
    return x


GRIDS: dict[str, Any] = {
    "none": (0,),
    "none on the second axis": (4, 0),
    "a number": 4,
    "a number of NumPy": np.int64(4),
    "numbers of NumPy": (np.uint8(4), np.int16(1)),
    "an array": np.array([4]),
    "an array without axes": np.array(4),
    "a list": [4],
    "four axes": (4, 1, 1, 1),
    "four axes with programs": (4, 1, 1, 2),
    "no axes": (),
    "nothing": None,
    "a float": 4.0,
    "floats": (4.0,),
    "a float of NumPy": (np.float32(4),),
    "text": "4",
    "texts": ("4",),
    "a bool": (True,),
    "a negative number": (-1,),
    "a large number": (1 << 31,),
    "a number of 70 bits": (1 << 70,),
    "large on the second axis": (1, 1 << 16),
    "an index": (Index(4),),
    "an index by itself": Index(4),
    "no index after all": (Index("4"),),
    "a function": lambda meta: (weft.cdiv(meta["n"], meta["BLOCK"]),),
    "a function of a list": lambda meta: [4],
    "a function of a float": lambda meta: meta["n"] / meta["BLOCK"],
    "a function of nothing": lambda meta: None,
    "a function of too much": lambda meta: (1 << 40,),
    "a function without parameters": lambda: (4,),
    "a function that asks for more": lambda meta: (meta["N"],),
    "a function that raises": lambda meta: (1 // 0,),
    "a generator": (size for size in ()),
    "a range": range(4, 5),
    "a constexpr": (tl.constexpr(4),),
    "a set": {4},
}

NUMBERS: dict[str, Any] = {
    **{str(n): n for n in (0, 1, 2, 15, 16, 17, -1, -16)},
    **{f"2**{b}{d:+d}": (1 << b) + d for b in (31, 32, 63, 64) for d in (-1, 0, 1)},
    **{f"-2**{b}{d:+d}": -(1 << b) + d for b in (31, 32, 63, 64) for d in (-1, 0, 1)},
    "True": True,
    "a bool of NumPy": np.True_,
    "an int of one's own": Truth(48),
    "a member": Size.SMALL,
    "a member that is no number": Named.SMALL,
    "int8": np.int8(48),
    "the least int8": np.int8(-128),
    "uint64": np.uint64(48),
    "the greatest uint64": np.uint64((1 << 64) - 1),
    "a float": 48.0,
    "a float of NumPy": np.float32(48),
    "a complex number": 48j,
    "an array without axes": np.array(48),
    "text": "48",
    "bytes": b"48",
    "None": None,
    "a list": [48],
    "a dictionary": {},
    "a type": int,
    "a constexpr": tl.constexpr(48),
    "an index": Index(48),
}  # fmt: skip

FACTORS: dict[str, Any] = {
    "an int": 2,
    "one": 1,
    "infinity": float("inf"),
    "beyond f32": 1e300,
    "NaN": float("nan"),
    "minus zero": -0.0,
    "a bool": False,
    "float16": np.float16(0.5),
    "float64": np.float64(1e-300),
    "longdouble": np.longdouble(0.5),
    "a large int": 1 << 40,
    "text": "2",
}

ARRAYS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: None,
    "empty": lambda x: x[:0],
    "without axes": lambda x: x[0],
    "a number of NumPy's as an array": lambda x: np.array(3.0, np.float32),
    "every other": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1],
    "transposed": lambda x: x.reshape(16, 16).T,
    "by rows of Fortran": lambda x: np.asfortranarray(x.reshape(16, 16)),
    "broadcast": lambda x: np.broadcast_to(x[:1], 256),
    "read-only": read_only,
    "of the other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "at an odd address": misaligned,
    "at an address of 4": lambda x: np.append(x, x)[1:257],
    "float64": lambda x: x.astype(np.float64),
    "int8": lambda x: x.astype(np.int8),
    "uint64": lambda x: x.astype(np.uint64),
    "bool": lambda x: x > 3,
    "float16": lambda x: x.astype(np.float16),
    "complex": lambda x: x.astype(np.complex64),
    "objects": lambda x: x.astype(object),
    "text": lambda x: x.astype(str),
    "records": lambda x: x.view([("a", np.float32)]),
    "dates": lambda x: x.astype("datetime64[s]"),
    "a subclass": lambda x: x.view(np.recarray),
    "masked": lambda x: np.ma.masked_array(x, x > 3),
    "a list": lambda x: x.tolist(),
    "a memory view": lambda x: memoryview(x),
    "bytes": lambda x: x.tobytes(),
    "an object that raises": lambda x: Odd(),
    "an address that is text": lambda x: Moved("12"),
    "an address that is none": lambda x: Moved(None),
    "no address": lambda x: Moved(0),
    "an address that is negative": lambda x: Moved(-64),
    "an address of NumPy": lambda x: Moved(np.uint64(x.ctypes.data)),
    "an int": lambda x: 7,
    "a float": lambda x: 7.0,
    "a bool": lambda x: True,
    "a tuple": lambda x: (x,),
    "a type": lambda x: np.ndarray,
    "a function": lambda x: kernel,
}

CALLS: dict[str, Launch] = {
    "too many arguments": lambda k, x, out: k[(4,)](x, out, 256, 2.0, True, None, 64, 9),
    "an argument twice": lambda k, x, out: k[(4,)](x, out, 256, x=x),
    "an argument that is missing": lambda k, x, out: k[(4,)](x, out),
    "no arguments": lambda k, x, out: k[(4,)](),
    "an unknown keyword": lambda k, x, out: k[(4,)](x, out, 256, blok=64),
    "an option": lambda k, x, out: k[(4,)](x, out, 256, num_warps=8),
    "an option that is wrong": lambda k, x, out: k[(4,)](x, out, 256, num_warps=3.5),
    "an option that is no option": lambda k, x, out: k[(4,)](x, out, 256, num_wraps=8),
    "options that cannot be hashed": lambda k, x, out: k[(4,)](x, out, 256, num_warps=[8]),
    "only keywords": lambda k, x, out: k[(4,)](n=256, out=out, x=x),
    "keywords in another order": lambda k, x, out: k[(4,)](x, BLOCK=64, n=256, out=out),
    "unpacked": lambda k, x, out: k[(4,)](*(x, out, 256), flag=False),
    "a constexpr that is none": lambda k, x, out: k[(4,)](x, out, 256, BLOCK=None),
    "a constexpr that is a float": lambda k, x, out: k[(4,)](x, out, 256, BLOCK=64.0),
    "a constexpr that is no power of two": lambda k, x, out: k[(4,)](x, out, 256, BLOCK=60),
    "a constexpr of NumPy": lambda k, x, out: k[(4,)](x, out, 256, BLOCK=np.int64(64)),
    "a constexpr that is an array": lambda k, x, out: k[(4,)](x, out, 256, BLOCK=x),
    "a constexpr that is a list": lambda k, x, out: k[(4,)](x, out, 256, BLOCK=[64]),
    "a constexpr that is true": lambda k, x, out: k[(4,)](x, out, 256, BLOCK=True),
    "in place": lambda k, x, out: k[(4,)](out, out, 256),
    "overlapping": lambda k, x, out: k[(4,)](out[:200], out[8:], 100),
    "overlapping backwards": lambda k, x, out: k[(4,)](out[8:], out[:200], 100),
    "a third array": lambda k, x, out: k[(4,)](x, out, 256, other=x),
    "a third array over the second": lambda k, x, out: k[(4,)](x, out[4:], 100, other=out),
    "to a read-only array": lambda k, x, out: k[(4,)](x, read_only(out), 256),
    "to one that is broadcast": lambda k, x, out: k[(4,)](x, np.broadcast_to(out[:1], 256), 256),
    "to other elements": lambda k, x, out: k[(4,)](x, out.view(np.int32), 256),
    "to elements of the other byte order": lambda k, x, out: k[(4,)](x, out.view(out.dtype.newbyteorder()), 256),
    "to a number": lambda k, x, out: k[(4,)](x, 7, 256),
    "to nothing": lambda k, x, out: k[(4,)](x, None, 256),
    "for a target that is none": lambda k, x, out: k[(4,)](x, out, 256, target="abacus"),
}


def _launch(*, grid: Any = (4,), **named: Any) -> Launch:
    """A launch in which some argument is another, or is made from x where it is a function that is marked so."""

    def launch(k: Any, x: Any, out: Any) -> None:
        k[grid](**{"x": x, "out": out, "n": 256, **named})

    return launch


def _with_array(name: str, make: Callable[[Any], Any]) -> Launch:
    """A launch with another array, which touches what there is of it."""

    def launch(k: Any, x: Any, out: Any) -> None:
        array = make(x)
        k[(4,)](**{"x": x, "out": out, "n": array.size if isinstance(array, np.ndarray) else 0, name: array})

    return launch


CASES: dict[str, Launch] = {
    **{f"grid: {name}": _launch(grid=grid) for name, grid in GRIDS.items()},
    **{f"n: {name}": _launch(n=n) for name, n in NUMBERS.items()},
    **{f"factor: {name}": _launch(factor=factor) for name, factor in FACTORS.items()},
    **{f"x: {name}": _with_array("x", make) for name, make in ARRAYS.items()},
    **{f"other: {name}": _with_array("other", make) for name, make in ARRAYS.items()},
    **{f"flag: {flag!r}": _launch(flag=flag) for flag in (False, 0, 1, np.False_, None, "", 0.0)},
    **{f"call: {name}": launch for name, launch in CALLS.items()},
}


def _tensor_cases() -> dict[str, Launch]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return {}
    made: dict[str, Callable[[Any], Any]] = {
        "as it is": lambda x: x,
        "empty": lambda x: x[:0],
        "every other": lambda x: x.repeat_interleave(2)[::2],
        "expanded": lambda x: x[:1].expand(256),
        "of no device": lambda x: x.to("meta"),
        "empty and of no device": lambda x: x[:0].to("meta"),
        "sparse": lambda x: x.to_sparse(),
        "nested": lambda x: torch.nested.nested_tensor([x, x[:3]]),
        "negative": lambda x: torch._neg_view(x),
        "conjugate": lambda x: torch.complex(x, x).conj(),
        "imaginary parts of a conjugate": lambda x: torch.complex(x, x).conj().imag,
        "quantised": lambda x: torch.quantize_per_tensor(x, 1.0, 0, torch.quint8),
        "a parameter": lambda x: torch.nn.Parameter(x),
        "a buffer": lambda x: torch.nn.Buffer(x),
        "a subclass": lambda x: x.as_subclass(type("Mine", (torch.Tensor,), {})),
        "requires a gradient": lambda x: x.clone().requires_grad_(),
        "in inference mode": lambda x: _inferred(torch, x),
        "bfloat16": lambda x: x.to(torch.bfloat16),
        "a storage": lambda x: x.untyped_storage(),
        "a size": lambda x: x.size(),
        "a number": lambda x: x[0].item(),
        "without axes": lambda x: x[3],
        "lost its storage": lambda x: _lost(x.clone()),
        "for MKL-DNN": lambda x: x.to_mkldnn(),
        "nothing but zeros": lambda x: torch._efficientzerotensor(256),
        "copied when written to": lambda x: torch._lazy_clone(x),
    }
    transforms: dict[str, Callable[[Any, Any], None]] = {
        "vmap": lambda f, x: torch.func.vmap(f)(x.reshape(1, 256)),
        "grad": lambda f, x: torch.func.grad(lambda row: f(row).sum())(x),
        "jvp": lambda f, x: torch.func.jvp(f, (x,), (x,)),
        "functionalize": lambda f, x: torch.func.functionalize(f)(x),
        "a fake tensor": lambda f, x: _faked(torch, f, x),
    }

    def case(name: str, make: Callable[[Any], Any]) -> Launch:
        def launch(k: Any, x: Any, out: Any) -> None:
            tensor = make(torch.from_numpy(x))
            given = {"x": torch.from_numpy(x), "out": torch.from_numpy(out), name: tensor}
            k[(4,)](**given, n=tensor.numel() if isinstance(tensor, torch.Tensor) and not tensor.is_nested else 0)

        return launch

    def transformed(name: str, transform: Callable[[Any, Any], None]) -> Launch:
        def launch(k: Any, x: Any, out: Any) -> None:
            def body(row: Any) -> Any:
                k[(4,)](**{"x": torch.from_numpy(x), "out": torch.from_numpy(out), "n": 256, name: row})
                return row

            transform(body, torch.from_numpy(x))

        return launch

    names = ("x", "out", "other")
    return {
        **{f"{name}: {kind}": case(name, make) for name in names for kind, make in made.items()},
        **{f"{name}: {kind}": transformed(name, how) for name in names for kind, how in transforms.items()},
    }


def _faked(torch: Any, f: Callable[[Any], Any], x: Any) -> None:
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        f(mode.from_tensor(x))


def _inferred(torch: Any, x: Any) -> Any:
    with torch.inference_mode():
        return x + 0


def _lost(x: Any) -> Any:
    x.untyped_storage().resize_(0)
    return x


def arrays() -> tuple[Any, Any]:
    """(x, out), each of which begins at a multiple of 64."""
    memory = np.full(1024, -1, np.float32)
    start = -memory.ctypes.data % 64 // 4
    x, out = memory[start : start + 256], memory[start + 512 : start + 768]
    x[:] = np.arange(256)
    return x, out


def outcome(launch: Launch, made: Any) -> Any:
    """What a launch has written, or the error: its class and all that it says."""
    x, out = arrays()
    try:
        with np.errstate(all="ignore"):
            launch(made, x, out)
    except Exception as error:
        text = re.sub(r"0x[0-9a-f]+", "0x", str(error))
        return type(error).__name__, text, getattr(error, "hint", None), getattr(error, "__notes__", None)
    return x.tobytes(), out.tobytes()


def usual(made: Any) -> None:
    """Ten launches as most are, of two kinds."""
    for _ in range(5):
        x, out = arrays()
        made[(4,)](x=x, out=out, n=256)
        made[(4,)](x, out, 256)


def compare(cases: dict[str, Launch], warm: Callable[[Any], None]) -> tuple[int, int]:
    """Each case as the first launch, as the tenth like it, and after others; how many ran, how many were refused."""
    differ, results = [], []
    used = kernel()
    warm(used)
    assert not prepared.supported() or used._prepared._plans
    for name, launch in cases.items():
        again = kernel()
        first = outcome(launch, again)
        results.append(isinstance(first[0], str))
        for _ in range(8):
            outcome(launch, again)
        if (tenth := outcome(launch, again)) != first:
            differ.append(f"{name}: first {first}, tenth {tenth}")
        warm(used)
        if (after := outcome(launch, used)) != first:
            differ.append(f"{name}: first {first}, after others {after}")
    assert not differ, "\n".join(differ)
    return results.count(False), results.count(True)


GROUPS = {
    "grid": (17, 20),
    "n": (37, 16),
    "factor": (11, 1),
    "flag": (6, 1),
    "x": (19, 21),
    "other": (20, 20),
    "call": (12, 19),
}
"""How many launches of each run, and how many are refused."""


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.thinned(3)
def test_launches_do_not_change(group: str) -> None:
    cases = {name: launch for name, launch in CASES.items() if name.startswith(group + ":")}
    assert compare(cases, usual) == GROUPS[group]


def test_launches_with_tensors_do_not_change() -> None:
    torch = pytest.importorskip("torch")

    def warm(made: Any) -> None:
        for _ in range(5):
            x, out = map(torch.from_numpy, arrays())
            made[(4,)](x=x, out=out, n=256)

    compare(_tensor_cases(), warm)
