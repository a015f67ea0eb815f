"""Tensor intrinsics: what an instruction or a library call computes, and the statements that do it.

x, y = te.placeholder((16,)), te.placeholder((16,))
z = te.compute((16,), lambda i: x[i] + y[i])
vadd = te.decl_tensor_intrin(
    z.op, lambda ins, outs: tir.call_extern("int32", "vadd16", outs[0].access_ptr("w"), ...)
)
s[C].tensorize(inner, vadd)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import RuntimeTypeError, RuntimeValueError, TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, reference
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import IterVar, Range, Var, as_expr, const
from tvm.tir.stmt import Evaluate, Stmt

from .buffer_options import buffer_options
from .tensor import ComputeOp, Operation, PlaceholderOp, Tensor, TensorIntrinCall, TensorSlice


class TensorIntrin(Node, key="TensorIntrin"):
    """A computation, and the statements that do it on ``buffers``: the inputs', then the outputs'.

    ``body`` does all of it. For a reduction, ``reduce_init`` clears the outputs and
    ``reduce_update`` adds one part to them.
    """

    name: str
    op: Operation = reference()
    inputs: tuple[Tensor, ...] = reference()
    buffers: tuple[Buffer, ...] = reference()
    scalar_params: tuple[Var, ...] = reference()
    body: Stmt | None
    reduce_init: Stmt | None
    reduce_update: Stmt | None

    def __call__(self, *args: Any, **kwargs: Any) -> TensorIntrinCall:
        """The intrinsic on slices of tensors: what the function of a ``te.compute`` may return.

        Parameters
        ----------
        args : TensorSlice or PrimExpr
            A region of a tensor for each input, such as ``A[i, 0:16]``, and the scalars.
        reduce_axis : IterVar or list of IterVar, optional
        """
        slices = [arg for arg in args if isinstance(arg, TensorSlice)]
        scalars = [as_expr(arg) for arg in args if not isinstance(arg, TensorSlice)]
        if len(slices) != len(self.inputs) or len(scalars) != len(self.scalar_params):
            raise TVMError(
                f"intrinsic {self.name} requires {len(self.inputs)} slices of tensors and "
                f"{len(self.scalar_params)} scalars, got {len(slices)} and {len(scalars)}"
            )
        axes = kwargs.pop("reduce_axis", ())
        if kwargs:
            raise RuntimeTypeError(f"intrinsic {self.name} has no parameter {next(iter(kwargs))}")
        axes = (axes,) if isinstance(axes, IterVar) else tuple(axes)
        regions = tuple([_region(part) for part in slices])
        tensors = tuple([part.tensor for part in slices])
        return TensorIntrinCall(self, tensors, regions, axes, tuple(scalars))

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name}, {self.op.name})"


def _region(part: TensorSlice) -> tuple[Range, ...]:
    """The region that a slice names."""
    if len(part.indices) != part.tensor.ndim:
        raise TVMError(
            f"a slice of {part.tensor.name} requires {part.tensor.ndim} indices, "
            f"got {len(part.indices)}"
        )
    return tuple(
        [_range(index, dim) for index, dim in zip(part.indices, part.tensor.shape, strict=True)]
    )


def _range(index: Any, dim: PrimExpr) -> Range:
    if not isinstance(index, slice):
        value = as_expr(index)
        return Range.from_min_extent(value, const(1, value.dtype))
    if index.step is not None:
        raise TVMError(f"a slice requires neighbouring elements, got step {index.step}")
    start = const(0, dim.dtype) if index.start is None else index.start
    return Range(start, dim if index.stop is None else index.stop)


def decl_tensor_intrin(
    op: Operation,
    fcompute: Callable[..., Any],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Buffer] | None = None,
    scalar_params: Any = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> TensorIntrin:
    """Declare an intrinsic.

    Parameters
    ----------
    op : Operation
        What it computes, of placeholders.
    fcompute : callable
        ``fcompute(ins, outs)``, with the scalars as third argument if there are any, gets a buffer
        an input and one an output. It returns the statement or call that does all the work; or, for
        a reduction, a tuple ``(body, reset, update)``, where any may be None that is not needed.
    name : str
    binds : dict of Tensor to Buffer, optional
        Buffers with the layout that the statements rely on.
    scalar_params : Var or list of Var, optional
        Scalars that the statements use.
    default_buffer_params : dict, optional
        For the buffers of the other tensors: parameters of ``tir.decl_buffer``, over those of the
        context.
    """
    if not isinstance(op, ComputeOp):
        raise RuntimeTypeError(f"expect Operation of a compute, got {type(op).__name__}: {name}")
    inputs = op.input_tensors
    for tensor in inputs:
        if not isinstance(tensor.op, PlaceholderOp):
            raise RuntimeValueError(
                f"Do not yet support composition op: intrinsic {name} requires placeholders as "
                f"inputs, got {tensor.name}, a {type(tensor.op).__name__}"
            )
    known, params = dict(binds or {}), {**buffer_options(), **(default_buffer_params or {})}
    buffers = [
        known.get(tensor) or decl_buffer(tensor.shape, tensor.dtype, tensor.op.name, **params)
        for tensor in (*inputs, *op.outputs)
    ]
    scalars = () if scalar_params is None else scalar_params
    scalars = (scalars,) if isinstance(scalars, Var) else tuple(scalars)
    extra = (list(scalars),) if scalars else ()
    result = fcompute(buffers[: len(inputs)], buffers[len(inputs) :], *extra)
    body, init, update = _parts(name, result)
    return TensorIntrin(name, op, inputs, tuple(buffers), scalars, body, init, update)


def _parts(name: str, result: Any) -> list[Stmt | None]:
    """Body, reset and update."""
    given: Sequence[Any] = result if isinstance(result, (list, tuple)) else (result,)
    parts = [Evaluate(part) if isinstance(part, PrimExpr) else part for part in given]
    if not 1 <= len(parts) <= 3 or any(not isinstance(p, Stmt | None) for p in parts):
        raise TVMError(
            f"intrinsic {name} requires a statement, or body, reset and update, "
            f"got {', '.join([type(part).__name__ for part in given]) or 'nothing'}",
        )
    if all(part is None for part in parts):
        raise TVMError(f"intrinsic {name} requires a body, or reset and update, got None")
    return parts + [None] * (3 - len(parts))
