"""Run convolutions and dense layers in the data layout that suits the target.

    nn.relu(nn.conv2d(%x, %w))   ->   %0 = layout_transform(%x, "NCHW", "NCHW16c");
                                      %1 = nn.contrib_conv2d_NCHWc(%0, ...);
                                      %2 = nn.relu(%1);
                                      layout_transform(%2, "NCHW16c", "NCHW")

An operator's `alter_layout` facet gives the new call. The result stays
in its blocked layout for as long as the `infer_layout` facets of the operators that read it can
work in it; a transform back is inserted only where somebody needs the plain tensor.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.rewrite_layouts import LayoutRewriter
from tvm.topi.rewrites import ALTERATIONS, users_rewrite


def by_facet(
    call: Call, args: list[RelayExpr], arg_types: list[Type], out_type: Type
) -> RelayExpr | None:
    """What users or the operator's `alter_layout` facet make of a call over new arguments.

    Tensors without elements have no layout that would suit them better.
    """
    rewrites = (users_rewrite(ALTERATIONS, call.operator.name), call.operator.alter_layout)
    types = (*arg_types, out_type)
    if any([isinstance(ty, TensorType) and ty.is_empty for ty in types]):
        return None
    for alter in rewrites:
        altered: RelayExpr | None = alter and alter(call.attrs, args, arg_types, out_type)
        if altered is not None:
            return altered
    return None


@relay_pass("AlterOpLayout", opt_level=2)
def alter_op_layout(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Apply the `alter_layout` facets for the current target; without one, those of users."""
    if is_primitive(func):
        return func
    result = LayoutRewriter(by_facet).run(func)
    assert isinstance(result, Function)
    return result


AlterOpLayout = alter_op_layout.factory
