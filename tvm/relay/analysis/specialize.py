"""A polymorphic function at the types of one call.

fn [A](%x: A) -> A { %x }   called with a float32   ->   fn (%x: float32) -> float32 { %x }
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import known_type
from tvm.relay.analysis.unify import Binding, instantiate, is_incomplete, unify
from tvm.relay.expr import Call, InferredTypes, Var
from tvm.relay.function import Function
from tvm.relay.traverse import rewrite_post_order


def specialized(func: Function, call: Call) -> Function:
    """`func` without type parameters; the same function if the typed `call` does not tell them."""
    if not func.type_params:
        return func
    binding: Binding = {id(parameter): None for parameter in func.type_params}
    told = () if isinstance(call.type_args, InferredTypes) else call.type_args
    for parameter, given in zip(func.type_params, told, strict=False):
        binding[id(parameter)] = given
    pairs = [
        (p.type_annotation, known_type(a)) for p, a in zip(func.params, call.args, strict=True)
    ]
    for declared, found in [*pairs, (func.ret_type, known_type(call))]:
        if declared is not None and found is not None and not unify(declared, found, binding):
            return func
    if any([ty is None or is_incomplete(ty) for ty in binding.values()]):
        return func
    made = rewrite_post_order(func, lambda old, new: _instantiated(new, binding))
    assert isinstance(made, Function)
    return made.replace(type_params=())


def _instantiated(node: RelayExpr, binding: Binding) -> RelayExpr:
    if isinstance(node, Var) and node.type_annotation is not None:
        ty = instantiate(node.type_annotation, binding)
        return node if ty is node.type_annotation else Var(node.name_hint, ty, node.span)
    if isinstance(node, Function) and node.ret_type is not None:
        return node.replace(ret_type=instantiate(node.ret_type, binding))
    if isinstance(node, Call) and node.type_args and not isinstance(node.type_args, InferredTypes):
        return node.replace(type_args=tuple([instantiate(ty, binding) for ty in node.type_args]))
    return node
