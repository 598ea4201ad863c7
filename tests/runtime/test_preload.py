"""What `preload` is given may come from a file: whatever is not what a hook was told is one error, with its reason."""

from __future__ import annotations

import json
import subprocess  # noqa: F401
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import knobs
from weft.base import LaunchError


@weft.jit
def put(out, n, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), 7.0)


@pytest.fixture(scope="module")
def told() -> str:
    texts: list[str] = []
    with knobs.runtime.scope():
        knobs.runtime.jit_post_compile_hook = lambda **kw: texts.append(kw["compile"]["specialization_data"])
        put.reset()
        put.warmup(np.zeros(16, np.float32), 3, B=16, grid=(1,))
    return texts[0]


def refusal(text: Any) -> str:
    with pytest.raises(LaunchError) as caught:
        put.preload(text)
    message, hint = str(caught.value).split("\n")
    assert hint == "hint: `preload` takes the `specialization_data` that a hook received, unchanged"
    return message.removeprefix("This is no specialization data: ")


def test_texts_that_are_none(told: str) -> None:
    assert refusal("{") == "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert refusal(told[:-1]).startswith("Expecting ',' delimiter: line 1 column ")
    assert refusal(None) == "the JSON object must be str, bytes or bytearray, not NoneType"
    assert refusal("[]") == "it is '[]', not an object"
    refusal("[" * 100_000)
    assert put.preload(told) is not None


def test_each_field(told: str) -> None:
    whole = json.loads(told)
    for name, value in whole.items():
        what = {str: "a string", dict: "an object", list: "an array"}[type(value)]
        assert refusal(json.dumps({k: v for k, v in whole.items() if k != name})) == (
            f"`{name}` is missing, it has to be {what}"
        )
        for wrong in (None, 5, {"a": 5} if type(value) is not dict else [5]):
            assert refusal(json.dumps({**whole, name: wrong})) == f"`{name}` is {wrong!r}, it has to be {what}"


@pytest.mark.parametrize("field", ["constant_keys", "constant_vals", "attrs_keys", "attrs_vals"])
def test_constants_and_attributes(told: str, field: str) -> None:
    whole = json.loads(told)
    for wrong in ([], [*whole[field], *whole[field]], *([[5]] if field.endswith("keys") else [])):
        text = refusal(json.dumps({**whole, field: wrong}))
        assert text.startswith("its constants or attributes do not fit together (")


@pytest.mark.parametrize(
    ("constant", "kind"),
    [
        ({"named": [["os", "mkdir"], ["made"]]}, "a named tuple"),
        ({"named": [["pathlib", "Path.touch"], ["made"]]}, "a named tuple"),
        ({"named": [["subprocess", "Popen"], ["touch made"]]}, "a named tuple"),
        ({"dataclass": [["subprocess", "Popen"], {"args": "touch made", "shell": True}]}, "a dataclass"),
        ({"member": [["os", "environ"], "HOME"]}, "an Enum"),
        ({"class": ["os", "mkdir"]}, "a class"),
    ],
)
def test_nothing_is_called_by_its_name(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constant: Any, kind: str
) -> None:
    """A class may be made of a named tuple or a dataclass; no function is called, whatever the text says."""
    monkeypatch.chdir(tmp_path)
    ((module, name),) = [facts[0] if isinstance(facts[0], list) else facts for facts in constant.values()]
    with pytest.raises(LaunchError) as caught:
        put.preload(json.dumps({**json.loads(told), "constant_vals": [constant]}))
    assert str(caught.value) == f"Specialization data says that {name} of module {module} is {kind}, but it is not"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "constant", [{}, {"a": 1, "b": 2}, {"named": 5}, {"named": [5, 5]}, {"dtype": 5}, {"dataclass": [["os", "x"]]}]
)
def test_constants_that_are_none(told: str, constant: Any) -> None:
    with pytest.raises(LaunchError, match="pecialization data"):
        put.preload(json.dumps({**json.loads(told), "constant_vals": [constant]}))
