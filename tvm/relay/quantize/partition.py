"""Cut a network where values are to be stored in 8 bits: behind layers and what follows them closely.

    nn.relu(nn.conv2d(%x, %w))  ->  stop_fusion(cast_hint(nn.relu(nn.conv2d(%x, %w)), "int8"))

A rule gets a call, its new arguments and a context; an argument that may be cut is a
`QPartitionExpr`.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Constant, TempExpr
from tvm.relay.function import Function
from tvm.relay.op.annotation import cast_hint, stop_fusion
from tvm.relay.op.registry import ops
from tvm.relay.quantize.annotate import Annotator, MarkedExpr, Rewrite, rule_registry
from tvm.relay.quantize.config import QAnnotateKind, current_qconfig
from tvm.relay.quantize.context import QuantizeContext, current_context, quantize_context
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import rewrite_function

PARTITION_RULE = "FQPartitionRewrite"


class QPartitionExpr(MarkedExpr):
    """An expression behind which the network may be cut."""

    def realize(self) -> RelayExpr:
        """The expression with the cut."""
        dtype = current_qconfig().get_dtype_by_kind(QAnnotateKind.INPUT)
        return stop_fusion(cast_hint(self.expr, dtype))


def partition_expr_check(expr: Any) -> tuple[bool, RelayExpr]:
    """Whether a cut may be made behind an argument, and its expression."""
    return (True, expr.expr) if isinstance(expr, QPartitionExpr) else (False, expr)


@rule_registry(PARTITION_RULE)
def register_partition_function() -> None:
    """Register a rule for an operator: `f(ref_call, new_args, ctx)`, or None to cut its arguments."""


def _cut(value: Any) -> RelayExpr:
    return value.realize() if isinstance(value, TempExpr) else value


def conv2d_partition_function(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """Layers take cut values, and can be cut behind, unless the options skip them."""
    if quantize_context().check_to_skip(ref_call):
        return None
    args = (_cut(new_args[0]), *[partition_expr_check(a)[1] for a in new_args[1:]])
    return QPartitionExpr(ref_call.replace(args=args))


def identity_partition_function(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """What follows a layer by element goes before the cut."""
    can_cut, value = partition_expr_check(new_args[0])
    return QPartitionExpr(ref_call.replace(args=(value, *new_args[1:]))) if can_cut else None


def add_partition_generic(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """Constants are added before the cut, other values behind it."""
    return _binary(ref_call, new_args)


def mul_partition_generic(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """Constants multiply before the cut, other values behind it."""
    return _binary(ref_call, new_args)


def _binary(ref_call: Call, new_args: list[Any]) -> Any:
    (left_cut, left), (right_cut, right) = map(partition_expr_check, new_args)
    if not left_cut and not right_cut:
        return None
    if isinstance(left, Constant) or isinstance(right, Constant):
        return QPartitionExpr(ref_call.replace(args=(left, right)))
    made = ref_call.replace(args=tuple([_cut(arg) for arg in new_args]))
    return QPartitionExpr(made) if left_cut and right_cut else made


add_partition_function = add_partition_generic
multiply_partition_function = mul_partition_generic


def global_avg_pool2d_partition_function(ref_call: Call, new_args: list[Any], ctx: Any) -> Any:
    """Means are taken of cut values, and can be cut behind."""
    can_cut, _ = partition_expr_check(new_args[0])
    return QPartitionExpr(ref_call.replace(args=(_cut(new_args[0]),))) if can_cut else None


_RULES: dict[Op, Rewrite] = {
    **dict.fromkeys((ops.nn.conv2d, ops.nn.dense), conv2d_partition_function),
    **dict.fromkeys((ops.clip, ops.nn.relu, ops.nn.max_pool2d), identity_partition_function),
    **dict.fromkeys((ops.add, ops.nn.bias_add), add_partition_function),
    ops.multiply: multiply_partition_function,
    ops.nn.global_avg_pool2d: global_avg_pool2d_partition_function,
}


def partition() -> Pass:
    """Cut networks where values are to be stored in 8 bits, by the options of `qconfig`."""

    def cut(func: Function) -> Function:
        rewriter = Annotator(PARTITION_RULE, _RULES, realizes=True)
        result = rewrite_function(func, rewriter.rewrite)
        body = rewriter.marked(result.body)
        return result.replace(body=_cut(body), ret_type=None)

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        if (context := current_context()) is None:
            with QuantizeContext():
                return cut(func)
        result = cut(func)
        context.reset()  # the next pass counts the same layers
        return result

    return FunctionPass(run, PassInfo(1, "QuantizePartition"))
