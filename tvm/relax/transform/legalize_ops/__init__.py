"""Operators become calls of loop programs, made of tensor expressions.

y = add(x, x)    ->    y = call_tir(add, (x, x), out_sinfo=Tensor((2, 3), "float32"))

Operators whose shapes are not known, and those without a rule, stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import LoweringError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import register_pass_config
from tvm.ir.span import Span
from tvm.ir.transform import ModulePass, Pass, PassInfo
from tvm.relax.base import StructInfo, update_struct_info
from tvm.relax.bind import substituted
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from tvm.relax.op.legalize import has_known_shape
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo
from tvm.relax.transform.dead_code import remove_unused_functions
from tvm.target import Target
from tvm.tir import PrimFunc
from tvm.tir.stmt_functor import renew_defs

_LOGGER = logging.getLogger(__name__)
# what a program calls is no operator to be legalised
_CALLS = {"relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed"}
_TIR_CALLS = (Op.get("relax.call_tir"), Op.get("relax.call_tir_inplace"))
Rule = Callable[[BlockBuilder, Call], RelayExpr]


class _Legalizer:
    def __init__(self, mod: IRModule, rules: Mapping[str, Rule]) -> None:
        self.builder = BlockBuilder(mod)
        self.rules = rules
        self.for_targets: dict[tuple[GlobalVar, str], GlobalVar] = {}
        # variables of which more is known than was, by those that they replace
        self.refined: dict[Var, RelayExpr] = {}

    def run(self, mod: IRModule) -> IRModule:
        for gvar, func in mod.functions.items():
            if isinstance(func, Function) and not func.attrs.get("Primitive"):
                new = self._function(func)
                if new is not func:
                    self.builder.update_func(gvar, new)
        found = self.builder.get()
        # what the functions for targets were made of may have no caller
        return remove_unused_functions(found) if self.for_targets else found

    def _function(self, func: Function) -> Function:
        self.builder.begin_scope(func.params)
        body = self._sequence(func.body)
        self.builder.end_scope()
        return func if body is func.body else func.replace(body=body)

    def _sequence(self, seq: SeqExpr) -> SeqExpr:
        blocks = [self._block(block) for block in seq.blocks]
        if all([a is b for a, b in zip(blocks, seq.blocks, strict=True)]):
            return seq
        made = SeqExpr(blocks, substituted(seq.body, self.refined))
        update_struct_info(made, seq.struct_info_)
        return made

    def _block(self, block: BindingBlock) -> BindingBlock:
        builder = self.builder
        (
            builder._begin_dataflow_block
            if type(block) is not BindingBlock
            else builder._begin_binding_block
        )()
        is_same = True
        for binding in block.bindings:
            value = self._refined(binding.value)
            is_same &= value is binding.value
            if isinstance(binding, MatchCast):
                builder.emit_normalized(binding.replace(value=value))
                continue
            new = self._value(value)
            is_same &= new is value
            builder.emit_normalized(
                binding if new is binding.value else self._bound(binding.var, new)
            )
        made = builder._end_block()
        return block if is_same else made

    def _refined(self, value: RelayExpr) -> RelayExpr:
        """A value over the variables of which more is known."""
        new = substituted(value, self.refined) if self.refined else value
        if new is value or not isinstance(new, Call):
            return new
        return self.builder.normalize(Call(new.op, new.args, new.attrs, new.sinfo_args, new.span))

    def _bound(self, var: Var, value: RelayExpr) -> VarBinding:
        """A binding; the variable says as much of a shape as the value does."""
        value = self.builder.normalize(value)
        before, now = var.struct_info_, value.struct_info_
        if isinstance(before, TensorStructInfo) and before.shape is None and now is not None:
            if not isinstance(now, TensorStructInfo) or now.shape is None:
                return VarBinding(var, value)
            new = type(var)(var.name_hint, now, var.span)
            self.refined[var] = new
            return VarBinding(new, value)
        return VarBinding(var, value)

    def _value(self, value: RelayExpr) -> RelayExpr:
        if isinstance(value, If):
            branches = [self._branch(b) for b in (value.true_branch, value.false_branch)]
            if branches[0] is value.true_branch and branches[1] is value.false_branch:
                return value
            made = If(value.cond, branches[0], branches[1])
            update_struct_info(made, value.struct_info_)
            return made
        if isinstance(value, Function):
            return self._function(value)
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return value
        return _placed(self._call(value, value.op), value.span)

    def _branch(self, branch: SeqExpr) -> SeqExpr:
        self.builder.begin_scope()
        made = self._sequence(branch)
        self.builder.end_scope()
        return made

    def _call(self, call: Call, op: Op) -> RelayExpr:
        rule = self.rules.get(op.name)
        if rule is not None:
            return self._replaced(rule, call)
        packed = op.get_attr("FCallPacked")
        if packed is not None:
            callee = ExternFunc(packed)
            if op.get_attr("FPurity") is False:
                made = Call(callee, call.args, None, [call.struct_info])
            else:
                pure = Op.get("relax.call_pure_packed")
                made = Call(pure, [callee, *call.args], None, [call.struct_info])
            update_struct_info(made, call.struct_info_)
            return made
        rule = op.get_attr("FLegalize")
        infos = [] if op.get_attr("FDataDependent") else [call.struct_info_]
        if op.get_attr("RequiresArgumentShapes") is not False:
            infos.extend([arg.struct_info_ for arg in call.args])
        if rule is None:
            return call
        if not all([has_known_shape(info) for info in infos]):
            _require_dtypes(op.name, call, infos)
            return call
        return self._replaced(rule, call)

    def _replaced(self, rule: Rule, call: Call) -> RelayExpr:
        """What a rule makes of a call: operators that it uses in turn are legalised, too."""
        builder = self.builder
        builder.begin_block(builder.current_block_is_dataflow())
        made = builder.normalize(rule(builder, call))
        for binding in builder.end_block().bindings:
            new = binding.value
            if isinstance(binding, VarBinding):
                new = self._for_device(self._value(_placed(new, call.span)))
            builder.emit_normalized(
                binding if new is binding.value else VarBinding(binding.var, builder.normalize(new))
            )
        if isinstance(made, Call) and made.op is not call.op:
            return self._for_device(self._value(builder.normalize(made)))
        return self._for_device(made)

    def _for_device(self, call: RelayExpr) -> RelayExpr:
        """A call of a loop program for the target of the device where its result lives."""
        target = _target_of(call.struct_info_)
        if target is None or not isinstance(call, Call) or call.op not in _TIR_CALLS:
            return call
        gvar = call.args[0]
        assert isinstance(gvar, GlobalVar), "loop programs are functions of the module"
        func = self.builder.get().functions.get(gvar)
        if not isinstance(func, PrimFunc) or "target" in func.attrs:
            return call
        key = (gvar, str(target))
        if key not in self.for_targets:
            name = f"{gvar.name_hint}_{target.kind.name}"
            own = renew_defs(func.with_attr("target", target))
            self.for_targets[key] = self.builder.add_func(own, name)
        new = call.replace(args=(self.for_targets[key], *call.args[1:]))
        update_struct_info(new, call.struct_info_)
        return new


class UnknownDtypeError(LoweringError, AssertionError):
    """A tensor of known shape has no known dtype; programs catch an AssertionError."""


def _require_dtypes(name: str, call: Call, infos: Sequence[Any]) -> None:
    """Reject a call that has all that a loop program needs but for the data types."""
    tensors = [info for info in infos if isinstance(info, TensorStructInfo)]
    if len(tensors) < len(infos) or any([info.dimensions is None for info in tensors]):
        return
    raise UnknownDtypeError(
        f"To legalize R.{name.removeprefix('relax.')}, the data types of its operands have to be known, "
        f"got {call.args}",
        hint="say the dtype where the tensor is declared: R.Tensor(shape, dtype)",
    )


def _target_of(info: StructInfo | None) -> Target | None:
    if isinstance(info, TupleStructInfo):
        found = [_target_of(field) for field in info.fields]
        return next((target for target in found if target is not None), None)
    device = info.vdevice if isinstance(info, TensorStructInfo) else None
    return None if device is None else device.target


def _placed(value: RelayExpr, span: Span | None) -> RelayExpr:
    """A call that says where it comes from; itself if it does or nothing is known."""
    if span is None or not isinstance(value, Call) or value.span is not None:
        return value
    return value.replace(span=span)


# whether the pass does something; off where other compilers take all operators
APPLIES = "relax.transform.apply_legalize_ops"
register_pass_config(APPLIES, bool)


def _warn(mod: IRModule) -> None:
    for func in mod.functions.values():
        if not isinstance(func, Function):
            continue
        for block in func.body.blocks:
            for binding in block.bindings:
                op = getattr(binding.value, "op", None)
                if (
                    isinstance(op, Op)
                    and op.name not in _CALLS
                    and op.get_attr("FLegalize") is None
                ):
                    _LOGGER.warning("No legalization func for %s is found.", op.name)


def legalize_ops(mod: IRModule, rules: Mapping[str, Rule] | None = None) -> IRModule:
    """The module with loop programs for its operators."""
    return _Legalizer(mod, rules or {}).run(mod)


def LegalizeOps(
    customize_legalize_map: Mapping[str, Rule] | None = None, enable_warning: bool = False
) -> Pass:
    """Let operators be calls of loop programs.

    Parameters
    ----------
    customize_legalize_map : dict of str to function, optional
        Rules by the operator's name that go before its own: from (block builder, call) to the
        expression in its place.
    enable_warning : bool
        Whether operators that stay are logged.
    """

    def run(mod: IRModule, context: Any) -> IRModule:
        if not context.get(APPLIES, True):
            return mod
        new = legalize_ops(mod, customize_legalize_map)
        if enable_warning:
            _warn(new)
        return new

    return ModulePass(run, PassInfo(0, "LegalizeOps", ()))
