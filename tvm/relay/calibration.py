"""The values that enter and leave the functions of external compilers, for their calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.type import TupleType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.build_module import create_executor
from tvm.relay.expr import Call, Tuple, TupleGetItem
from tvm.relay.function import Function
from tvm.relay.traverse import applied, post_order, rewrite_post_order
from tvm.runtime.ndarray import NDArray


def get_calibration_data(
    mod: IRModule, data: Mapping[str, Any]
) -> dict[GlobalVar, dict[str, list[NDArray]]]:
    """`{function: {"inputs": [...], "outputs": [...]}}` of the functions for external compilers.

    Parameters
    ----------
    mod : a partitioned module.
    data : the inputs of `main` by name.
    """
    main = mod["main"]
    infer_type_of(main, mod)
    values: list[RelayExpr] = []
    places: dict[GlobalVar, tuple[int, int, int]] = {}
    for call in post_order(main):
        if isinstance(call, Call) and isinstance(call.op, GlobalVar):
            func = mod[call.op]
            if isinstance(func, Function) and func.attrs.get("Compiler"):
                outputs = _flat(call)
                places[call.op] = (len(values), len(call.args), len(outputs))
                values += [*call.args, *outputs]
    probe = main.replace(body=Tuple([*values, main.body]), ret_type=None)
    inlined = rewrite_post_order(probe, lambda old, new: _inlined(mod, new))
    found = create_executor("graph").evaluate(inlined)(**data)
    return {
        gvar: {
            "inputs": found[start : start + inputs],
            "outputs": found[start + inputs : start + inputs + outputs],
        }
        for gvar, (start, inputs, outputs) in places.items()
    }


def _flat(call: Call) -> list[RelayExpr]:
    ty = infer_type_of(call)
    if not isinstance(ty, TupleType):
        return [call]
    return [TupleGetItem(call, i) for i in range(len(ty.fields))]


def _inlined(mod: IRModule, node: RelayExpr) -> RelayExpr:
    """The call of a function for a compiler, or of a composite one, as operators of our own."""
    if not isinstance(node, Call):
        return node
    func = mod[node.op] if isinstance(node.op, GlobalVar) else node.op
    if not isinstance(func, Function):
        return node
    body = applied(func, node.args)
    return rewrite_post_order(body, lambda old, new: _inlined(mod, new))
