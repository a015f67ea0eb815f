"""From a TorchScript graph to a relay function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis import free_vars
from tvm.relay.expr import Tuple, TupleWrapper, Var, var
from tvm.relay.frontend.common import (
    ExprFolder,
    Unsupported,
    constant,
    infer_shape,
    infer_type,
    refuse,
    set_span,
)
from tvm.relay.function import Function
from tvm.runtime import ndarray as nd

from .complexes import Complex, as_pairs, complex_constant, from_pairs
from .control import choice, recursion
from .decomposition import Decomposer
from .fallback import torch_call
from .graph_types import (
    PARTS_OF_COMPLEX,
    input_info,
    type_text,
    write_graph,
)
from .nodes import (
    all_nodes,
    empty_results,
    node_name,
    overload_of,
    stand_ins,
    tensors_in,
    traced_function,
)
from .open_shapes import with_variables, without_variables
from .quantized import Quantized, aware_operators, has_quantized, on_quantized, quantized_constant
from .registry import CONVERTERS, Converter, adapted, as_number, is_tensor
from .strided import in_memory_order
from .torch_values import to_numpy
from .views import Stale, View, as_written, put_same, views_of

_STRUCTURE = {
    "prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct",
    "prim::ListUnpack", "prim::TupleUnpack", "prim::If", "prim::Loop", "prim::DictConstruct",
    "prim::SetAttr", "prim::TupleIndex", "prim::PythonOp", "prim::Print", "prim::RaiseException",
}  # fmt: skip
_HINT = (
    "pass custom_convert_map={name: function(inputs, types) -> expr} to from_pytorch, or let "
    "PyTorch compute them with fallback=True"
)


def from_pytorch(
    script_module: Any,
    input_infos: Sequence[Any],
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: str | None = None,
    preserve_pytorch_scopes: bool = False,
    fallback: bool = False,
) -> tuple[IRModule, dict[str, nd.NDArray]]:
    """Import a traced or scripted PyTorch module.

    Parameters
    ----------
    script_module : torch.jit.ScriptModule
        From ``torch.jit.trace`` or ``torch.jit.script``.
    input_infos : list of (name, shape) or (name, (shape, dtype))
        The inputs in order.
    custom_convert_map : dict, optional
        More converters by operator name, ``f(inputs, input_types) -> expr``.
    default_dtype : str
        The element type of inputs for which neither ``input_infos`` nor the trace has one.
    use_parser_friendly_name : bool
        Replace dots in the names of weights by underscores.
    keep_quantized_weight : bool
        Keep the weights of quantised modules as integers, which is done in any case.
    export_renamed_c_graph_path : str, optional
        A folder to write the graph to as text, its values named as the spans of expressions are.
    preserve_pytorch_scopes : bool
        Let the spans of expressions name the modules that operators belong to.
    fallback : bool
        Let PyTorch compute operators that are not supported, with a warning for each. The compiled
        model then needs PyTorch and this process.

    Returns
    -------
    (IRModule, dict of str to NDArray)
        The module, and the weights by their names in the state dict.

    Raises
    ------
    OpNotImplemented
        With a list of all nodes whose operators are not supported.
    """
    graph = _inlined_graph(script_module)
    converters = {**CONVERTERS, **adapted(custom_convert_map)}
    importer = GraphImporter(converters, "_" if use_parser_friendly_name else ".")
    importer.fallback = fallback
    importer.with_scopes = preserve_pytorch_scopes
    importer.check_operators(graph)
    inputs = importer.bind_inputs(graph, script_module, input_infos, default_dtype)
    importer.run_block(graph)
    importer.refuse_unknown()
    if export_renamed_c_graph_path:
        write_graph(graph, importer.names, export_renamed_c_graph_path)
    outputs = [importer.output(value) for value in graph.outputs()]
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    weights = [v for v in free_vars(body) if v.name_hint in importer.params]
    params = {v.name_hint: importer.params[v.name_hint] for v in weights}
    return IRModule.from_expr(without_variables(Function([*inputs, *weights], body))), params


def _module_path(scope: str) -> str:
    """``"Net::/Block::layer1/Conv2d::conv"`` -> ``"layer1.conv"``; whole paths keep their last part."""
    parts = [part.rpartition("::")[2].removeprefix("__module.") for part in scope.split("/")]
    return parts[-1] or "__main__"


def _inlined_graph(script_module: Any) -> Any:
    graph = getattr(script_module, "inlined_graph", None)
    if graph is None:
        raise TypeError(
            "from_pytorch requires a traced or scripted module, got "
            f"{type(script_module).__name__}; hint: torch.jit.trace(model, example_inputs)"
        )
    return graph


class GraphImporter:
    """Names of a TorchScript graph and the values they stand for."""

    def __init__(self, converters: Mapping[str, Converter], separator: str) -> None:
        self.converters = converters
        self.separator = separator
        self.values: dict[str, Any] = {}
        self.paths: dict[str, str] = {}  # of submodules
        self.params: dict[str, nd.NDArray] = {}
        self._weights: dict[str, Var] = {}
        self.folder = ExprFolder()
        self.fallback = False  # whether torch computes what is unknown
        self.with_scopes = False  # whether spans name modules
        self._counts: dict[str, int] = {}  # nodes so far, by operator
        self.names: dict[str, str] = {}  # names of nodes, by their outputs
        self.unknown: list[Any] = []  # nodes that nothing is known to convert
        self.decomposer = Decomposer(converters, self.folder)
        self.aware = aware_operators()
        self.views: dict[str, View] = {}  # by the name of the value that shares memory
        self.derived: dict[str, list[str]] = {}  # names of views by what they share memory with

    def check_operators(self, graph: Any) -> None:
        """Note the nodes of unknown operators, and refuse a graph without shapes at once."""
        self.unknown = [node for node in all_nodes(graph) if not self.knows(node)]
        if any(stand_ins(node) is None for node in self.unknown):
            self.refuse_unknown()

    def refuse_unknown(self) -> None:
        """One error for all nodes that were found to be unknown."""
        unknown = [n for n in self.unknown if not self.fallback or overload_of(n) is None]
        if unknown:
            raise refuse("PyTorch", [
                Unsupported(n.kind(), node_name(n), [type_text(v) for v in n.inputs()])
                for n in unknown
            ], _HINT)  # fmt: skip

    def knows(self, node: Any) -> bool:
        """Whether a node has a converter, or torch can decompose it."""
        if self.find(node) is not None:
            return True
        overload = overload_of(node)
        return overload is not None and self.decomposer.knows(overload)

    def find(self, node: Any) -> Converter | str | None:
        """The converter of an overload, of an operator, or of it without writing in place."""
        kind = node.kind()
        if kind in _STRUCTURE:
            return kind
        overload = node.schema().partition("(")[0]
        found = self.converters.get(overload) or self.converters.get(kind)
        if found is None and kind.endswith("_") and not kind.endswith("__"):
            found = self.converters.get(kind[:-1])
        return found

    def bind_inputs(
        self, graph: Any, module: Any, infos: Sequence[Any], default_dtype: str
    ) -> list[Var]:
        """Variables for the inputs of the graph, in order."""
        values = list(graph.inputs())
        if values and "__torch__" in str(values[0].type()):
            self.values[values[0].debugName()] = module
            self.paths[values[0].debugName()] = ""
            values = values[1:]
        if len(values) != len(infos):
            names = [value.debugName() for value in values]
            raise TVMError(
                f"from_pytorch requires one input_info for each of the inputs {names}, "
                f"got {len(infos)}"
            )
        result = []
        for value, info in zip(values, infos, strict=True):
            name, shape, dtype = input_info(info, value, default_dtype)
            shape = with_variables(shape, name)
            pairs = PARTS_OF_COMPLEX.get(dtype)
            variable = var(name, shape=(*shape, 2) if pairs else shape, dtype=pairs or dtype)
            result.append(set_span(variable, name))
            self.values[value.debugName()] = from_pairs(variable) if pairs else variable
        return result

    def output(self, value: Any) -> RelayExpr:
        """An output of the graph as one expression."""
        return self._as_expr(self._read(value))

    def _as_expr(self, value: Any) -> RelayExpr:
        if isinstance(value, TupleWrapper):
            return value.astuple()
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, Complex):
            return as_pairs(value)
        if isinstance(value, (list, tuple)):
            return Tuple([self._as_expr(item) for item in value])
        return value if is_tensor(value) else constant(value)

    def run_block(self, block: Any) -> None:
        """Convert the nodes of a block in order."""
        for node in block.nodes():
            kind = node.kind()
            args = [self._read(value) for value in node.inputs()]
            structural = getattr(self, "_" + kind.replace("::", "_"), None)
            if kind in _STRUCTURE and structural is not None:
                results = structural(node, args)
            else:
                results = self._convert(node, kind, args)
                self._mark(node, results)
            for value, result in zip(node.outputs(), results, strict=False):
                self.values[value.debugName()] = result
            self._note_views(node)

    def _mark(self, node: Any, results: Sequence[Any]) -> None:
        """Say which node expressions come from: ``aten::relu_0``, the second is ``aten::relu_1``."""
        kind = node.kind()
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        name = f"{kind}_{number}"
        if self.with_scopes and node.scopeName():
            name = f"{_module_path(node.scopeName())}/{name}"
        for value in node.outputs():
            self.names.setdefault(value.debugName(), name)
        for tensor in tensors_in(results):
            set_span(tensor, name)

    def _read(self, value: Any) -> Any:
        found = self.values.get(value.debugName())
        if isinstance(found, Stale):
            raise TVMError(
                f"%{value.debugName()} was written to in place through {found.kind}, which is "
                "not supported",
                hint="write the model without in-place operators there",
            )
        return found

    def _convert(self, node: Any, kind: str, args: list[Any]) -> list[Any]:
        if any(node is known for known in self.unknown):
            return self._replaced(node, args)
        try:
            results = self._fold(self._apply(node, args), node.outputsSize())
            for result in tensors_in(results):
                infer_type(result)
        except OpNotImplemented as error:
            if stand_ins(node) is None:
                raise error.add_context(f"PyTorch node {node_name(node)} ({kind})") from None
            self.unknown.append(node)
            return self._replaced(node, args)
        except TVMError as error:
            raise error.add_context(f"PyTorch node {node_name(node)} ({kind})") from None
        except TypeError as error:
            shapes = [type_text(v) for v in node.inputs()]
            raise TVMError(f"{kind} cannot be imported with inputs {shapes}: {error}") from error
        if kind.endswith("_") and not kind.endswith("__") and is_tensor(results[0]):
            results = [self.folder.fold(as_written(args[0], results[0]))]
            self._write(next(iter(node.inputs())).debugName(), results[0])
        return results

    def _replaced(self, node: Any, args: Sequence[Any]) -> list[Any]:
        """The results of an unknown operator: torch's, or variables while faults are sought."""
        substitutes = stand_ins(node) or []
        overload = overload_of(node)
        if not self.fallback or overload is None:
            return list(substitutes)
        types = [(infer_shape(v), infer_type(v).dtype) for v in substitutes]
        return list(torch_call(overload, [as_number(arg) for arg in args], types))

    def _strided_arguments(self, node: Any, args: Sequence[Any]) -> list[Any]:
        data = next(iter(node.inputs()))
        view = self.views.get(data.debugName())
        strides = data.type().strides() if data.type().kind() == "TensorType" else None
        return in_memory_order(args, strides, view is None or view.put is put_same)

    def _apply(self, node: Any, args: Sequence[Any]) -> Any:
        if (empty := empty_results(node, args)) is not None:
            return empty if len(empty) > 1 else empty[0]
        if node.kind() == "aten::as_strided":
            args = self._strided_arguments(node, args)
        convert = self.find(node)
        if convert is None:
            return self.decomposer.apply(overload_of(node), args)
        assert callable(convert)
        if node.kind() not in self.aware and has_quantized(args):
            return on_quantized(node.kind(), convert, args)
        return convert(*args)

    def _write(self, name: str, value: RelayExpr) -> None:
        """An in-place result: the new value of the input and of all that shares its memory."""
        written = [name]
        self.values[name] = value
        while (view := self.views.get(name)) is not None:
            name, base = view.base, self.values[view.base]
            if view.put is None or isinstance(base, Stale):
                self.values[name] = Stale(view.node.kind())
            else:
                args = [self.values.get(v.debugName()) for v in view.node.inputs()]
                value = self.folder.fold(view.put(base, self.values[written[-1]], *args[1:]))
                self.values[name] = value
            written.append(name)
        for base_name in reversed(written):
            self._refresh(base_name, written)

    def _refresh(self, name: str, written: Sequence[str]) -> None:
        """Read anew the views of a value, and their views."""
        for derived in self.derived.get(name, ()):
            if derived in written:
                continue
            view = self.views[derived]
            node, source = view.node, self.values[view.base]
            inputs = [self.values.get(value.debugName()) for value in node.inputs()]
            if view.put is None:
                self.values[derived] = Stale(node.kind())
            elif view.put is put_same or isinstance(source, Stale):
                self.values[derived] = source
            else:
                self.values[derived] = self._fold(self._apply(node, inputs), node.outputsSize())[0]
            self._refresh(derived, written)

    def _note_views(self, node: Any) -> None:
        for output, view in views_of(node).items():
            self.views[output] = view
            self.derived.setdefault(view.base, []).append(output)

    def _fold(self, result: Any, count: int) -> list[Any]:
        if isinstance(result, TupleWrapper):
            result = [result[i] for i in range(result.size)]
        if is_tensor(result):
            return [self.folder.fold(result)]
        if isinstance(result, Complex):
            return [result.map(self.folder.fold)]
        if isinstance(result, Quantized):
            return [replace(result, data=self.folder.fold(result.data))]
        if isinstance(result, (list, tuple)):
            items = [self._fold(r, 1)[0] for r in result]
            return items if count > 1 else [items]
        return [result]

    # ---- structure

    def _prim_Constant(self, node: Any, args: list[Any]) -> list[Any]:
        if "value" not in node.attributeNames():
            return [None]
        kind = node.kindOf("value")
        if kind == "t":
            return [_tensor_constant(node.t("value"))]
        if kind == "ival":
            return [_ivalue(node.output().toIValue())]
        return [getattr(node, kind)("value")]

    def _prim_GetAttr(self, node: Any, args: list[Any]) -> list[Any]:
        owner = next(iter(node.inputs())).debugName()
        name = node.s("name")
        path = f"{self.paths[owner]}{self.separator}{name}" if self.paths[owner] else name
        value = getattr(args[0], name)
        output = node.output().debugName()
        if _is_module(value):
            self.paths[output] = path
            return [value]
        return [self._weight(path, value) if hasattr(value, "detach") else value]

    def _weight(self, path: str, tensor: Any) -> Any:
        if tensor.dim() == 0 or tensor.is_complex() or tensor.is_quantized:
            return _tensor_constant(tensor)
        if path not in self._weights:
            value = self.params[path] = nd.array(to_numpy(tensor))
            weight = var(path, shape=value.shape, dtype=value.dtype)
            self._weights[path] = set_span(weight, path)
        return self._weights[path]

    def _prim_ListConstruct(self, node: Any, args: list[Any]) -> list[Any]:
        return [list(args)]

    _prim_TupleConstruct = _prim_ListConstruct

    def _prim_DictConstruct(self, node: Any, args: list[Any]) -> list[Any]:
        return [dict(zip(args[::2], args[1::2], strict=True))]

    def _prim_ListUnpack(self, node: Any, args: list[Any]) -> list[Any]:
        value = args[0]
        if isinstance(value, TupleWrapper):
            return [value[i] for i in range(value.size)]
        if is_tensor(value):
            raise TVMError(f"{node_name(node)} unpacks a tensor, a list is required")
        return list(value)

    _prim_TupleUnpack = _prim_ListUnpack

    def _prim_TupleIndex(self, node: Any, args: list[Any]) -> list[Any]:
        return [args[0][args[1]]]

    def _prim_RaiseException(self, node: Any, args: list[Any]) -> list[Any]:
        return []

    _prim_Print = _prim_SetAttr = _prim_RaiseException

    def _prim_PythonOp(self, node: Any, args: list[Any]) -> list[Any]:
        """A function of torch.autograd: what its forward computes was traced too."""
        if not traced_function(node):
            raise refuse("PyTorch", [Unsupported(node.kind(), node_name(node), [])], _HINT)
        (graph,) = traced_function(node)
        outside = self.values, self.views, self.derived
        inside = {v.debugName(): arg for v, arg in zip(graph.inputs(), args, strict=True)}
        self.values, self.views, self.derived = inside, {}, {}
        try:
            results = self._block_results(graph)
        finally:
            self.values, self.views, self.derived = outside
        for value, inner, arg in zip(node.inputs(), graph.inputs(), args, strict=True):
            if (written := inside[inner.debugName()]) is not arg:
                self._write(value.debugName(), written)
        return results if len(results) == node.outputsSize() else [results]

    def _prim_If(self, node: Any, args: list[Any]) -> list[Any]:
        """A condition known at import decides; the other branch is not looked at then."""
        condition = as_number(args[0])
        blocks = list(node.blocks())
        if not is_tensor(condition):
            return self._block_results(blocks[0 if condition else 1])
        before, branches = dict(self.values), []
        for block in blocks:
            branches.append(self._block_results(block))
            self._refuse_writes(node, before)
        return choice(condition, *branches)

    def _block_results(self, block: Any) -> list[Any]:
        self.run_block(block)
        return [self._read(value) for value in block.outputs()]

    def _refuse_writes(self, node: Any, before: dict[str, Any]) -> None:
        """What a branch or loop writes in place is not seen outside."""
        if any(self.values[name] is not value for name, value in before.items()):
            raise TVMError(
                f"{node.kind()} {node_name(node)} depends on data and writes to tensors in place",
                hint="write the model without in-place operators there",
            )

    def _prim_Loop(self, node: Any, args: list[Any]) -> list[Any]:
        """Loops are unrolled while trip count and condition are known at import."""
        trip_count, condition, *carried = [as_number(arg) for arg in args[:2]] + args[2:]
        (block,) = node.blocks()
        if is_tensor(trip_count):
            return self._open_loop(node, trip_count, condition, carried)
        step = 0
        while step < trip_count and (is_tensor(condition) or condition):
            if is_tensor(condition):
                return self._open_loop(node, trip_count - step, condition, carried, step)
            condition, *carried = self._iteration(block, step, carried)
            step += 1
        return carried

    def _iteration(self, block: Any, step: Any, carried: list[Any]) -> list[Any]:
        names = [value.debugName() for value in block.inputs()]
        self.values.update(zip(names, [step, *carried], strict=True))
        self.run_block(block)
        condition, *carried = [self._read(value) for value in block.outputs()]
        return [as_number(condition), *carried]

    def _open_loop(
        self, node: Any, trip_count: Any, condition: Any, carried: list[Any], first: int = 0
    ) -> list[Any]:
        """A recursive function; data that a condition depends on decides when it ends."""
        (block,) = node.blocks()
        before = dict(self.values)
        names = {value.debugName() for value in block.inputs()}

        def step(index: Any, values: list[Any]) -> list[Any]:
            result = self._iteration(block, index, values)
            self._refuse_writes(node, {n: v for n, v in before.items() if n not in names})
            return result

        return recursion(step, trip_count, condition, carried, first)


def _is_module(value: Any) -> bool:
    return hasattr(value, "named_parameters") or type(value).__name__.endswith("ScriptModule")


def _tensor_constant(tensor: Any) -> Any:
    if tensor.is_quantized:
        return quantized_constant(tensor)
    array = to_numpy(tensor)
    return complex_constant(array) if array.dtype.kind == "c" else constant(array)


def _ivalue(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_ivalue(item) for item in value]
    return _tensor_constant(value) if hasattr(value, "detach") else value
