"""A quantised network as three functions: conversions at its ends, integers between.

    def @main(%x: Tensor[.., float32]) {        def @quantize_inputs(%x) { (qnn.quantize(%x, ..),) }
      %0 = qnn.quantize(%x, ..);                def @quantized_main(%x: Tensor[.., int8]) { .. }
      ..                                  ->    def @dequantize_outputs(%y) { qnn.dequantize(%y, ..) }
      qnn.dequantize(%9, ..)                    def @main(%x) { @dequantize_outputs(
    }                                                           @quantized_main(..)) }

A device that computes with integers runs `quantized_main` alone.
"""

from __future__ import annotations

from collections.abc import Collection

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.op.memory.memory import flatten_tuple_type
from tvm.relay.op.registry import ops
from tvm.relay.transform import InferType
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import operands, post_order, rewrite_post_order


class NotIntegralError(TVMError, AssertionError):
    """A network that is to be fully integral is not; programs catch an AssertionError."""


def partition_conversions(
    mod: IRModule, quantized_dtypes: Collection[str], ensure_fully_integral: bool
) -> IRModule:
    """The module with `main` in three functions.

    Parameters
    ----------
    mod : a quantised network.
    quantized_dtypes : the dtypes that values have between the conversions.
    ensure_fully_integral : reject a network that computes with others between them.
    """
    main = InferType()(mod)["main"]
    entering = _entering(main)
    inner_params = {
        id(param): Var(param.name_hint, infer_type_of(entering.get(id(param), param)))
        for param in main.params
    }

    def inside(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if calls(old, ops.qnn.quantize) and id(old.args[0]) in entering:
            return inner_params[id(old.args[0])]
        return inner_params.get(id(old), new)

    body = main.body
    leaving = body if calls(body, ops.qnn.dequantize) and _is_constant(body.args[1:]) else None
    result = body if leaving is None else leaving.args[0]
    middle = Function(list(inner_params.values()), rewrite_post_order(result, inside))
    if ensure_fully_integral:
        _check_integral(middle, quantized_dtypes)
    inputs = [entering.get(id(param), param) for param in main.params]
    output = Var("output", infer_type_of(result))
    made = output if leaving is None else leaving.replace(args=(output, *leaving.args[1:]))
    return _composed(mod, main, Function(main.params, Tuple(inputs)), middle, output, made)


def _composed(
    mod: IRModule, main: Function, first: Function, middle: Function, output: Var, made: RelayExpr
) -> IRModule:
    names = [GlobalVar(n) for n in ("quantize_inputs", "quantized_main", "dequantize_outputs")]
    params = [Var(p.name_hint, p.type_annotation) for p in main.params]
    fields = Call(names[0], params)
    args = [TupleGetItem(fields, i) for i in range(len(params))]
    result = mod.clone()
    for name, func in zip(names, (first, middle, Function([output], made)), strict=True):
        result[name] = func.with_attr("Inline", 1)  # a whole build is that of one function
    result["main"] = Function(params, Call(names[2], [Call(names[1], args)]))
    return InferType()(result)


def _entering(main: Function) -> dict[int, Call]:
    """By parameter, the only call that uses it, a quantization by constants."""
    users: dict[int, list[RelayExpr]] = {}
    for node in post_order(main.body):
        for operand in operands(node):
            users.setdefault(id(operand), []).append(node)
    found: dict[int, Call] = {}
    for param in main.params:
        match users.get(id(param), []):
            case [Call() as call] if calls(call, ops.qnn.quantize) and _is_constant(call.args[1:]):
                found[id(param)] = call
    return found


def _is_constant(exprs: tuple[RelayExpr, ...]) -> bool:
    return all([isinstance(e, Constant) for e in exprs])


def _check_integral(func: Function, allowed: Collection[str]) -> None:
    infer_type_of(func)
    for node in post_order(func.body):
        types = flatten_tuple_type(infer_type_of(node)) if isinstance(node, (Call, Var)) else []
        others = sorted({str(ty.dtype) for ty in types} - set(allowed))
        if others:
            raise NotIntegralError(
                f"partition_conversions requires values of {', '.join(sorted(allowed))} between the "
                f"conversions, got {', '.join(others)}",
                at=node,
            )
