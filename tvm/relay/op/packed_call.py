"""Calls of registered functions: what an importer leaves to the framework."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Annotated

from tvm import te, tir
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import TupleWrapper

from .attributes import as_ints
from .operator import Attribute, Tensors, operator
from .schedules import EXTERN_SCHEDULES
from .types import Any, expect_tuple, tensor

OPEN = -1  # an extent of a result that only the run knows


def _result_types(attrs: typing.Any, arg_types: Sequence[Type]) -> Type:
    shapes = [tuple([Any() if dim == OPEN else dim for dim in shape]) for shape in attrs.shapes]
    return TupleType([tensor(s, d) for s, d in zip(shapes, attrs.dtypes, strict=True)])


def _compute(attrs: typing.Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    shapes = [ty.shape for ty in expect_tuple(out_type, "contrib.packed_call")]
    return _extern(attrs.function, inputs, shapes, attrs.dtypes)


def _shapes(
    attrs: typing.Any, inputs: Sequence[te.Tensor], out_ranks: Sequence[object]
) -> list[te.Tensor]:
    dtypes = ["int64"] * len(attrs.shapes)
    shapes = [(len(shape),) for shape in attrs.shapes]
    return _extern(f"{attrs.function}.shapes", inputs, shapes, dtypes)


def _extern(
    function: str, inputs: Sequence[te.Tensor], shapes: Sequence[object], dtypes: Sequence[str]
) -> list[te.Tensor]:
    made = te.extern(
        list(shapes),
        list(inputs),
        lambda ins, outs: tir.call_packed(function, *ins, *outs),
        dtype=list(dtypes),
        name="packed_call",
    )
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _shape_numbers(shapes: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple([as_ints(shape) for shape in shapes])


def _names(dtypes: Sequence[str]) -> tuple[str, ...]:
    return tuple([str(dtype) for dtype in dtypes])


@operator(
    "contrib.packed_call",
    fields=("function", "shapes", "dtypes"),
    results=lambda attrs: len(attrs.shapes),
    infer_type=_result_types,
    compute=_compute,
    shape_func=_shapes,
    shape_reads=(0,),
    schedules=EXTERN_SCHEDULES,
)
def packed_call(
    function: str,
    data: Tensors,
    shapes: Annotated[
        Sequence[Sequence[int]], Attribute("tuple[tuple[int, ...], ...]", _shape_numbers)
    ],
    dtypes: Annotated[Sequence[str], Attribute("tuple[str, ...]", _names)],
) -> TupleWrapper:
    """The results of a registered function.

    Parameters
    ----------
    function : str
        The name given to ``tvm.register_func``. The function is called with the inputs, then the
        results that it fills.
    data : sequence of relay.Expr
        The inputs.
    shapes, dtypes : sequences
        The results' shapes and element types. Where an extent is `OPEN`, the function of the same
        name with the suffix ``.shapes`` is called before with the inputs, then a vector of int64
        for each result, which it fills with the result's shape.
    """


# who knows what it does beside its results: it is neither computed at compile time nor left out
packed_call.op.set_attr("TOpIsStateful", True)
