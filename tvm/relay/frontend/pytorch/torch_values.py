"""Operators and tensors of torch: their names and values."""

from __future__ import annotations

from typing import Any

from tvm.runtime.foreign.torch_call import to_numpy


def kind_of(overload: Any) -> str:
    """The name of an operator without its overload: ``aten::add``."""
    return str(overload._schema.name)


__all__ = ["kind_of", "to_numpy"]
