"""Join many tensors in several steps, for targets whose kernels take few arguments.

    concatenate((%a, %b, %c, %d))    ->    concatenate((stop(concatenate((%a, %b))), ..))

The steps are kept apart with `annotation.stop_fusion`.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Tuple
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_post_order


def SplitArgs(max_function_args: int) -> Pass:
    """The pass; no concatenation has more tensors than `max_function_args` (0: any number)."""
    if max_function_args < 0 or max_function_args == 1:
        raise ValueError(f"SplitArgs requires 0 or at least 2 arguments, got {max_function_args}")

    def split(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not calls(new, ops.concatenate) or not isinstance(new, Call):
            return new
        fields = new.args[0]
        if not isinstance(fields, Tuple) or len(fields.fields) <= max_function_args:
            return new
        parts = [
            _joined(new, fields.fields[i : i + max_function_args])
            for i in range(0, len(fields.fields), max_function_args)
        ]
        return split(old, new.replace(args=(Tuple(parts),)))

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        result = rewrite_post_order(func, split) if max_function_args else func
        assert isinstance(result, Function)
        return result

    return FunctionPass(run, PassInfo(1, "SplitArgs"))


def _joined(call: Call, fields: tuple[RelayExpr, ...]) -> RelayExpr:
    if len(fields) == 1:
        return fields[0]
    return ops.annotation.stop_fusion(call.replace(args=(Tuple(fields),)))
