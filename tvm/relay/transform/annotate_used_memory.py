"""Say how many bytes of tensors are alive while each kernel runs.

let %f = fn (%p: Tensor[(4,), int8], Primitive=1) {..};
let %a = %f(%x);                                            # %x, %a
let %b = %f(%x);              ->  Primitive=1, used_memory=[8, 12]
(%a, %b)                                                    # %x, %a, %b

A kernel has a number for each of its calls, in the order of the program, which must be in A-normal form.
Functions that hold calls have `io_used_memory`, the bytes of their parameters and results.
"""

from __future__ import annotations

from math import prod

from tvm._ffi import register_func
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import FuncType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.analysis.scopes import inner_blocks
from tvm.relay.expr import Call, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.memory.memory import flatten_tuple_type
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.manifest_lifetimes import variables_of
from tvm.relay.traverse import rewrite_post_order, split_lets

Alive = dict[int, Var]  # by identity


class _UsedMemory:
    """The bytes at each call of each kernel of one function."""

    def __init__(self) -> None:
        self.at_calls: dict[int, list[int]] = {}  # by identity of the kernel
        self._kernels: dict[int, Function] = {}  # by identity of the variable

    def measure(self, block: RelayExpr, alive: Alive) -> None:
        """Visit the calls of a block behind which the given variables are read."""
        lets, result = split_lets(block)
        bindings = [*[(let.var, let.value) for let in lets], (None, result)]
        after: list[Alive] = []
        for variable, value in reversed(bindings):
            after.append(alive)
            read = {id(v): v for v in variables_of(value)}
            alive = {key: v for key, v in {**alive, **read}.items() if v is not variable}
        for (variable, value), left in zip(bindings, reversed(after), strict=True):
            self._visit(variable, value, left)

    def _visit(self, variable: Var | None, value: RelayExpr, after: Alive) -> None:
        left = {key: v for key, v in after.items() if v is not variable}
        if variable is not None and is_primitive(value):
            self._kernels[id(variable)] = value
        for block in inner_blocks(value):
            self.measure(block, {} if type(value) is Function else left)
        if type(value) is Call and (kernel := self._kernel(value.op)) is not None:
            read = {id(v): v for v in variables_of(value)}
            others = {**left, **read}.values()
            used = sum([_bytes(infer_type_of(v)) for v in others]) + _bytes(infer_type_of(value))
            self.at_calls.setdefault(id(kernel), []).append(used)

    def _kernel(self, callee: RelayExpr) -> Function | None:
        return callee if is_primitive(callee) else self._kernels.get(id(callee))


def _bytes(ty: Type) -> int:
    """The size of a value; functions have none."""
    if type(ty) is FuncType:
        return 0
    total = 0
    for tensor in flatten_tuple_type(ty):
        if tensor.is_dynamic:
            raise TVMError(f"AnnotateUsedMemory does not support dynamic shapes, got {tensor}")
        total += prod(tensor.concrete_shape) * -(-tensor.dtype.bits * tensor.dtype.lanes // 8)
    return total


def _annotated(func: Function, _: IRModule, __: PassContext) -> Function:
    if is_primitive(func):
        return func
    io_bytes = sum([_bytes(infer_type_of(e)) for e in (*func.params, func.body)])
    used = _UsedMemory()
    used.measure(func.body, {})

    def with_sizes(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        sizes = used.at_calls.get(id(old))
        return (
            new.with_attr("used_memory", tuple(sizes)) if sizes and type(new) is Function else new
        )

    body = rewrite_post_order(func.body, with_sizes)
    return func.replace(body=body).with_attr("io_used_memory", io_bytes)


def AnnotateUsedMemory() -> Pass:
    """The pass; types must be inferred, and shapes constant."""
    return FunctionPass(_annotated, PassInfo(0, "AnnotateUsedMemory"))


register_func("relay._transform.AnnotateUsedMemory", AnnotateUsedMemory, override=True)
