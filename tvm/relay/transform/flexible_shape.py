"""Serve inputs of several sizes with a network compiled for each of some sizes.

def @main(%x: Tensor[(?, 3), float32]) {
  let %n = take(shape_of(%x), 0);
  if (%n == 1) { @main_1(%x) } else { if (%n == 4) { @main_4(%x) } else { @main_8(%x) } }
}

With padding each size takes the smallest network that is large enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import BaseExpr, GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext, module_pass
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.expr import Call, If, Let, Tuple, TupleGetItem, Var, const
from tvm.relay.function import Function
from tvm.relay.op import nn as op_nn
from tvm.relay.op.binary import equal, less_equal
from tvm.relay.op.creation import shape_of
from tvm.relay.op.indexing import take, where
from tvm.relay.op.slicing import strided_slice
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import applied
from tvm.tir.expr import Any


def override_shape(tensor_type: TensorType, axis: int, dim: int | BaseExpr) -> TensorType:
    """The type with another dimension at one axis."""
    shape: list[BaseExpr | int] = [*tensor_type.shape]
    shape[axis] = dim
    return TensorType(tuple(shape), tensor_type.dtype)


def specialize_body(
    mod: IRModule,
    function: Function,
    axis: int,
    dim: int,
    input_indices: Sequence[int],
    affects_output: bool = True,
) -> tuple[GlobalVar, list[Type]]:
    """Add `function` for one extent of an axis to the module.

    Parameters
    ----------
    mod : gets the new function.
    function, axis, dim : what is made for which extent.
    input_indices : the parameters that have the axis.
    affects_output : the result has it as well.

    Returns
    -------
    the new function's name, and the types of these parameters.
    """
    types = [
        override_shape(p.checked_type, axis, dim) if i in input_indices else p.checked_type
        for i, p in enumerate(function.params)
    ]
    params = [Var(p.name_hint, ty) for p, ty in zip(function.params, types, strict=True)]
    gvar = GlobalVar(f"main_{dim}")
    ret_type = _overridden(function.checked_type.ret_type, axis, dim) if affects_output else None
    mod[gvar] = Function(
        params, applied(function, params), ret_type, function.type_params, function.attrs
    )
    return gvar, [types[i] for i in input_indices]


def _overridden(ty: Type, axis: int, dim: int | BaseExpr) -> Type:
    if isinstance(ty, TupleType):
        return TupleType([_overridden(field, axis, dim) for field in ty.fields])
    assert isinstance(ty, TensorType)
    return override_shape(ty, axis, dim)


class _Dispatcher:
    """Writes `main` as a choice among the functions for each extent."""

    def __init__(
        self, main: Function, axis: int, indices: Sequence[int], pad_value: float | None
    ) -> None:
        self.axis = axis
        self.indices = indices
        self.pad_value = pad_value
        self.main = main
        self.params = [
            Var(p.name_hint, override_shape(p.checked_type, axis, Any()) if i in indices else p.checked_type)
            for i, p in enumerate(main.params)
        ]  # fmt: skip
        self.extent = Var("extent", TensorType((), "int32"))

    def choice(
        self, buckets: Sequence[int], names: Sequence[GlobalVar], affects_output: bool
    ) -> RelayExpr:
        """The calls, smaller ones first; the largest for all that is left."""
        calls = [self._call(b, g, affects_output) for b, g in zip(buckets, names, strict=True)]
        result = calls[-1]
        compare = equal if self.pad_value is None else less_equal
        for bucket, call in zip(reversed(buckets[:-1]), reversed(calls[:-1]), strict=True):
            result = If(compare(self.extent, const(bucket)), call, result)
        shape = shape_of(self.params[self.indices[0]])
        return Let(self.extent, take(shape, const(self.axis), axis=0), result)

    def _call(self, bucket: int, gvar: GlobalVar, affects_output: bool) -> RelayExpr:
        if self.pad_value is None:
            return Call(gvar, self.params)
        args = [
            self._padded(p, bucket) if i in self.indices else p for i, p in enumerate(self.params)
        ]
        call = Call(gvar, args)
        return self._cut(call, self.main.checked_type.ret_type) if affects_output else call

    def _padded(self, param: Var, bucket: int) -> RelayExpr:
        ty = param.type_annotation
        assert isinstance(ty, TensorType) and self.pad_value is not None
        is_end = np.zeros((len(ty.shape), 2), "bool")
        is_end[self.axis, 1] = True
        widths = where(const(is_end), const(bucket) - self.extent, const(0))
        return op_nn.pad(param, widths, const(self.pad_value, ty.dtype))

    def _cut(self, value: RelayExpr, ty: Type) -> RelayExpr:
        """The rows of the result that belong to the input."""
        if isinstance(ty, TupleType):
            fields = enumerate(ty.fields)
            return Tuple([self._cut(TupleGetItem(value, i), t) for i, t in fields])
        assert isinstance(ty, TensorType)
        rank = len(ty.shape)
        is_axis = const(np.arange(rank) == self.axis)
        end = where(is_axis, self.extent, shape_of(value))
        zeros, ones = const(np.zeros(rank, "int32")), const(np.ones(rank, "int32"))
        return strided_slice(value, zeros, end, ones)


def flexible_dispatch(
    mod: IRModule,
    buckets: Sequence[int],
    axis: int = 0,
    auto_pad: bool = False,
    pad_value: float = 0,
    input_indices: Sequence[int] | None = None,
    affects_output: bool = True,
) -> IRModule:
    """A module whose `main` takes several extents of one axis.

    Parameters
    ----------
    mod : a module with `main`.
    buckets : the extents that are compiled.
    axis : the axis of the inputs.
    auto_pad : pad inputs to the next extent, and cut the result; otherwise the extent must be one
        of the buckets.
    pad_value : what inputs are padded with.
    input_indices : the parameters that have the axis, the first by default.
    affects_output : the result has the axis as well.
    """
    if not buckets:
        raise TVMError("flexible_dispatch requires at least one bucket")
    ordered = sorted(int(b) for b in buckets)
    indices = [0] if input_indices is None else list(input_indices)
    result = infer_types(mod).clone()
    main = result["main"]
    names = [specialize_body(result, main, axis, b, indices, affects_output)[0] for b in ordered]
    dispatcher = _Dispatcher(main, axis, indices, pad_value if auto_pad else None)
    body = dispatcher.choice(ordered, names, affects_output)
    result["main"] = Function(dispatcher.params, body, None, main.type_params, main.attrs)
    return infer_types(result)


@module_pass(opt_level=0)
class FlexibleShapeDispatch:
    """The pass; parameters as of `flexible_dispatch`."""

    def __init__(
        self,
        buckets: Sequence[int],
        axis: int = 0,
        auto_pad: bool = False,
        pad_value: float = 0,
        input_indices: Sequence[int] | None = None,
        affects_output: bool = True,
    ) -> None:
        self.arguments = (buckets, axis, auto_pad, pad_value, input_indices, affects_output)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The module with a `main` for all extents."""
        return flexible_dispatch(mod, *self.arguments)
