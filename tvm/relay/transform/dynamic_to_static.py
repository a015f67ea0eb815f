"""Replace operators on shapes of the run by those on shapes of attributes, where these are known.

dyn.reshape(%x, shape_of(%y))    ->    reshape(%x, newshape=[2, 3])    where %y is (2, 3)
"""

from __future__ import annotations

from typing import TypeGuard

from tvm.error import TypeCheckError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, If
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass, map_relay_functions
from tvm.relay.transform.fold_constant import ConstantFolder
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import post_order, rewrite_function


def dynamic_to_static(func: Function) -> Function:
    """Apply the `make_static` facets, from the inside out: one may make the next one known."""
    if not any([_is_dynamic(node) or isinstance(node, If) for node in post_order(func)]):
        return func
    folder = ConstantFolder(fold_qnn=True)
    folded: dict[int, RelayExpr] = {}

    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(new, If):
            return folder.visit_if(new, new)
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


class _StaticTyping(FunctionPass):
    """The pass, on programs too that have types only once their shapes are static.

    Such are results whose rank is known at the run, and branches of other shapes.
    """

    def run(self, mod: IRModule, context: PassContext) -> IRModule:
        try:
            return super().run(mod, context)
        except TypeCheckError:
            return super().run(map_relay_functions(mod, _static_or_untyped), context)


def _static_or_untyped(func: Function) -> Function:
    try:
        return dynamic_to_static(func)
    except TypeCheckError:
        return func  # with an error that inference tells of the program as it was written


_PASS = _StaticTyping(
    lambda func, mod, context: dynamic_to_static(func), PassInfo(0, "DynamicToStatic")
)


def DynamicToStatic() -> Pass:
    """Make shapes attributes where they are known."""
    return _PASS
