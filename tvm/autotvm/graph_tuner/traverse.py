"""What a graph tuner has to know of a program: its tuned operators, and the ways between them.

A *way* leads from one tuned operator to another, or to or from where data is plain, through operators that
take any layout. On it a transform may be needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm.autotvm.task.relay_integration import extract_from_program
from tvm.error import or_similar
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_hash
from tvm.ir.transform import Sequential
from tvm.relay import transform
from tvm.relay.expr import Call, RelayExpr, TupleGetItem, Var
from tvm.relay.expr import Tuple as RelayTuple
from tvm.relay.function import Function
from tvm.relay.traverse import bind, post_order
from tvm.relay.ty import TensorType
from tvm.tir.expr import IntImm

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Way:
    """Where data of a shape goes from one tuned operator to another; None is plain data."""

    source: int | None
    target: int | None
    shape: Shape
    joins: bool = False  # the data joins that of the target's output


@dataclass
class TunedGraph:
    """The tuned operators in their order, with their workloads, and the ways between them."""

    calls: list[Call] = field(default_factory=list)
    workloads: list[tuple[Any, ...] | None] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)


def read_graph(graph: Any, target_ops: Iterable[Any], target: Any) -> TunedGraph:
    """The tuned operators of a program, and the ways between them."""
    mod = graph if isinstance(graph, IRModule) else IRModule.from_expr(graph)
    simple = [
        transform.InferType(),
        transform.SimplifyInference(),
        transform.FoldConstant(),
        transform.CanonicalizeOps(),
        transform.InferType(),
    ]
    func: Any = Sequential(simple)(mod)["main"]
    names = {op if isinstance(op, str) else op.name for op in target_ops}
    return _Reader(names, target).read(func)


def bind_inputs(
    expr: Function, input_shapes: Mapping[str, Shape] | None = None, input_dtypes: Any = "float32"
) -> Function:
    """The program with inputs of these shapes.

    Parameters
    ----------
    expr : relay.Function
        The program.
    input_shapes : dict of str to tuple of int, optional
        The shapes.
    input_dtypes : str or dict of str to str
        Their types.
    """
    shapes = dict(input_shapes or {})
    by_name = {param.name_hint: param for param in expr.params}
    for name in shapes:
        if name not in by_name:
            raise ValueError(f"the graph has no input {name!r}{or_similar(name, by_name)}")
    binds: dict[Var, RelayExpr] = {}
    for name, shape in shapes.items():
        dtype = input_dtypes if isinstance(input_dtypes, str) else input_dtypes[name]
        binds[by_name[name]] = Var(name, TensorType(tuple(shape), dtype))
    bound = bind(expr, binds) if binds else expr
    assert isinstance(bound, Function)
    return Function(bound.params, bound.body)  # its type follows from those of the inputs


class WorkloadFinder:
    """The workloads of operators, each found once."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.found: dict[Any, Any] = {}

    def workload_of(self, call: Call) -> tuple[Any, ...] | None:
        """The workload of the operator alone, as records have it."""
        args = [Var(f"arg{i}", arg.checked_type) for i, arg in enumerate(call.args)]
        alone = Function(args, Call(call.op, args, call.attrs))
        key = structural_hash(alone)
        if key not in self.found:
            tasks = extract_from_program(alone, None, self.target)
            self.found[key] = tasks[0].workload if tasks else None
        found: tuple[Any, ...] | None = self.found[key]
        return found


class _Reader:
    def __init__(self, names: set[str], target: Any) -> None:
        self.names = names
        self.workloads = WorkloadFinder(target)
        self.graph = TunedGraph()
        # of each value the tuned operator that decides about its layout
        self.sources: dict[int, int | None] = {}

    def read(self, func: Function) -> TunedGraph:
        for node in post_order(func.body):
            if isinstance(node, Call):
                self.sources[id(node)] = self._source_of_call(node)
            elif isinstance(node, TupleGetItem):
                self.sources[id(node)] = self.sources.get(id(node.tuple_value))
        self._leave(func.body)
        return self.graph

    def _source_of_call(self, call: Call) -> int | None:
        if isinstance(call.op, Op) and call.op.name in self.names:
            return self._tuned(call)
        tensors = [tensor for arg in call.args for tensor in _tensors_of(arg)]
        follows = isinstance(call.op, Op) and (
            call.op.infer_layout is not None or call.op.has_attr("FInferCorrectLayout")
        )
        if not follows:
            for tensor in tensors:
                self._leave(tensor)
            return None
        sources = [(self.sources.get(id(tensor)), tensor) for tensor in tensors]
        deciding = next((source for source, _ in sources if source is not None), None)
        if deciding is None:
            return None
        for source, tensor in sources:
            shape = _shape_of(tensor)
            if source != deciding and shape is not None:
                self.graph.ways.append(Way(source, deciding, shape, joins=True))
        return deciding

    def _tuned(self, call: Call) -> int | None:
        workload = self.workloads.workload_of(call)
        if workload is None:
            return None
        number = len(self.graph.calls)
        self.graph.calls.append(call)
        self.graph.workloads.append(workload)
        shape = _shape_of(call.args[0])
        if shape is not None:
            self.graph.ways.append(Way(self.sources.get(id(call.args[0])), number, shape))
        return number

    def _leave(self, value: RelayExpr) -> None:
        """The value is wanted in its plain layout."""
        for tensor in _tensors_of(value):
            source, shape = self.sources.get(id(tensor)), _shape_of(tensor)
            if source is not None and shape is not None:
                self.graph.ways.append(Way(source, None, shape))


def _tensors_of(value: RelayExpr) -> list[RelayExpr]:
    if isinstance(value, RelayTuple):
        return [tensor for part in value.fields for tensor in _tensors_of(part)]
    return [value]


def _shape_of(value: RelayExpr) -> Shape | None:
    """The shape of a tensor of images; None for other values and for open extents."""
    kind = value.checked_type
    if not isinstance(kind, TensorType) or len(kind.shape) != 4:
        return None
    extents = [extent.value for extent in kind.shape if isinstance(extent, IntImm)]
    return tuple(extents) if len(extents) == len(kind.shape) else None
