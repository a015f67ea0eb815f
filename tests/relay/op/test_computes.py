"""Compute facets that are one function of topi."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tvm import te
from tvm.relay.op.computes import computed_by


def test_operands_come_first_then_attributes_in_order() -> None:
    seen: list[Any] = []

    def function(*arguments: Any) -> te.Tensor:
        seen.extend(arguments)
        return arguments[0]

    data, other = te.placeholder((2,)), te.placeholder((3,))
    attrs = SimpleNamespace(axis=1, mode="round", unused=None)
    found = computed_by(function, "mode", "axis")(attrs, [data, other], None)
    assert seen == [data, other, "round", 1]
    assert len(found) == 1 and found[0] is data
