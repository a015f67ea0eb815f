"""From a fused main function to the execution graph, its kernels and its constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.type import TensorType
from tvm.relay.analysis.source_names import source_names
from tvm.relay.backend.graph import COPY, NOP, Graph, GraphNode, TensorInfo, TensorRef
from tvm.relay.backend.kernels import PLACE
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.shared_arrays import SharedArrays
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import nodes_outside_functions
from tvm.relay.ty import flat_part, flat_types
from tvm.runtime.ndarray import NDArray
from tvm.support import UniqueNames


class NeedsVirtualMachine(TVMError):
    """A program that executors of graphs cannot run, and the virtual machine can."""


@dataclass
class LoweredGraph:
    """What the executor needs, and the kernels that must be compiled."""

    graph: Graph = field(default_factory=Graph)
    params: dict[str, NDArray] = field(default_factory=dict)
    kernels: list[LoweredKernel] = field(default_factory=list)


class GraphCodegen:
    """Walks the main function once; `lower` gives the kernel of a primitive function.

    `external` are the functions that other compilers made, by the name they are called by.
    """

    def __init__(
        self,
        lower: Callable[[Function], LoweredKernel],
        external: Mapping[str, Function] | None = None,
    ) -> None:
        self.lower = lower
        self.external = external or {}
        self.result = LoweredGraph()
        self._names = UniqueNames()
        self._refs: dict[int, list[TensorRef]] = {}
        self._visited: list[RelayExpr] = []
        self._constants: dict[object, TensorRef] = {}
        self._shared = SharedArrays()
        self._results: set[int] = set()  # expressions that the model returns

    def run(self, main: Function) -> LoweredGraph:
        """The graph of `main`."""
        for param in main.params:
            self._names.reserve(param.name_hint)
        seen: set[str] = set()
        for param in main.params:
            name = param.name_hint
            # inputs are found by name, so that a second one of the same name needs another
            self._refs[id(param)] = self._input(
                param, self._names.fresh(name) if name in seen else name
            )
            seen.add(name)
            self._visited.append(param)
        self._results = {id(e) for e in _returned(main.body)}
        order = nodes_outside_functions(main.body)
        for node in order:  # before any kernel is lowered
            self._check(node)
        for node in order:
            if id(node) not in self._refs:
                self._refs[id(node)] = self._visit(node)
                self._visited.append(node)
        self.result.graph.heads = self._refs[id(main.body)]
        return self.result

    def placed(self) -> list[tuple[RelayExpr, list[TensorRef]]]:
        """The expressions that were met, with the tensors of their values."""
        return [(node, self._refs[id(node)]) for node in self._visited]

    def _input(self, param: Var, name: str) -> list[TensorRef]:
        types = flat_types(param.checked_type)
        names = [name] if len(types) == 1 else [f"{name}_{i}" for i in range(len(types))]
        return [
            TensorRef(
                self.result.graph.add(
                    GraphNode(name, [tensor_info(ty)], device=param.virtual_device_)
                )
            )
            for name, ty in zip(names, types, strict=True)
        ]

    def _visit(self, node: RelayExpr) -> list[TensorRef]:
        if isinstance(node, Constant):
            return [self._constant(node)]
        if isinstance(node, Tuple):
            return [ref for f in node.fields for ref in self._refs[id(f)]]
        if isinstance(node, TupleGetItem):
            part = flat_part(node.tuple_value.checked_type, node.index)
            return self._refs[id(node.tuple_value)][part]
        if isinstance(node, Var):
            raise TVMError(
                f"the graph and AOT executors require a value for %{node.name_hint}, which is no "
                "parameter of the function",
                hint="make it one: relay.Function(relay.analysis.free_vars(body), body)",
            )
        call = self._visitor_of(node)
        assert call is not None, "it was checked"
        return call(node)

    def _visitor_of(self, node: RelayExpr) -> Callable[[Any], list[TensorRef]] | None:
        """The method for a call; None for what graphs cannot hold."""
        if not isinstance(node, Call):
            return None
        if is_primitive(node.op):
            return self._kernel_call
        if node.op is ops.call_lowered:
            return self._lowered_call
        if calls(node, ops.device_copy):
            return self._copy
        if isinstance(node.op, GlobalVar) and node.op.name_hint in self.external:
            return self._external_call
        return None

    def _check(self, node: RelayExpr) -> None:
        """Reject what needs the virtual machine."""
        visitor = self._visitor_of(node)
        if visitor is None and not isinstance(node, (Constant, Tuple, TupleGetItem, Var)):
            raise NeedsVirtualMachine(
                f"the graph and AOT executors cannot run {_describe(node)}",
                at=node,
                hint="control flow, references and recursion need the virtual machine",
            )
        if visitor is not None and visitor != self._copy:
            for ty in flat_types(node.checked_type):
                tensor_info(ty)

    def _constant(self, node: Constant) -> TensorRef:
        key = self._shared.of(node.data), repr(node.virtual_device_)
        if key not in self._constants:
            name = self._names.fresh(f"p{len(self.result.params)}")
            self.result.params[name] = node.data
            info = tensor_info(TensorType(tuple(node.data.shape), node.data.dtype))
            index = self.result.graph.add(GraphNode(name, [info], device=node.virtual_device_))
            self._constants[key] = TensorRef(index)
        return self._constants[key]

    def _copy(self, call: Call) -> list[TensorRef]:
        inputs = self._refs[id(call.args[0])]
        node = GraphNode(
            self._names.fresh("copy"), [self.result.graph.info(inputs[0])], COPY, inputs,
            device=call.attrs.dst_virtual_device,
        )  # fmt: skip
        return [TensorRef(self.result.graph.add(node))]

    def _kernel_call(self, call: Call) -> list[TensorRef]:
        func = call.op
        assert isinstance(func, Function)
        inputs = [ref for a in call.args for ref in self._refs[id(a)]]
        outputs = [tensor_info(ty) for ty in flat_types(call.checked_type)]
        # a result has memory of its own, so that callers may replace it by theirs
        is_view = bool(func.attrs.get("relay.reshape_only")) and id(call) not in self._results
        if is_view and len(inputs) == len(outputs) == 1:
            node = GraphNode(self._names.fresh("reshape_nop"), outputs, NOP, inputs)
        else:
            kernel = self.lower(func)
            attrs = {"hash": f"{kernel.digest:016x}", **_sources(call, func)}
            node = GraphNode(self._names.fresh(kernel.name), outputs, kernel.name, inputs, attrs)
        node.device = func.attrs.get(PLACE)
        index = self.result.graph.add(node)
        return [TensorRef(index, i) for i in range(len(outputs))]

    def _lowered_call(self, call: Call) -> list[TensorRef]:
        callee, given = call.args
        assert isinstance(callee, GlobalVar)
        outputs = [tensor_info(ty) for ty in flat_types(call.checked_type)]
        name = self._names.fresh(callee.name_hint)
        node = GraphNode(name, outputs, callee.name_hint, self._refs[id(given)])
        index = self.result.graph.add(node)
        return [TensorRef(index, i) for i in range(len(outputs))]

    def _external_call(self, call: Call) -> list[TensorRef]:
        assert isinstance(call.op, GlobalVar)
        func = self.external[call.op.name_hint]
        inputs = [ref for a in call.args for ref in self._refs[id(a)]]
        outputs = [tensor_info(ty) for ty in flat_types(call.checked_type)]
        name = str(func.attrs["global_symbol"])
        attrs = {"Compiler": str(func.attrs["Compiler"]), **_sources(call, func)}
        node = GraphNode(self._names.fresh(name), outputs, name, inputs, attrs)
        index = self.result.graph.add(node)
        return [TensorRef(index, i) for i in range(len(outputs))]


def _returned(body: RelayExpr) -> list[RelayExpr]:
    """The expressions whose values leave the model."""
    if not isinstance(body, Tuple):
        return [body]
    return [e for field in body.fields for e in _returned(field)]


def _sources(call: Call, func: Function) -> dict[str, str]:
    names = source_names(call, func)
    return {"sources": names} if names else {}


def tensor_info(ty: TensorType) -> TensorInfo:
    """The static shape and dtype of a tensor type."""
    if ty.is_dynamic:
        raise NeedsVirtualMachine(
            f"the graph and AOT executors require constant shapes, got {ty}",
            hint="give every input a shape without unknown dimensions, or compile for the virtual "
            "machine: relay.vm.compile",
        )
    return TensorInfo(ty.concrete_shape, ty.dtype)


def _describe(node: RelayExpr) -> str:
    if isinstance(node, Var):
        return f"the free variable %{node.name_hint}"
    if isinstance(node, Call):
        return f"a call of {type(node.op).__name__} {node.op}"
    return type(node).__name__
