"""Calls of registered functions: what an importer leaves to the framework."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import Tuple, TupleWrapper

from .registry import OpPattern, define_op
from .types import tensor


class PackedCallAttrs(Attrs, key="relay.attrs.PackedCallAttrs"):
    """The function's registered name, and shapes and dtypes of its results."""

    function: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()


def _result_types(attrs: PackedCallAttrs, arg_types: Sequence[Type]) -> Type:
    return TupleType([tensor(tuple(s), d) for s, d in zip(attrs.shapes, attrs.dtypes, strict=True)])


def _compute(
    attrs: PackedCallAttrs, inputs: Sequence[te.Tensor], out_type: Type
) -> list[te.Tensor]:
    made = te.extern(
        [tuple(shape) for shape in attrs.shapes],
        list(inputs),
        lambda ins, outs: tir.call_packed(attrs.function, *ins, *outs),
        dtype=list(attrs.dtypes),
        name="packed_call",
    )
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_extern(outs)


PACKED_CALL = define_op(
    "contrib.packed_call",
    PackedCallAttrs,
    inputs=("data",),
    infer_type=_result_types,
    fuse=OpPattern.OPAQUE,
    compute=_compute,
    schedules={"generic": _schedule, "cpu": _schedule},
)

# who knows what it does beside its results: it is neither computed at compile time nor left out
PACKED_CALL.set_attr("TOpIsStateful", True)


def packed_call(
    function: str,
    data: Sequence[RelayExpr],
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[str],
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
        The results' shapes and element types.
    """
    call = PACKED_CALL(
        Tuple(list(data)),
        function=str(function),
        shapes=tuple([tuple(int(d) for d in shape) for shape in shapes]),
        dtypes=tuple([str(dtype) for dtype in dtypes]),
    )
    return TupleWrapper(call, len(dtypes))
