"""Functions for other compilers as JSON graphs, for runtimes that interpret them.

def f(x, w): def lv(a, b): ..  # Composite = "dnnl.conv2d_relu"
             gv = lv(x, w)
->  {"nodes": [{"op": "input", "name": "x", ..}, .., {"op": "kernel", "name": "dnnl.conv2d_relu", ..}], ..}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relax.base import StructInfo
from tvm.relax.expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo
from tvm.relay.backend.contrib.codegen_json import JSONGraph, JSONGraphNode, JSONGraphNodeEntry
from tvm.tir import IntImm

Entries = list[JSONGraphNodeEntry]


class JSONSerializer(JSONGraph):
    """Writes one function with the attribute ``Codegen``; a compiler subclasses it.

    Parameters
    ----------
    func : Function
        In normal form, of tensors of known shapes.
    constant_names : dict of Constant to str
        The names under which the runtime gets the constants.
    """

    def __init__(self, func: Function, constant_names: Mapping[Constant, str]) -> None:
        super().__init__(str(func.attrs["global_symbol"]))
        self.func = func
        self.constant_names = constant_names
        self._functions: dict[Var, Function] = {}  # composite ones

    def serialize(self) -> JSONSerializer:
        """Visit the function; returns itself."""
        for param in self.func.params:
            node = JSONGraphNode(param.name_hint, "input")
            self._entries[id(param)] = self.add_node(node, param)
        for block in self.func.body.blocks:
            for binding in block.bindings:
                if isinstance(binding.value, Function):
                    self._functions[binding.var] = binding.value
                else:
                    self._entries[id(binding.var)] = self.entries_of(binding.value)
        self._heads = self.entries_of(self.func.body.body)
        return self

    def add_node(self, node: JSONGraphNode, expr: RelayExpr) -> Entries:
        """Append a node whose results are as the struct info of `expr` says; its entries."""
        return self.append(node, _types(expr.struct_info, expr))

    def entries_of(self, expr: RelayExpr) -> Entries:
        """The entries of an expression, whose node is added if it is new."""
        if (known := self._entries.get(id(expr))) is not None:
            return known
        if isinstance(expr, Constant):
            name = self.constant_names[expr]
            self.constants[name] = expr.data
            self._entries[id(expr)] = self.add_node(JSONGraphNode(name, "const"), expr)
            return self._entries[id(expr)]
        if isinstance(expr, Tuple):
            return [entry for field in expr.fields for entry in self.entries_of(field)]
        if isinstance(expr, TupleGetItem):
            fields = expr.tuple_value.struct_info.fields
            start = sum([len(_types(f, expr)) for f in fields[: expr.index]])
            count = len(_types(fields[expr.index], expr))
            return self.entries_of(expr.tuple_value)[start : start + count]
        if isinstance(expr, Call):
            return self.visit_call(expr)
        raise TVMError(f"a JSON graph cannot contain {type(expr).__name__}", at=expr)

    def callee(self, call: Call) -> Op | Function:
        """The operator or the composite function that is called."""
        found = self._functions.get(call.op) if isinstance(call.op, Var) else call.op
        if isinstance(found, Op) or (isinstance(found, Function) and "Composite" in found.attrs):
            return found
        raise TVMError(
            "a JSON graph calls operators and composite functions, got another call",
            at=call,
            hint="relax.transform.FuseOpsByPattern makes composite functions",
        )

    def visit_call(self, call: Call) -> Entries:
        """The node of a call of an operator or a composite function."""
        callee = self.callee(call)
        inputs = [entry for arg in call.args for entry in self.entries_of(arg)]
        name = callee.name if isinstance(callee, Op) else str(callee.attrs["Composite"])
        node = JSONGraphNode(name, "kernel", inputs)
        if isinstance(callee, Op):
            self.set_attrs(node, call.attrs)
        return self.add_node(node, call)


def _types(info: StructInfo, at: RelayExpr) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and dtypes of tensors."""
    if isinstance(info, TupleStructInfo):
        return [t for field in info.fields for t in _types(field, at)]
    dims: Any = info.dimensions if isinstance(info, TensorStructInfo) else None
    if dims is None or not all([isinstance(d, IntImm) for d in dims]):
        raise TVMError(f"a JSON graph requires tensors of known shapes, got {info}", at=at)
    return [(tuple([int(d) for d in dims]), str(info.dtype))]  # type: ignore[attr-defined]
