"""Types of arguments that programs leave out, as the operator's record tells them."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.attrs import Attrs
from tvm.ir.op import Op
from tvm.ir.type import TensorType, Type


def fill_argument_types(op: Op, attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    """The argument types of a call, those that were unknown derived where possible."""
    fill = op.argument_types
    if fill is None or None not in known or not isinstance(known[0], TensorType):
        return list(known)
    derived = fill(attrs, known)
    return [k if k is not None else d for k, d in zip(known, derived, strict=True)]
