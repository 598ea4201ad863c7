"""What a machine's row says of the options that a launch leaves open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from weft.compiler.options import given_for_gpu
from weft.machines import machine_of


@pytest.mark.parametrize(
    ("options", "stages"), [({}, 2), ({"num_stages": None}, 2), ({"num_stages": 1}, 1), ({"num_stages": 5}, 5)]
)
def test_stages_are_the_machines_where_nobody_says_them(options: dict[str, Any], stages: int) -> None:
    machine = replace(machine_of("sim:cuda:80"), stages=2)
    assert given_for_gpu(options, machine)["num_stages"] == stages
    assert given_for_gpu({}, machine_of("sim:cuda:80"))["num_stages"] == 3
