"""From an ONNX graph to a relay function."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tvm.error import TVMError, suggest
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis import free_vars
from tvm.relay.expr import Tuple, Var, var
from tvm.relay.frontend.common import (
    ExprFolder,
    Unsupported,
    as_exprs,
    constant,
    infer_type,
    refuse,
)
from tvm.relay.function import Function
from tvm.relay.ty import Any as AnyDim
from tvm.runtime import ndarray as nd

from .registry import CONVERTERS, OnnxNode

_HINT = "export with another opset, or simplify the model so that these operators go away"


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, Any] | None = None,
    export_node_renamed_model_path: str | None = None,
) -> tuple[IRModule, dict[str, nd.NDArray]]:
    """Import an ONNX model.

    Parameters
    ----------
    model : onnx.ModelProto or str
        The model or the path of its file.
    shape : dict of str to tuple, optional
        Input shapes, where the model leaves dimensions open.
    dtype : str or dict of str to str
        Element types of inputs that the model has no type for.
    opset : int, optional
        Overrides the model's opset.
    freeze_params : bool
        Make weights constants of the function; otherwise they are parameters, returned as dict.
    convert_config, export_node_renamed_model_path
        Have to be left out: there are no options, and nodes keep their names.

    Returns
    -------
    (IRModule, dict of str to NDArray)
        The module, and the values of its parameters (none if they are frozen).

    Raises
    ------
    OpNotImplemented
        With a list of all nodes whose operators are not supported.
    """
    if convert_config or export_node_renamed_model_path:
        raise TVMError("from_onnx has no convert_config and renames no nodes, leave them out")
    model = _load(model)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    version = opset or opsets.get("", opsets.get("ai.onnx", 1))
    importer = GraphImporter(dict(shape or {}), dtype, version, freeze_params)
    importer.check_operators(model)
    outputs = importer.run(model.graph)
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    used = free_vars(body)
    names = {v.name_hint for v in used}
    inputs = [v for name, v in importer.inputs.items() if isinstance(v, Var)]
    weights = [v for v in used if v.name_hint in importer.params]
    params = {name: value for name, value in importer.params.items() if name in names}
    return IRModule.from_expr(Function([*inputs, *weights], body)), params


def _load(model: Any) -> Any:
    try:
        import onnx
    except ImportError:
        raise TVMError(
            "from_onnx requires the onnx package", hint="pip install pytvm[onnx]"
        ) from None
    if isinstance(model, onnx.ModelProto):
        return model
    if not isinstance(model, (str, bytes)) and not hasattr(model, "__fspath__"):
        raise TypeError(f"from_onnx requires a ModelProto or a path, got {type(model).__name__}")
    try:
        return onnx.load(model)
    except Exception as error:
        if isinstance(error, OSError):
            raise
        raise TVMError(f"from_onnx requires an ONNX file, {model!r} is none: {error}") from error


class GraphImporter:
    """Names of an ONNX graph and the expressions they stand for."""

    def __init__(
        self,
        shapes: dict[str, Sequence[int]],
        dtype: str | Mapping[str, str],
        opset: int,
        freeze: bool,
    ) -> None:
        self.shapes = shapes
        self.dtype = dtype
        self.opset = opset
        self.freeze = freeze
        self.values: dict[str, RelayExpr] = {}
        self.inputs: dict[str, RelayExpr] = {}
        self.params: dict[str, nd.NDArray] = {}
        self.folder = ExprFolder()

    def check_operators(self, model: Any) -> None:
        """Refuse the model with one error if operators are unknown."""
        unknown = [node for node in _all_nodes(model.graph) if _key(node) not in CONVERTERS]
        if unknown:
            shapes = _known_shapes(model)
            raise refuse("ONNX", [
                Unsupported(_key(n), n.name or n.output[0], [shapes.get(i, i) for i in n.input])
                for n in unknown
            ], _HINT)  # fmt: skip

    def run(self, graph: Any) -> list[RelayExpr]:
        """The outputs of the graph as expressions."""
        self._add_initializers(graph)
        self._add_inputs(graph)
        self._convert_nodes(graph)
        return [self._named(output.name) for output in graph.output]

    def subgraph(self, graph: Any, bound: Mapping[str, RelayExpr]) -> list[RelayExpr]:
        """The outputs of a subgraph; names of the outer graph stay visible."""
        outer = dict(self.values)
        self.values.update(bound)
        self._add_initializers(graph)
        self._convert_nodes(graph)
        outputs = [self._named(output.name) for output in graph.output]
        self.values = outer
        return outputs

    def _named(self, name: str) -> RelayExpr:
        if name not in self.values:
            raise TVMError(f"the ONNX graph uses {name!r} before anything computes it")
        return self.values[name]

    def _add_initializers(self, graph: Any) -> None:
        from onnx import numpy_helper

        for tensor in graph.initializer:
            array = numpy_helper.to_array(tensor)
            if self.freeze or array.dtype.kind not in "fV":
                self.values[tensor.name] = constant(array)
            else:
                value = self.params[tensor.name] = nd.array(array)
                self.values[tensor.name] = var(tensor.name, shape=value.shape, dtype=value.dtype)

    def _add_inputs(self, graph: Any) -> None:
        declared = [value for value in graph.input if value.name not in self.values]
        names = [value.name for value in declared]
        for name in self.shapes:
            if name not in names and name not in self.values:
                raise TVMError(
                    f"from_onnx got a shape for {name!r}, the model's inputs are {names}",
                    hint=suggest(name, names),
                )
        for value in declared:
            self.values[value.name] = self.inputs[value.name] = self._input_var(value)

    def _input_var(self, value: Any) -> Var:
        import onnx

        tensor = value.type.tensor_type
        dims = [
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else AnyDim()
            for d in tensor.shape.dim
        ]
        shape = list(self.shapes.get(value.name, dims))
        if tensor.HasField("shape") and len(shape) != len(dims):
            raise TVMError(
                f"from_onnx requires {len(dims)} dimensions for the input {value.name!r}, "
                f"got the shape {tuple(shape)}"
            )
        if tensor.elem_type:
            dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        else:
            dtype = self.dtype if isinstance(self.dtype, str) else self.dtype[value.name]
        return var(value.name, shape=shape, dtype=dtype)

    def _convert_nodes(self, graph: Any) -> None:
        for node in graph.node:
            outputs = self._convert(node)
            for name, expr in zip(node.output, outputs, strict=False):
                if name:
                    self.values[name] = expr

    def _convert(self, node: Any) -> list[RelayExpr]:
        view = OnnxNode(
            op_type=node.op_type,
            name=node.name or (node.output[0] if node.output else ""),
            inputs=[self._named(name) if name else None for name in node.input],
            attrs={attr.name: _attribute(attr) for attr in node.attribute},
            opset=self.opset,
            output_count=len(node.output),
            values=self.params,
            import_graph=self.subgraph,
        )
        try:
            results = [self.folder.fold(e) for e in as_exprs(CONVERTERS[_key(node)](view))]
            for result in results:
                infer_type(result)
            return results
        except TVMError as error:
            raise error.add_context(f"ONNX node {view.name} ({node.op_type})") from None


def _key(node: Any) -> str:
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def _all_nodes(graph: Any) -> Iterator[Any]:
    """Nodes of a graph and of the graphs in their attributes."""
    for node in graph.node:
        yield node
        for attr in node.attribute:
            for inner in [attr.g, *attr.graphs] if attr.HasField("g") else attr.graphs:
                yield from _all_nodes(inner)


def _known_shapes(model: Any) -> dict[str, str]:
    """Texts such as ``x: float32[1, 3]``, by name, as far as ONNX can infer them."""
    import onnx

    with contextlib.suppress(Exception):
        model = onnx.shape_inference.infer_shapes(model)
    graph = model.graph
    texts = {t.name: f"{t.name}: {list(t.dims)}" for t in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = [d.dim_value or d.dim_param or "?" for d in value.type.tensor_type.shape.dim]
        texts[value.name] = f"{value.name}: [{', '.join(str(d) for d in dims)}]"
    return texts


def _attribute(attr: Any) -> Any:
    """An attribute's value; texts decoded, tensors as arrays, graphs as they are."""
    import onnx

    value = onnx.helper.get_attribute_value(attr)
    if isinstance(value, bytes):
        return value.decode("utf8", errors="replace")
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
        return [v.decode("utf8") if isinstance(v, bytes) else v for v in value]
    return value
