"""Help for back ends."""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relax.expr import Function
from tvm.relax.expr_functor import PyExprMutator
from tvm.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from tvm.relax.transform import PatternCheckContext
from tvm.target import Target


def has_leaking_intermediate_variables(context: PatternCheckContext) -> bool:
    """Whether something outside a match uses a value inside that is not its result."""
    result = context.value_to_bound_var[context.matched_expr]
    inside = context.matched_bindings
    return any(
        [
            var is not result
            and any([user not in inside for user in context.var_usages.get(var, ())])
            for var in inside
        ]
    )


class BackendDispatcher(PyExprMutator):
    """The base of mutators that choose implementations by the target.

    Parameters
    ----------
    mod : IRModule
    """

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)

    def transformed(self) -> IRModule:
        """The module, each of its functions of relax rewritten."""
        for gvar, func in self.builder_.get().functions_items():
            if isinstance(func, Function) and (new := self.visit_expr(func)) is not func:
                self.builder_.update_func(gvar, new)
        return self.builder_.finalize()

    @staticmethod
    def is_gpu_target(target: Target) -> bool:
        """Whether a target is a GPU."""
        return "gpu" in target.keys

    def get_shape_dtype(self, expr: RelayExpr) -> tuple[Any, str]:
        """The shape and the data type of a tensor.

        Raises
        ------
        TVMError
            If the expression is no tensor, or its shape is not known.
        """
        info = expr.struct_info
        if not isinstance(info, TensorStructInfo) or info.dimensions is None:
            raise TVMError(f"a tensor of known shape is required, got {info}", at=expr)
        return info.shape, str(info.dtype)

    def _get_target(self, sinfo: StructInfo) -> Target:
        """The target of the device where a value lives; by default the current one."""
        if isinstance(sinfo, TupleStructInfo):
            targets = {
                str(target): target for target in [self._get_target(f) for f in sinfo.fields]
            }
            if len(targets) != 1:
                raise TVMError(
                    f"the fields of a tuple must live on one device, got {list(targets)}"
                )
            return next(iter(targets.values()))
        device = sinfo.vdevice if isinstance(sinfo, TensorStructInfo) else None
        target = Target.current() if device is None else device.target
        if target is None:
            raise TVMError("a target is required here", hint="with tvm.target.Target(...): ...")
        return target


def shape_of(expr: RelayExpr) -> tuple[Any, ...] | None:
    """The dimensions of a tensor, if they are known: numbers as such."""
    info: Any = expr.struct_info_
    dims = info.dimensions if isinstance(info, TensorStructInfo) else None
    return None if dims is None else tuple([getattr(d, "value", d) for d in dims])


def dtype_of(expr: RelayExpr) -> str:
    """The data type of a tensor."""
    info: Any = expr.struct_info_
    return str(info.dtype) if isinstance(info, TensorStructInfo) else ""


__all__ = ["BackendDispatcher", "dtype_of", "has_leaking_intermediate_variables", "shape_of"]
