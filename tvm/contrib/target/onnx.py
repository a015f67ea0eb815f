"""From relay to ONNX: the way back of `relay.frontend.from_onnx`.

model = tvm.contrib.target.onnx.to_onnx(mod, params, "model", opset_version=13, path="model.onnx")

A function becomes a graph, each operator one node or a few; what they take is in `onnx_operators`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.expr import Call, Constant, Let, TupleGetItem, Var
from tvm.relay.expr import Tuple as RelayTuple
from tvm.relay.function import Function
from tvm.relay.program import bind_params_by_name
from tvm.relay.transform import InferType
from tvm.relay.traverse import post_order
from tvm.relay.ty import TensorType, TupleType
from tvm.runtime.ndarray import NDArray

from .onnx_graph import GraphWriter
from .onnx_operators import OPERATORS

OPSETS = (11, 20)


def to_onnx(
    relay_ir: Function | IRModule,
    params: Mapping[str, NDArray | np.ndarray[Any, Any]] | None,
    name: str,
    opset_version: int = 11,
    path: str | None = None,
) -> Any:
    """The program as a model of ONNX.

    Parameters
    ----------
    relay_ir : relay.Function or IRModule
        The program, of static shapes: a function, or a module's `main`.
    params : dict of str to NDArray or numpy.ndarray, optional
        Values of parameters, which become initializers.
    name : str
        The graph's name.
    opset_version : int
        The version of ONNX's operators, 11 to 20.
    path : str, optional
        Where to write the model, too.

    Returns
    -------
    onnx.ModelProto
        The model, checked by ONNX. Its inputs have the names of the parameters that have no values.

    Raises
    ------
    OpNotImplemented
        An operator has no counterpart here.
    """
    import onnx
    from onnx import helper

    if not OPSETS[0] <= opset_version <= OPSETS[1]:
        raise TVMError(
            f"to_onnx writes operators of versions {OPSETS[0]} to {OPSETS[1]}, got {opset_version}"
        )
    func = relay_ir["main"] if isinstance(relay_ir, IRModule) else relay_ir
    if params:
        func = bind_params_by_name(func, dict(params))
    func = InferType()(IRModule.from_expr(func))["main"]
    graph = _Exporter(opset_version).graph(func, name)
    opsets = [helper.make_opsetid("", opset_version)]
    model = helper.make_model(
        graph,
        opset_imports=opsets,
        producer_name="tvm",
        ir_version=helper.find_min_ir_version_for(opsets),
    )
    onnx.checker.check_model(model)
    if path is not None:
        onnx.save(model, path)
    return model


class _Exporter:
    """Writes the nodes of one function."""

    def __init__(self, opset: int) -> None:
        self.writer = GraphWriter(opset)
        self.values: dict[int, list[str]] = {}  # by the identity of an expression

    def graph(self, func: Function, name: str) -> Any:
        """The graph of a function."""
        from onnx import helper

        for param in func.params:
            self.values[id(param)] = [self.writer.fresh(param.name_hint)]
        body: RelayExpr = func.body
        for node in post_order(func.body):
            self._visit(node)
        results = [self.writer.identity(v, f"output_{i}") for i, v in enumerate(self._of(body))]
        inputs = [self._info(self._of(p)[0], p.checked_type) for p in func.params]
        outputs = [
            self._info(n, t) for n, t in zip(results, _tensors(body.checked_type), strict=True)
        ]
        writer = self.writer
        return helper.make_graph(writer.nodes, name, inputs, outputs, writer.initializers)

    def _of(self, expr: RelayExpr) -> list[str]:
        return self.values[id(expr)]

    def _visit(self, node: RelayExpr) -> None:
        if isinstance(node, Constant):
            self.values[id(node)] = [self.writer.constant(node.data.numpy())]
        elif isinstance(node, RelayTuple):
            self.values[id(node)] = [name for field in node.fields for name in self._of(field)]
        elif isinstance(node, TupleGetItem):
            before = node.tuple_value.checked_type.fields[: node.index]
            start = sum([len(_tensors(field)) for field in before])
            count = len(_tensors(node.checked_type))
            self.values[id(node)] = self._of(node.tuple_value)[start : start + count]
        elif isinstance(node, Let):
            raise OpNotImplemented(
                "to_onnx takes graphs without let", hint="relay.transform.ToGraphNormalForm()"
            )
        elif isinstance(node, Call):
            self.values[id(node)] = self._call(node)
        elif not isinstance(node, Var | Op):
            raise OpNotImplemented(f"to_onnx takes graphs of operators, got {type(node).__name__}")

    def _call(self, call: Call) -> list[str]:
        name = call.op.name if isinstance(call.op, Op) else type(call.op).__name__
        write = OPERATORS.get(name)
        if write is None:
            raise OpNotImplemented(f"to_onnx does not know the operator {name}")
        if any([t.is_dynamic for e in (call, *call.args) for t in _tensors(e.checked_type)]):
            raise OpNotImplemented(f"to_onnx takes static shapes, {name} has others")
        return write(self.writer, call, [n for arg in call.args for n in self._of(arg)])

    def _info(self, name: str, kind: TensorType) -> Any:
        from onnx import helper

        shape = list(kind.concrete_shape)
        return helper.make_tensor_value_info(name, self.writer.element_type(kind.dtype), shape)


def _tensors(kind: Any) -> list[TensorType]:
    if isinstance(kind, TupleType):
        return [tensor for field in kind.fields for tensor in _tensors(field)]
    return [kind]
