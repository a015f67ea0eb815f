"""Normalisations and conversions of shapes become operators that other passes know.

y = nn.batch_norm(x, gamma, beta, mean, var)    ->    lv = subtract(x, expand_dims(mean)); ...
                                                      y = (lv9, mean, var)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax import op
from tvm.relax.expr import Call, Function, Tuple, TupleGetItem, const
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import ShapeExpr, ShapeStructInfo, TensorStructInfo
from tvm.tir.expr import Var as TirVar

from .pass_kinds import whole_module_pass

Rule = Callable[[Any, Call], RelayExpr]


def _scalar(value: float, dtype: Any) -> RelayExpr:
    return const(np.float32(value), dtype)


def _dtype(data: RelayExpr) -> Any:
    info = data.struct_info
    assert isinstance(info, TensorStructInfo)
    return info.dtype


def _batch_norm(builder: Any, call: Call, mean: RelayExpr, variance: RelayExpr) -> RelayExpr:
    """The normalised data by statistics of each channel."""
    data, gamma, beta = call.args[:3]
    attrs = call.attrs
    rank = data.struct_info.ndim
    others = [axis for axis in range(rank) if axis != attrs.axis % rank]

    def along(value: RelayExpr) -> RelayExpr:
        found: RelayExpr = builder.emit(op.expand_dims(value, axis=others))
        return found

    centred = builder.emit(op.subtract(data, along(mean)))
    shifted = builder.emit(op.add(along(variance), _scalar(attrs.epsilon, _dtype(data))))
    out = builder.emit(op.divide(centred, builder.emit(op.sqrt(shifted))))
    if attrs.scale:
        out = builder.emit(op.multiply(out, along(gamma)))
    if attrs.center:
        out = builder.emit(op.add(out, along(beta)))
    found: RelayExpr = out
    return found


def _is_ranked(call: Call) -> bool:
    info = call.args[0].struct_info
    return isinstance(info, TensorStructInfo) and info.ndim >= 0


def _batch_norm_for_inference(builder: Any, call: Call) -> RelayExpr:
    if not _is_ranked(call):
        return call
    mean, variance = call.args[3:]
    return Tuple([_batch_norm(builder, call, mean, variance), mean, variance])


def _batch_norm_for_training(builder: Any, call: Call) -> RelayExpr:
    if not _is_ranked(call):
        return call
    data, moving = call.args[0], call.args[3:]
    attrs = call.attrs
    rank = data.struct_info.ndim
    others = [axis for axis in range(rank) if axis != attrs.axis % rank]
    batch = [builder.emit(f(data, axis=others, keepdims=False)) for f in (op.mean, op.variance)]
    normal = _batch_norm(builder, call, *batch)
    out = builder.emit(TupleGetItem(builder.emit(Tuple([normal, *batch])), 0))
    kept, taken = [_scalar(v, _dtype(data)) for v in (1 - attrs.momentum, attrs.momentum)]

    def updated(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        parts = [builder.emit(op.multiply(kept, old)), builder.emit(op.multiply(taken, new))]
        found: RelayExpr = builder.emit(op.add(*parts))
        return found

    return Tuple([out, *[updated(old, new) for old, new in zip(moving, batch, strict=True)]])


def _layer_norm(builder: Any, call: Call) -> RelayExpr:
    data, gamma, beta = call.args
    attrs = call.attrs
    axes = list(attrs.axes)
    centred = builder.emit(op.subtract(data, builder.emit(op.mean(data, axis=axes, keepdims=True))))
    variance = builder.emit(op.variance(data, axis=axes, keepdims=True))
    shifted = builder.emit(op.add(variance, _scalar(attrs.epsilon, _dtype(data))))
    out = builder.emit(op.divide(centred, builder.emit(op.sqrt(shifted))))
    if attrs.scale:
        out = op.multiply(out, gamma)
    if attrs.center:
        out = op.add(builder.emit(out) if attrs.scale else out, beta)
    found: RelayExpr = out
    return found


def _tensor_to_shape(builder: Any, call: Call) -> RelayExpr:
    """The shape by the runtime's function, with a symbolic variable for each dimension."""
    info = call.struct_info
    if not isinstance(info, ShapeStructInfo) or info.ndim < 0:
        return call
    packed = op.call_pure_packed("vm.builtin.tensor_to_shape", call.args[0], sinfo_args=info)
    dims = [TirVar("x", "int64") for _ in range(info.ndim)]
    builder.match_cast(builder.emit(packed), ShapeStructInfo(dims), "y")
    return ShapeExpr(dims)


_FOR_INFERENCE: dict[str, Rule] = {
    "relax.nn.batch_norm": _batch_norm_for_inference,
    "relax.tensor_to_shape": _tensor_to_shape,
}
_FOR_TRAINING: dict[str, Rule] = {
    "relax.nn.batch_norm": _batch_norm_for_training,
    "relax.nn.layer_norm": _layer_norm,
    "relax.tensor_to_shape": _tensor_to_shape,
}


class _Decomposer(ExprMutator):
    def __init__(self, mod: IRModule, rules: dict[str, Rule]) -> None:
        super().__init__(mod)
        self.rules = rules

    def visit_call_(self, op: Call) -> Any:
        call = self.visit_expr_post_order(op)
        rule = self.rules.get(call.op.name) if isinstance(call.op, Op) else None
        return call if rule is None else rule(self.builder_, call)


def _pass(name: str, func_name: str | None, rules: dict[str, Rule]) -> Pass:
    def run(mod: IRModule) -> IRModule:
        if func_name is not None:
            mod.get_global_var(func_name)
        return mod.map_functions(
            lambda g, f: (
                _Decomposer(mod, rules).visit_expr(f)
                if isinstance(f, Function) and func_name in (None, g.name_hint)
                else f
            )
        )

    return whole_module_pass(name, run)


def DecomposeOpsForInference(func_name: str | None = None) -> Pass:
    """Let batch normalisation use its running statistics, as operators of elements.

    Parameters
    ----------
    func_name : str, optional
        The function; by default all.
    """
    return _pass("DecomposeOpsForInference", func_name, _FOR_INFERENCE)


def DecomposeOpsForTraining(func_name: str | None = None) -> Pass:
    """Let normalisations compute the statistics of a batch, as operators that have gradients.

    Parameters
    ----------
    func_name : str, optional
        The function; by default all.
    """
    return _pass("DecomposeOpsForTraining", func_name, _FOR_TRAINING)


__all__ = ["DecomposeOpsForInference", "DecomposeOpsForTraining"]
