"""Operators that find elements: where they are not zero, and which are distinct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import TupleWrapper
from tvm.topi.argwhere import count_nonzero

from .computes import computed_by
from .operator import Attribute, Expr, operator
from .schedules import for_all_targets
from .types import Tensor1, expect_countable, shape_of_type, tensor, unknown

_COMMON: dict[str, Any] = {
    "schedules": for_all_targets(topi.generic.schedule_argwhere)
}  # fmt: skip


def _argwhere_type(attrs: Attrs, condition: TensorType) -> Type:
    return tensor((unknown(), len(condition.shape)), "int32")


@operator(
    "argwhere",
    infer_type=_argwhere_type,
    compute=lambda attrs, inputs, out_type: [topi.argwhere(out_type.shape, inputs[0])],
    shape_func=lambda attrs, inputs, out_ranks: [count_nonzero(inputs[0], len(inputs[0].shape))],
    shape_reads=(0,),
    fold=lambda attrs, arrays, out_type: [np.argwhere(arrays[0]).astype("int32")],
    **_COMMON,
)
def argwhere(condition: Expr) -> RelayExpr:
    """The indices of the elements that are not zero.

    Parameters
    ----------
    condition : relay.Expr
        Any tensor.

    Returns
    -------
    relay.Expr
        One row of int32 for each element found, in row-major order.
    """


def _unique_type(attrs: Any, data: Tensor1) -> Type:
    shape = shape_of_type(data)
    expect_countable(shape, "int32", "unique", hint="")
    positions = tensor(shape, "int32")
    fields = [data, positions, positions, tensor((1,), "int32")]
    return TupleType((*fields, positions) if attrs.return_counts else tuple(fields))


def _fold_unique(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    data = arrays[0]
    values, first, inverse, counts = np.unique(
        data, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.arange(len(values)) if attrs.sorted else np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    padding = (0, len(data) - len(values))
    number = np.array([len(values)])
    found = [
        np.pad(values[order], padding), np.pad(first[order], padding), rank[inverse], number,
        np.pad(counts[order], padding),
    ]  # fmt: skip
    positions = [array.astype("int32") for array in found[1:]]
    return [found[0], *(positions if attrs.return_counts else positions[:-1])]


@operator(
    "unique",
    support_level=3,
    results=lambda attrs: 5 if attrs.return_counts else 4,
    infer_type=_unique_type,
    compute=computed_by(topi.unique, "sorted", "return_counts"),
    fold=_fold_unique,
    **_COMMON,
)
def unique(
    data: Expr,
    is_sorted: Annotated[bool, Attribute("bool", bool, field="sorted")] = True,
    return_counts: bool = False,
) -> TupleWrapper:
    """The distinct elements of a row, where they are first, and which each element is.

    Returns
    -------
    tuple of relay.Expr
        The distinct elements, their first positions, each element's number among them, how many there
        are (1,), and with `return_counts` their counts. All but the number are as long as the data;
        zeros fill them.
    """
