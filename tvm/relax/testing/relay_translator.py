"""Functions of relay as relax functions that call the loop programs of relay's operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import tir
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Tuple, Var
from tvm.relax.frontend.relay import Translator, program_name
from tvm.relax.op.base import call_tir
from tvm.relax.struct_info import TensorStructInfo
from tvm.relay import expr as graphs
from tvm.relay.function import Function
from tvm.relay.pipeline import optimization
from tvm.relay.program import bind_params_by_name
from tvm.target import Target
from tvm.target.versions import layout_target


def from_relay(
    func: Function,
    target: Target | str,
    relay_params: Mapping[str, Any] | None = None,
    *,
    opt_level: int = 3,
    pass_config: Mapping[str, Any] | None = None,
    instruments: Sequence[Any] | None = None,
    disabled_pass: Sequence[str] | None = None,
    translate_op_with_tir: Mapping[str, tir.PrimFunc] | None = None,
    append_op_attrs: bool = False,
) -> IRModule:
    """Translate a function of relay, after relay's graph passes.

    Parameters
    ----------
    func : relay.Function
        Of operators alone; dimensions that are `relay.Any` become variables.
    target : Target or str
        What the loop programs are for.
    relay_params : dict, optional
        Values of parameters by name.
    opt_level, pass_config, instruments, disabled_pass
        Of the `PassContext` of relay's passes.
    translate_op_with_tir : dict of str to PrimFunc, optional
        Loop programs of operators by name.
    append_op_attrs : bool
        Note operators and their attributes as attributes ``op_attrs`` of the loop programs.

    Returns
    -------
    IRModule
        With the function ``main`` and the loop programs.
    """
    target = Target(target)
    if relay_params:
        func = bind_params_by_name(func, relay_params)
    context = PassContext(
        opt_level=opt_level, config=dict(pass_config or {}), instruments=list(instruments or ()),
        disabled_pass=list(disabled_pass or ()),
    )  # fmt: skip
    with context, target, layout_target(target):
        main = optimization()(IRModule.from_expr(func))["main"]
    builder = BlockBuilder()
    params = [_parameter(p) for p in main.params]
    with builder.function("main", params):
        translator = _ProgramTranslator(
            builder, target, translate_op_with_tir or {}, append_op_attrs
        )
        with builder.dataflow():
            for var, param in zip(main.params, params, strict=True):
                translator.bind(var, param)
            value = translator.run(main.body)
            output = builder.emit_output(Tuple(value) if isinstance(value, list) else value)
        builder.emit_func_output(output)
    return builder.get()


def _parameter(param: graphs.Var) -> Var:
    ty = param.checked_type
    if not hasattr(ty, "shape"):
        raise TVMError(f"from_relay requires tensors as parameters, got {param.name_hint} of {ty}")
    dims = [
        tir.Var(f"{param.name_hint}_{i}", "int64") if isinstance(d, tir.Any) else d
        for i, d in enumerate(ty.shape)
    ]
    return Var(param.name_hint, TensorStructInfo(dims, str(ty.dtype)))


class _ProgramTranslator(Translator):
    """Calls a loop program for each operator."""

    def __init__(
        self,
        builder: BlockBuilder,
        target: Target,
        programs: Mapping[str, tir.PrimFunc],
        append_op_attrs: bool,
    ) -> None:
        super().__init__(builder, {}, target)
        self.programs = programs
        self.append_op_attrs = append_op_attrs

    def fields(self, values: list[Any]) -> list[Any]:
        self.emit(Tuple(values))
        return [self.emit(value) for value in values]

    def loop_program(self, call: graphs.Call, args: Sequence[Any]) -> Any:
        op = call.operator
        if (given := self.programs.get(op.name)) is not None:
            info = TensorStructInfo(self.result_dims(call, args), call.checked_type.dtype)
            return call_tir(self.builder.add_func(given, program_name(op)), list(args), info)
        return super().loop_program(call, args)

    def program_attrs(self, call: graphs.Call) -> dict[str, Any] | None:
        if not self.append_op_attrs:
            return None
        fields = {} if call.attrs is None else dict(call.attrs.items())
        return {"op_attrs": {"op_name": call.operator.name, **fields}}
