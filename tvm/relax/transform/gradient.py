"""Reverse-mode automatic differentiation of a function.

def main(x):                 def main_adjoint(x):
    lv = multiply(x, x)          lv = multiply(x, x)
    gv = sum(lv)        ->       gv = sum(lv)
    return gv                    gv_adjoint = ones(())
                                 lv_adjoint = broadcast_to(gv_adjoint, (3, 3))
                                 x_adjoint = multiply(lv_adjoint, x) + multiply(lv_adjoint, x)
                                 return (gv, (x_adjoint,))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.analysis import remove_all_unused
from tvm.relax.analysis.variables import used_vars
from tvm.relax.base import update_struct_info
from tvm.relax.bind import copy_with_new_vars
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Binding,
    Call,
    DataflowBlock,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    get_shape_of,
)
from tvm.relax.op.base import without_te_grad
from tvm.relax.op.binary import add
from tvm.relax.op.create import ones, zeros
from tvm.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

from .checkpoints import Forward, without_checkpoints
from .pass_kinds import whole_module_pass

# functions of tensor expressions that compute gradients, registered under names of call_tir_with_grad
TE_GRADIENTS = "tvm.relax.te_grad._register."
_WITH_GRAD, _NO_GRAD = Op.get("relax.call_tir_with_grad"), Op.get("relax.grad.no_grad")


def Gradient(
    func_name: str, require_grads: Var | Sequence[Var] | None = None, target_index: int = 0
) -> Pass:
    """Add a function that computes another one's result and the gradients of it.

    Parameters
    ----------
    func_name : str
        The function, whose body is one dataflow block. The new one is ``func_name + "_adjoint"``;
        it returns ``(result, (gradient of each variable,))``.
    require_grads : Var or list of Var, optional
        The variables, parameters or bound in the function; by default all parameters.
    target_index : int
        Which field of the result is differentiated, if it is a tuple. It is a float scalar.

    Raises
    ------
    TVMError
        If the function, the target or a variable is not of that kind, or an operator on the way has
        no gradient.
    """
    wanted = [require_grads] if isinstance(require_grads, Var) else require_grads

    def run(mod: IRModule) -> IRModule:
        gvar = mod.get_global_var(func_name)
        func = mod[gvar]
        if not isinstance(func, Function):
            raise TVMError(f"Gradient requires a relax function, got {func_name}")
        builder = BlockBuilder(mod)
        made = _adjoint(func, builder, func_name, wanted, target_index)
        builder.add_func(made, f"{func_name}_adjoint")
        return builder.get()

    return whole_module_pass("Gradient", run)


def _adjoint(
    func: Function, builder: BlockBuilder, name: str, wanted: Any, target_index: int
) -> Function:
    _check_one_block(func, name)
    copy = copy_with_new_vars(func)
    requires = _variables(func, copy, wanted, name)
    target = _target(copy, target_index)
    block = copy.body.blocks[0]
    forward = without_checkpoints(block.bindings)
    requires = [forward.aliases.get(v, v) for v in requires]
    builder.begin_scope(copy.params)
    builder.begin_block(is_dataflow=True)
    for binding in forward.bindings:
        builder.emit_normalized(_without_gradient_name(binding))
    backward = _Backward(builder, forward, requires)
    results = backward.run(target, requires)
    made = DataflowBlock(builder.end_block().bindings)
    builder.end_scope()
    body = Tuple([copy.body.body, Tuple(results)])
    seq = SeqExpr([made], body)
    update_struct_info(seq, body.struct_info_)
    attrs = dict(copy.attrs or {})
    if "global_symbol" in attrs:
        attrs["global_symbol"] = f"{name}_adjoint"
    found: Function = remove_all_unused(Function(copy.params, seq, None, copy.is_pure, attrs))
    return found


def _check_one_block(func: Function, name: str) -> None:
    blocks = func.body.blocks
    if len(blocks) != 1 or not isinstance(blocks[0], DataflowBlock):
        kinds = ", ".join([type(block).__name__ for block in blocks]) or "none"
        raise TVMError(f"Gradient requires {name} to be one dataflow block, got blocks: {kinds}")


def _variables(func: Function, copy: Function, wanted: Any, name: str) -> list[Var]:
    """The variables of the copy whose gradients are wanted."""
    names = dict(zip([p.vid for p in func.params], copy.params, strict=True))
    pairs = zip(func.body.blocks[0].bindings, copy.body.blocks[0].bindings, strict=True)
    names.update({old.var.vid: new.var for old, new in pairs})
    found = []
    for var in func.params if wanted is None else wanted:
        if var.vid not in names:
            raise TVMError(f"Gradient requires variables of {name}, got {var.name_hint}")
        if not _is_float(var.struct_info):
            raise TVMError(
                f"Gradient requires float tensors and tuples of such, got {var.name_hint} which is "
                f"{var.struct_info}"
            )
        found.append(names[var.vid])
    return found


def _is_float(info: StructInfo) -> bool:
    if isinstance(info, TupleStructInfo):
        return all([_is_float(field) for field in info.fields])
    return isinstance(info, TensorStructInfo) and info.dtype.is_float


def _target(func: Function, index: int) -> Var:
    body = func.body.body
    fields = list(body.fields) if isinstance(body, Tuple) else [body]
    if not 0 <= index < len(fields):
        raise TVMError(f"Gradient requires target_index below {len(fields)}, got {index}")
    target, info = fields[index], fields[index].struct_info
    is_scalar = isinstance(info, TensorStructInfo) and info.ndim == 0 and info.dtype.is_float
    if not (isinstance(target, Var) and is_scalar):
        raise TVMError(f"Gradient requires a float scalar to differentiate, got {target}: {info}")
    return target


def _without_gradient_name(binding: Binding) -> Binding:
    """call_tir_with_grad as call_tir."""
    value = binding.value
    if not (isinstance(value, Call) and value.op is _WITH_GRAD):
        return binding
    call = without_te_grad(value)
    update_struct_info(call, value.struct_info_)
    return binding.replace(value=call)


def _inputs(call: Call) -> tuple[RelayExpr, ...]:
    """The inputs of a loop program."""
    inputs = call.args[1]
    assert isinstance(inputs, Tuple)
    return inputs.fields


def _item(value: RelayExpr, index: int) -> RelayExpr:
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)


def _zeros(info: StructInfo, of: RelayExpr) -> RelayExpr:
    if isinstance(info, TupleStructInfo):
        return Tuple([_zeros(f, TupleGetItem(of, i)) for i, f in enumerate(info.fields)])
    assert isinstance(info, TensorStructInfo)
    found: RelayExpr = zeros(get_shape_of(of), info.dtype)
    return found


def _sum(a: RelayExpr, b: RelayExpr, info: StructInfo) -> RelayExpr:
    """The sum of gradients, field by field."""
    if isinstance(info, TupleStructInfo):
        return Tuple([_sum(_item(a, i), _item(b, i), f) for i, f in enumerate(info.fields)])
    found: RelayExpr = add(a, b)
    return found


class _Backward:
    """Emits gradients, from the last binding to the first."""

    def __init__(self, builder: BlockBuilder, forward: Forward, requires: Sequence[Var]) -> None:
        self.builder = builder
        self.forward = forward
        self.adjoints: dict[Var, Var] = {}
        self.again: dict[Var, Var] = {}  # variables that were computed again
        # what depends on the variables whose gradients are wanted
        self.relevant: dict[Var, None] = dict.fromkeys(requires)
        for binding in forward.bindings:
            if any([var in self.relevant for var in used_vars(binding.value)]):
                self.relevant[binding.var] = None

    def run(self, target: Var, requires: Sequence[Var]) -> list[Var]:
        """The gradients of the target."""
        self.update(target, ones((), target.struct_info.dtype))
        for binding in self.forward.bindings[::-1]:
            adjoint = self.adjoints.get(binding.var)
            if adjoint is not None:
                self.binding(binding, adjoint)
        return [self.result(var) for var in requires]

    def result(self, var: Var) -> Var:
        name = f"{var.name_hint}_adjoint"
        found = self.adjoints.get(var)
        if found is None:
            found = self.builder.emit(_zeros(var.struct_info, var), name)
        return self.builder.emit_output(found, f"{name}_out")

    def binding(self, binding: Binding, adjoint: Var) -> None:
        value = binding.value
        if isinstance(value, Call):
            if any([var in self.relevant for var in used_vars(value)]):
                self.call(binding, value, adjoint)
        elif isinstance(value, TupleGetItem):
            self.update_field(value.tuple_value, value.index, adjoint)
        else:
            self.update(value, adjoint)

    def call(self, binding: Binding, call: Call, adjoint: Var) -> None:
        if isinstance(binding, MatchCast):
            raise TVMError(f"Gradient requires bindings without match_cast of calls, got {binding}")
        rule = call.op.gradient if isinstance(call.op, Op) else None
        if call.op is _WITH_GRAD:
            operands, grads = _inputs(call), self.te_gradients(binding.var, call, adjoint)
        elif rule is None:
            raise TVMError(
                f"Gradient requires operators with a gradient, got {call.op} in {binding.var}",
                hint="relax.op.register_gradient registers one; call_tir_with_grad names that of a "
                "loop program",
            )
        else:
            var, now = self.recomputed(binding.var, call)
            operands, grads = call.args, rule(var, now, adjoint, self.builder)
        for operand, grad in zip(operands, grads, strict=True):
            if not (isinstance(grad, Call) and grad.op is _NO_GRAD):
                self.update(operand, grad)

    def te_gradients(self, var: Var, call: Call, adjoint: Var) -> list[RelayExpr]:
        name = call.attrs.te_grad_name
        rule = get_global_func(f"{TE_GRADIENTS}{name}", allow_missing=True)
        if rule is None:
            raise TVMError(
                f"Gradient requires a registered gradient of tensor expressions, got {name!r}",
                hint="relax.training.utils.register_te_gradient registers one",
            )
        var, call = self.recomputed(var, call)
        count = len(_inputs(call))
        found = self.builder.emit(rule(var, call, adjoint, self.builder))
        return [found] if count == 1 else [TupleGetItem(found, i) for i in range(count)]

    # ---- adjoints

    def update(self, of: RelayExpr, grad: RelayExpr) -> None:
        """Add a gradient to that of a variable, or of each field of a tuple."""
        if isinstance(of, Tuple):
            if not any([var in self.relevant for var in used_vars(of)]):
                return
            if not isinstance(grad, (Var, Tuple)):
                grad = self.builder.emit(grad)
            for i, field in enumerate(of.fields):
                self.update(field, _item(grad, i))
        elif isinstance(of, Var) and of in self.relevant and _is_float(of.struct_info):
            known = self.adjoints.get(of)
            total = grad if known is None else _sum(known, grad, of.struct_info)
            self.adjoints[of] = self.builder.emit(total, f"{of.name_hint}_adjoint")

    def update_field(self, whole: RelayExpr, index: int, grad: Var) -> None:
        """Add a gradient to that of one field of a variable."""
        if not (isinstance(whole, Var) and whole in self.relevant and _is_float(whole.struct_info)):
            return
        known, infos = self.adjoints.get(whole), whole.struct_info.fields
        fields: list[RelayExpr] = []
        for i, info in enumerate(infos):
            if known is None:
                fields.append(grad if i == index else _zeros(info, TupleGetItem(whole, i)))
            else:
                own = TupleGetItem(known, i)
                fields.append(_sum(own, grad, info) if i == index else own)
        self.adjoints[whole] = self.builder.emit(Tuple(fields), f"{whole.name_hint}_adjoint")

    # ---- values of checkpoints

    def recomputed(self, var: Var, call: Call) -> tuple[Var, Call]:
        """A variable and its definition, over values that are kept or were computed again."""
        if not self.forward.recomputed:
            return var, call
        args = self.values(call)
        if args is call:
            return self.value(var), call
        assert isinstance(args, Call)
        update_struct_info(args, call.struct_info_)
        return self.value(var), args

    def values(self, expr: RelayExpr) -> Any:
        """An expression over values that are kept or were computed again."""
        if isinstance(expr, Var):
            return self.value(expr)
        if isinstance(expr, Call):
            args = [self.values(arg) for arg in expr.args]
            same = all([a is b for a, b in zip(args, expr.args, strict=True)])
            return expr if same else Call(expr.op, args, expr.attrs, expr.sinfo_args, expr.span)
        if isinstance(expr, Tuple):
            return Tuple([self.values(field) for field in expr.fields])
        if isinstance(expr, TupleGetItem):
            return TupleGetItem(self.values(expr.tuple_value), expr.index)
        return expr

    def value(self, var: Var) -> Var:
        """The variable, or the one that its definition is bound to again."""
        binding = self.forward.recomputed.get(var)
        if binding is None:
            return var
        if (known := self.again.get(var)) is None:
            value = self.values(_without_gradient_name(binding).value)
            known = self.again[var] = self.builder.emit(value, f"{var.name_hint}_cp")
        return known
