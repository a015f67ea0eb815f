"""Join many tensors in several steps, for targets whose kernels take few arguments.

    concatenate((%a, %b, %c))    ->    %0 = concatenate(stop_fusion((%a, %b)));
                                       concatenate(stop_fusion((%0, %c)))

The steps are separated by `annotation.stop_fusion`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_post_order
from tvm.relay.ty import kernel_arguments, open_extents


def SplitArgs(max_function_args: int) -> Pass:
    """The pass; no concatenation takes more than `max_function_args` arguments (0: any number)."""
    if max_function_args < 0 or max_function_args == 1:
        raise ValueError(f"SplitArgs requires 0 or at least 2 arguments, got {max_function_args}")

    def split(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not calls(new, ops.concatenate) or not isinstance(new.args[0], Tuple):
            return new
        result = infer_type_of(old)
        most = max_function_args - kernel_arguments(result) + open_extents(result)
        return _joined_in_steps(new, new.args[0], kernel_arguments(result), most)

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        result = rewrite_post_order(func, split) if max_function_args else func
        assert isinstance(result, Function)
        return result

    return FunctionPass(run, PassInfo(1, "SplitArgs"))


def _joined_in_steps(call: Call, whole: Tuple, of_step: int, most: int) -> Call:
    """A concatenation in steps of at most `most` arguments; the result of a step is `of_step`."""
    counts = [kernel_arguments(infer_type_of(field)) for field in whole.fields]
    if sum(counts) < most:
        return call
    parts: list[RelayExpr] = []
    count = 0
    for field, of_field in zip(whole.fields, counts, strict=True):
        if len(parts) > 1 and count + of_field > most:
            parts, count = [_joined(call, parts)], of_step
        parts.append(field)
        count += of_field
    return _joined(call, parts)


def _joined(call: Call, fields: Sequence[RelayExpr]) -> Call:
    return call.replace(args=(ops.annotation.stop_fusion(Tuple(fields)),))
