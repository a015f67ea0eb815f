"""Communication among workers."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call, PrimValue, ShapeExpr
from tvm.relax.op.base import call_dps_packed
from tvm.relax.op.infer import dims_of, fail, made, same, simplified, tensors
from tvm.relax.op.operator import Expr, Int, operator
from tvm.tir import IntImm, const, floordiv

_REDUCTIONS = ("sum", "prod", "min", "max", "avg")


def _of_runtime(name: str, x: Expr, *rest: Any, info: Any) -> Call:
    """A call of the runtime's function among workers, which writes its result."""
    return call_dps_packed(f"runtime.disco.{name}", [x, *rest], info)


def _as_bool(value: Any) -> PrimValue:
    return PrimValue(const(bool(value), "bool"))


def _legalize_reduce(bb: Any, call: Call) -> Call:
    kind = ShapeExpr([_REDUCTIONS.index(call.attrs.op_type)])
    is_grouped = _as_bool(call.attrs.in_group)
    return _of_runtime("allreduce", call.args[0], kind, is_grouped, info=call.struct_info)


@operator("relax.ccl.allreduce", "AllReduceAttrs", infer=same, FLegalize=_legalize_reduce)
def allreduce(x: Expr, op_type: str = "sum", in_group: bool = True) -> Expr:
    """The tensors of all workers combined.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    op_type : str
        ``"sum"``, ``"prod"``, ``"min"``, ``"max"`` or ``"avg"``.
    in_group : bool
        Whether only workers of a group take part.
    """
    if op_type not in _REDUCTIONS:
        raise ValueError(f"allreduce requires sum, prod, min, max or avg, got {op_type!r}")


def _infer_gather(call: Any, bb: Any) -> Any:
    info = tensors(call, 1)[0]
    dims = dims_of(info)
    if not dims:
        return info
    return made([simplified(dims[0] * call.attrs.num_workers), *dims[1:]], info.dtype, info.vdevice)


def _legalize_gather(bb: Any, call: Call) -> Call:
    is_grouped = _as_bool(call.attrs.in_group)
    return _of_runtime("allgather", call.args[0], is_grouped, info=call.struct_info)


@operator("relax.ccl.allgather", "AllGatherAttrs", infer=_infer_gather, FLegalize=_legalize_gather)
def allgather(x: Expr, num_workers: Int, in_group: bool = True) -> Expr:
    """The tensors of all workers, one after the other.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    num_workers : int
    in_group : bool
        Whether only workers of a group take part.
    """


def _legalize_broadcast(bb: Any, call: Call) -> Call:
    name, all_workers = "broadcast_from_worker0", _as_bool(False)
    return _of_runtime(name, call.args[0], all_workers, info=call.struct_info)


@operator("relax.ccl.broadcast_from_worker0", infer=same, FLegalize=_legalize_broadcast)
def broadcast_from_worker0(x: Expr) -> Expr:
    """The tensor of the first worker.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    """


def _infer_scatter(call: Any, bb: Any) -> Any:
    info = tensors(call, 1)[0]
    dims = dims_of(info)
    if dims is None:
        return info
    count, axis = call.attrs.num_workers, call.attrs.axis
    if isinstance(dims[axis], IntImm) and dims[axis].value % count:
        raise fail(call, f"requires a dimension that {count} workers divide, got {dims[axis]}")
    new = list(dims)
    new[axis] = simplified(floordiv(new[axis], count))
    return made(new, info.dtype, info.vdevice)


def _legalize_scatter(bb: Any, call: Call) -> Call:
    """The part of each worker comes first, where the function divides."""
    x, axis, count = call.args[0], int(call.attrs.axis), int(call.attrs.num_workers)
    if axis:
        x = bb.call_te(_parts_first, x, axis, count, primfunc_name_hint="te_transpose")
    name, all_workers = "scatter_from_worker0", _as_bool(False)
    return _of_runtime(name, bb.emit(x) if axis else x, all_workers, info=call.struct_info)


def _parts_first(x: Any, axis: int, count: int) -> Any:
    shape = list(x.shape)
    shape[axis : axis + 1] = [count, floordiv(shape[axis], count)]
    others = [i for i in range(len(shape)) if i != axis]
    return topi.transpose(topi.reshape(x, shape), [axis, *others])


@operator(
    "relax.ccl.scatter_from_worker0", "ScatterCollectiveAttrs", infer=_infer_scatter,
    FLegalize=_legalize_scatter,
)  # fmt: skip
def scatter_from_worker0(x: Expr, num_workers: Int, axis: int = 0) -> Expr:
    """Parts of the first worker's tensor, one for each worker.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    num_workers : int
    axis : int
        The axis that is divided.
    """
