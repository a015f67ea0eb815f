"""Gradients of straight-line functions.

    fn (%x) { exp(%x) }    ->    fn (%x) { (exp(%x), (multiply(ones_like(exp(%x)), exp(%x)),)) }

The graph is walked once, users before what they use; where a value is used twice its gradients
are added. Control flow, closures and references are for the higher-order mode.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var, field_of, fields_of
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import map_relay_functions
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.normal_form import inline_lets
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import post_order, substitute
from tvm.target import Target

# of a tensor its gradient, of a tuple those of its fields; None where nothing flows back
Flow = "RelayExpr | list[Flow] | None"


def first_order_gradient(func: Function, mod: IRModule | None = None) -> Function:
    """The function that returns the value and the gradient of each parameter."""
    infer_type_of(func, mod)
    func = inline_lets(func)
    infer_type_of(func, mod)
    walk = _Backward()
    walk.add(func.body, _mapped(func.body, infer_type_of(func.body), ops.ones_like))
    for node in reversed(post_order(func.body)):
        walk.visit(node)
    gradients = [walk.total(p, infer_type_of(p)) for p in func.params]
    body = Tuple([func.body, Tuple(gradients)])
    return Function(func.params, body, None, func.type_params, func.attrs)


class _Backward:
    """The gradients gathered so far, by expression."""

    def __init__(self) -> None:
        self.flows: dict[int, object] = {}

    def visit(self, node: RelayExpr) -> None:
        """Pass on the gradient of a node whose users have all been met."""
        if isinstance(node, (Var, Constant, Op)) or (flow := self.flows.get(id(node))) is None:
            return
        if isinstance(node, Tuple):
            assert isinstance(flow, list)
            for field, part in zip(node.fields, flow, strict=True):
                self.add(field, part)
        elif isinstance(node, TupleGetItem):
            whole = infer_type_of(node.tuple_value)
            assert isinstance(whole, TupleType)
            parts: list[object] = [None] * len(whole.fields)
            parts[node.index] = flow
            self.add(node.tuple_value, parts)
        elif is_operator_call(node):
            gradients = operator_gradients(node, self.total(node, infer_type_of(node)))
            for arg, gradient in zip(node.args, gradients, strict=True):
                self.add(arg, _spread(gradient, infer_type_of(arg)))
        elif not isinstance(node, GlobalVar):
            raise TVMError(
                "the first-order gradient requires operators, tuples and lets, "
                f"got a {type(node).__name__}",
                at=node,
                hint='use mode="higher_order"',
            )

    def add(self, node: RelayExpr, flow: object) -> None:
        """One more gradient of an expression."""
        known = self.flows.get(id(node))
        self.flows[id(node)] = flow if known is None else _sum(known, flow)

    def total(self, node: RelayExpr, ty: Type) -> RelayExpr:
        """The whole gradient of an expression, zeros where nothing flows back."""
        return _filled(self.flows.get(id(node)), node, ty)


def operator_gradients(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The gradients of the arguments of a typed call."""
    assert isinstance(call.op, Op)
    infer_type_of(call)
    infer_type_of(grad)
    if call.op.gradient is None:
        return _gradients_of_composition(call.op, call, grad)
    gradients = list(call.op.gradient(call, grad))
    if len(gradients) != len(call.args):
        raise TVMError(
            f"the gradient of {call.op.name} must give {len(call.args)} expressions, "
            f"one for each argument, got {len(gradients)}"
        )
    for gradient in gradients:
        infer_type_of(gradient)
    return gradients


def _gradients_of_composition(op: Op, call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """By the simpler operators that a call is written by before kernels are made."""
    types = [infer_type_of(arg) for arg in call.args]
    stands = [Var(f"x{i}", ty) for i, ty in enumerate(types)]
    composed = _composition(op, Call(op, tuple(stands), call.attrs), types)
    if composed is None:
        raise OpNotImplemented(
            f"operator {op.name} has no gradient",
            hint=f'give it one: @relay.op.register_gradient("{op.name}")',
        )
    ty = infer_type_of(composed)
    walk = _Backward()
    walk.add(composed, _spread(grad, ty))
    for node in reversed(post_order(composed)):
        walk.visit(node)
    given = dict(zip(stands, call.args, strict=True))
    gradients = [substitute(walk.total(v, t), given) for v, t in zip(stands, types, strict=True)]
    for gradient in gradients:
        infer_type_of(gradient)
    return gradients


def _composition(op: Op, call: Call, types: Sequence[Type]) -> RelayExpr | None:
    infer_type_of(call)
    found: RelayExpr | None = None
    if op.composition is not None:
        found = op.composition(call, types)
    elif op.simplify is not None:
        found = op.simplify(call, types)
    if found is None and op.legalize is not None:
        with Target("llvm"):
            found = op.legalize(call.attrs, call.args, [*types, infer_type_of(call)])
    return found


def _sum(a: object, b: object) -> object:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, list) and isinstance(b, list):
        return [_sum(x, y) for x, y in zip(a, b, strict=True)]
    total = ops.add(a, b)
    infer_type_of(total)
    return total


def _spread(gradient: RelayExpr, ty: Type) -> object:
    """A gradient in the form that flows have."""
    if not isinstance(ty, TupleType):
        return gradient
    fields = fields_of(gradient, len(ty.fields))
    return [_spread(g, t) for g, t in zip(fields, ty.fields, strict=True)]


def _mapped(node: RelayExpr, ty: Type, op: Op) -> object:
    if isinstance(ty, TupleType):
        return [_mapped(field_of(node, i), t, op) for i, t in enumerate(ty.fields)]
    if not isinstance(ty, TensorType):
        raise TVMError(f"the first-order gradient requires tensors and tuples, got {ty}")
    filled = op(node)
    infer_type_of(filled)
    return filled


def _filled(flow: object, node: RelayExpr, ty: Type) -> RelayExpr:
    if isinstance(ty, TupleType):
        flows = flow if isinstance(flow, list) else [None] * len(ty.fields)
        fields = zip(flows, ty.fields, strict=True)
        return Tuple([_filled(f, field_of(node, i), t) for i, (f, t) in enumerate(fields)])
    if flow is None:
        flow = _mapped(node, ty, ops.zeros_like)
    assert isinstance(flow, RelayExpr)
    return flow


def FirstOrderGradient() -> Pass:
    """The pass that puts its gradient in place of every function."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        mod = infer_types(mod)
        return infer_types(map_relay_functions(mod, lambda f: first_order_gradient(f, mod)))

    return ModulePass(run, PassInfo(0, "FirstOrderGradient"))
