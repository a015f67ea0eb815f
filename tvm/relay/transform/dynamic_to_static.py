"""Replace operators on shapes of the run by those on shapes of attributes, where these are known.

dyn.reshape(%x, shape_of(%y))    ->    reshape(%x, newshape=[2, 3])    where %y is (2, 3)
"""

from __future__ import annotations

from typing import TypeGuard

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.fold_constant import ConstantFolder
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import post_order, rewrite_function


@relay_pass("DynamicToStatic", opt_level=0)
def dynamic_to_static(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Apply the `make_static` facets, from the inside out: one may make the next one known."""
    if not any([_is_dynamic(node) for node in post_order(func)]):
        return func
    folder = ConstantFolder(fold_qnn=True)
    folded: dict[int, RelayExpr] = {}

    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not _is_dynamic(new):
            return new
        infer_type_of(new)
        # the data is no part of the decision: it stays as it is
        args = [
            folder.fold(arg, folded) if _decides(new, i) else arg for i, arg in enumerate(new.args)
        ]
        make_static = new.operator.make_static
        assert make_static is not None
        static = make_static(new.replace(args=tuple(args)))
        if static is not None:
            infer_type_of(static)
        return new if static is None else static

    return rewrite_function(func, rewrite)


def _is_dynamic(node: RelayExpr) -> TypeGuard[Call]:
    return is_operator_call(node) and node.operator.make_static is not None


def _decides(call: Call, position: int) -> bool:
    return bool(call.operator.get_attr("TShapeDataDependent")[position])


DynamicToStatic = dynamic_to_static.factory
