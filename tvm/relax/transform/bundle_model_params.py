"""The parameters of a model become one tuple.

main(x, b, c)    ->    main(x, params)        b = params[0]; c = params[1]
"""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.expr import Function, TupleGetItem, Var
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import TupleStructInfo

from .pass_kinds import relax_pass


class _Bundler(ExprMutator):
    """Reads a field of the tuple where a parameter is used."""

    def __init__(self, mod: IRModule | None, tuple_name: str) -> None:
        super().__init__(mod)
        self.tuple_name = tuple_name
        self.fields: dict[Var, TupleGetItem] = {}

    def visit_function_(self, op: Function) -> Any:
        count = op.attrs.get("num_input")
        if self.fields or count is None:
            return super().visit_function_(op)
        inputs, rest = op.params[: int(count)], op.params[int(count) :]
        bundle = Var(self.tuple_name, TupleStructInfo([p.struct_info for p in rest]))
        self.fields = {param: TupleGetItem(bundle, i) for i, param in enumerate(rest)}
        new = Function(
            [*inputs, bundle], op.body, op.ret_struct_info, op.is_pure, op.attrs, op.span
        )
        return super().visit_function_(new)

    def visit_var_(self, op: Var) -> Any:
        if (field := self.fields.get(op)) is not None:
            return self.builder_.emit(field, op.name_hint)
        return super().visit_var_(op)


def bundle_params(
    func: Function, mod: IRModule | None = None, tuple_name: str | None = None
) -> Function:
    """A function whose attribute ``num_input`` is set, with the parameters behind those as a tuple."""
    found: Function = _Bundler(mod, tuple_name or "model_params").visit_expr(func)
    return found


def BundleModelParams(param_tuple_name: str | None = None) -> Pass:
    """Let functions with ``num_input`` take the parameters of their model as one tuple.

    Parameters
    ----------
    param_tuple_name : str, optional
        The name of the tuple, by default ``"model_params"``.
    """
    return relax_pass(
        "BundleModelParams", lambda func, mod: bundle_params(func, mod, param_tuple_name)
    )


__all__ = ["BundleModelParams", "bundle_params"]
