"""Operators that gain from it compute in float16; their neighbours follow where nothing is lost.

lv = nn.conv2d(x, w)      ->    lv0 = astype(x, "float16")
gv = nn.relu(lv)                lv1 = astype(w, "float16")
                                lv = nn.conv2d(lv0, lv1, out_dtype="float32")
                                gv = nn.relu(lv)

A value that is used in float16 alone is cast where it is defined, once; others where they are used. What
leaves a dataflow block has the data type that the program says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprMutator, ExprVisitor
from tvm.relax.op.datatype import astype
from tvm.relax.op.mixed_precision import out_dtype_rule, policy_of
from tvm.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from tvm.relay.op.registry import Precision
from tvm.support.dtype import DType, dtype

from .pass_kinds import relax_pass

_FP16, _FP32, _VOID = dtype("float16"), dtype("float32"), dtype("void")
# a data type for each tensor of a value, lists for tuples; void: it does not matter
Kinds = Any


def ToMixedPrecision(
    out_dtype: str = "float32", fp16_input_names: Sequence[str] | None = None
) -> Pass:
    """Compute in float16 in dataflow blocks, where operators gain from it.

    Parameters
    ----------
    out_dtype : str
        What products and convolutions give, ``"float32"`` or ``"float16"``.
    fp16_input_names : list of str, optional
        Parameters of functions that are float16 from then on.
    """
    result = dtype(out_dtype)
    if result not in (_FP16, _FP32):
        raise TVMError(f"ToMixedPrecision requires out_dtype float16 or float32, got {out_dtype}")
    names = frozenset(fp16_input_names or ())

    def rewrite(func: Function, mod: IRModule) -> Function:
        uses = _Uses()
        uses.visit_expr(func)
        found: Function = _Rewriter(result, names, uses.required).visit_expr(func)
        return found

    return relax_pass("ToMixedPrecision", rewrite)


def _kinds(info: StructInfo | None, leaf: Callable[[TensorStructInfo], DType]) -> Kinds:
    if isinstance(info, TupleStructInfo):
        return [_kinds(field, leaf) for field in info.fields]
    return leaf(info) if isinstance(info, TensorStructInfo) else None


def _own(info: StructInfo | None) -> Kinds:
    return _kinds(info, lambda tensor: tensor.dtype)


def _combined(a: Kinds, b: Kinds, combine: Callable[[DType, DType], DType]) -> Kinds:
    if isinstance(a, list):
        return [_combined(x, y, combine) for x, y in zip(a, b, strict=True)]
    return None if a is None else combine(a, b)


def _meet(a: DType, b: DType) -> DType:
    """What two uses require: float16 if both do."""
    if a.is_void or b.is_void:
        return b if a.is_void else a
    return a if a is b else _FP32


class _Uses(ExprVisitor):
    """What the uses of each variable require, from the last binding to the first."""

    def __init__(self) -> None:
        self.required: dict[Any, Kinds] = {}  # by identity

    def require(self, expr: RelayExpr, kinds: Kinds) -> None:
        if isinstance(expr, Tuple):
            for field, kind in zip(expr.fields, kinds, strict=True):
                self.require(field, kind)
        elif isinstance(expr, Var) and kinds is not None:
            known = self.required.get(expr.vid)
            self.required[expr.vid] = kinds if known is None else _combined(known, kinds, _meet)

    def require_all(self, exprs: Sequence[RelayExpr], kind: DType) -> None:
        for expr in exprs:
            self.require(expr, _kinds(expr.struct_info_, lambda _: kind))

    def visit_var_(self, op: Var) -> None:
        self.require_all([op], _FP32)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        self.visit_expr(op.body)
        for block in op.blocks[::-1]:
            for binding in block.bindings[::-1]:
                self.visit_binding(binding)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        unknown = _kinds(binding.var.struct_info_, lambda _: _VOID)
        kinds = self.required.get(binding.var.vid, unknown)
        if isinstance(value, Call) and isinstance(value.op, Op):
            gains = policy_of(value) is Precision.ALWAYS
            self.require_all(value.args, _FP16 if gains else _FP32)
        elif isinstance(value, Tuple):
            self.require(value, kinds)
        elif isinstance(value, TupleGetItem):
            whole = _kinds(value.tuple_value.struct_info_, lambda _: _VOID)
            if isinstance(whole, list):
                whole[value.index] = kinds
            self.require(value.tuple_value, whole)
        else:
            super().visit_var_binding_(binding)


def _is_castable(expr: RelayExpr) -> bool:
    """Whether an argument is float16, or a constant that float16 can hold, or no float at all."""
    if isinstance(expr, Tuple):
        return all([_is_castable(field) for field in expr.fields])
    if isinstance(expr, Constant) and expr.struct_info.dtype is _FP32:
        largest = float(np.finfo(np.float16).max)
        return bool(np.all(np.abs(expr.data.numpy()) <= largest))
    return _holds_no_wide_float(expr.struct_info_)


def _holds_no_wide_float(info: StructInfo | None) -> bool:
    if isinstance(info, TupleStructInfo):
        return all([_holds_no_wide_float(field) for field in info.fields])
    return not isinstance(info, TensorStructInfo) or info.dtype is _FP16 or not info.dtype.is_float


class _Rewriter(ExprMutator):
    def __init__(self, result: DType, names: frozenset[str], required: dict[Any, Kinds]) -> None:
        super().__init__()
        self.result = result
        self.names = names
        self.required = required
        self.params: list[Var] = []

    def visit_function_(self, op: Function) -> Any:
        outer, self.params = self.params, [*self.params, *op.params]
        new = super().visit_function_(op)
        self.params = outer
        if isinstance(new, Function) and new is not op and self.names:
            return Function(new.params, new.body, None, new.is_pure, new.attrs, new.span)
        return new

    def visit_var_def_(self, var: Var) -> Any:
        info = var.struct_info_
        is_listed = var.name_hint in self.names and any([var is param for param in self.params])
        if is_listed and isinstance(info, TensorStructInfo) and info.dtype is _FP32:
            return Var(var.vid, _of_kind(info, _FP16), var.span)
        return super().visit_var_def_(var)

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        self.builder_.begin_block(is_dataflow=True)
        outside = dict(self._remap)
        for param in self.params:
            self.cast_if_narrow(param)
        for binding in block.bindings:
            self.visit_binding(binding)
        for param in self.params:  # casts are visible in the block alone
            self._remap.pop(param.vid, None)
            if param.vid in outside:
                self._remap[param.vid] = outside[param.vid]
        new = self.builder_.end_block()
        same = len(new.bindings) == len(block.bindings) and all(
            [a is b for a, b in zip(new.bindings, block.bindings, strict=True)]
        )
        return block if same else new

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        value = binding.value
        if not self.builder_.current_block_is_dataflow():
            super().visit_var_binding_(binding)
            return
        if isinstance(value, Call):
            new: Any = self.call(value)
        elif isinstance(value, (Var, Tuple, TupleGetItem)):
            new = self.visit_expr(value)
        else:
            super().visit_var_binding_(binding)
            return
        new = self.builder_.normalize(new)
        if not isinstance(binding.var, DataflowVar):
            new = self.builder_.normalize(self.cast(new, _own(binding.var.struct_info_)))
        self.reemit_binding(binding, new)
        self.cast_if_narrow(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> Any:
        value = self.cast(self.visit_expr(binding.value), _own(binding.value.struct_info_))
        if value is not binding.value:
            value = self.builder_.normalizer.argument(value)
            binding = MatchCast(binding.var, value, binding.struct_info, binding.span)
        self.builder_.emit_normalized(binding)

    def call(self, call: Call) -> Call:
        args = [self.visit_expr(arg) for arg in call.args]
        policy = policy_of(call)
        if policy is Precision.KEEP_FLOAT32:
            kinds = [_own(arg.struct_info_) for arg in call.args]
        else:
            narrow = policy is Precision.ALWAYS or all([_is_castable(arg) for arg in args])
            to = _FP16 if narrow else _FP32
            kinds = [_kinds(a.struct_info_, lambda i: to if _is_real(i) else i.dtype) for a in args]
        args = [self.cast(arg, kind) for arg, kind in zip(args, kinds, strict=True)]
        same = all([a is b for a, b in zip(args, call.args, strict=True)])
        new = call if same else Call(call.op, args, call.attrs, call.sinfo_args, call.span)
        if policy is Precision.ALWAYS and _is_real(call.struct_info_):
            new = out_dtype_rule(call.op)(new, self.result)
        return new

    def cast(self, value: RelayExpr, kinds: Kinds) -> Any:
        """A value whose float tensors are of given data types."""
        if kinds is None or kinds == _own(value.struct_info_):
            return value
        if isinstance(kinds, list):
            fields = value.fields if isinstance(value, Tuple) else None
            items = fields or [TupleGetItem(value, i) for i in range(len(kinds))]
            return Tuple([self.cast(v, kind) for v, kind in zip(items, kinds, strict=True)])
        return astype(value, kinds)

    def cast_if_narrow(self, var: Var) -> None:
        """Cast a variable that is used in float16 alone where it is defined."""
        required = self.required.get(var.vid)
        if required is None:
            return
        now = self._remap.get(var.vid, var)
        own = _own(now.struct_info_)
        to = _combined(own, required, lambda a, b: b if b is _FP16 and a is _FP32 else a)
        new = self.cast(now, to)
        if new is not now:
            self._remap[var.vid] = self.builder_.emit(new)


def _is_real(info: StructInfo | None) -> bool:
    """Whether it is a tensor that may change between float16 and float32."""
    return isinstance(info, TensorStructInfo) and info.dtype in (_FP16, _FP32)


def _of_kind(info: TensorStructInfo, kind: DType) -> TensorStructInfo:
    if info.shape is not None:
        return TensorStructInfo(info.shape, kind, info.vdevice)
    return TensorStructInfo(None, kind, info.vdevice, info.ndim)
