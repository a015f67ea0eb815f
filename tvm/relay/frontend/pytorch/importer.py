"""From a TorchScript graph to a relay function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis import free_vars
from tvm.relay.expr import Tuple, TupleWrapper, Var, var
from tvm.relay.frontend.common import ExprFolder, Unsupported, constant, infer_type, refuse
from tvm.relay.function import Function
from tvm.runtime import ndarray as nd

from .registry import CONVERTERS, Converter, as_number, is_tensor
from .views import Stale, View, as_written, put_same, views_of

_STRUCTURE = {
    "prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct",
    "prim::ListUnpack", "prim::TupleUnpack", "prim::If", "prim::Loop", "prim::DictConstruct",
    "prim::SetAttr", "prim::TupleIndex", "prim::Print", "prim::RaiseException",
}  # fmt: skip
_HINT = "pass custom_convert_map={name: function(inputs, types) -> expr} to from_pytorch"


def from_pytorch(
    script_module: Any,
    input_infos: Sequence[Any],
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = False,
    export_renamed_c_graph_path: str | None = None,
    preserve_pytorch_scopes: bool = False,
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
    keep_quantized_weight, export_renamed_c_graph_path, preserve_pytorch_scopes
        Have to be left at their defaults.

    Returns
    -------
    (IRModule, dict of str to NDArray)
        The module, and the weights by their names in the state dict.

    Raises
    ------
    OpNotImplemented
        With a list of all nodes whose operators are not supported.
    """
    if keep_quantized_weight or export_renamed_c_graph_path or preserve_pytorch_scopes:
        raise TVMError(
            "from_pytorch has no keep_quantized_weight, export_renamed_c_graph_path and "
            "preserve_pytorch_scopes, leave them out"
        )
    graph = _inlined_graph(script_module)
    converters = {**CONVERTERS, **_custom(custom_convert_map)}
    importer = GraphImporter(converters, "_" if use_parser_friendly_name else ".")
    importer.check_operators(graph)
    inputs = importer.bind_inputs(graph, script_module, input_infos, default_dtype)
    importer.run_block(graph)
    outputs = [importer.output(value) for value in graph.outputs()]
    body = outputs[0] if len(outputs) == 1 else Tuple(outputs)
    weights = [v for v in free_vars(body) if v.name_hint in importer.params]
    params = {v.name_hint: importer.params[v.name_hint] for v in weights}
    return IRModule.from_expr(Function([*inputs, *weights], body)), params


def _inlined_graph(script_module: Any) -> Any:
    graph = getattr(script_module, "inlined_graph", None)
    if graph is None:
        raise TypeError(
            "from_pytorch requires a traced or scripted module, got "
            f"{type(script_module).__name__}; hint: torch.jit.trace(model, example_inputs)"
        )
    return graph


def _custom(converters: Mapping[str, Callable[..., Any]] | None) -> dict[str, Converter]:
    def adapt(convert: Callable[..., Any]) -> Converter:
        return lambda *args: convert(list(args), [_type_name(arg) for arg in args])

    return {name: adapt(convert) for name, convert in (converters or {}).items()}


def _type_name(value: Any) -> str:
    return (
        str(value.checked_type.dtype) if hasattr(value, "_checked_type_") else type(value).__name__
    )


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
        self.views: dict[str, View] = {}  # by the name of the value that shares memory
        self.derived: dict[str, list[str]] = {}  # names of views by what they share memory with

    def check_operators(self, graph: Any) -> None:
        """Refuse the graph with one error if operators are unknown."""
        unknown = [node for node in _all_nodes(graph) if self.find(node.kind()) is None]
        if unknown:
            raise refuse("PyTorch", [
                Unsupported(n.kind(), _node_name(n), [_type_text(v) for v in n.inputs()])
                for n in unknown
            ], _HINT)  # fmt: skip

    def find(self, kind: str) -> Converter | str | None:
        """The converter of an operator; in-place ones use that of the plain operator."""
        if kind in _STRUCTURE:
            return kind
        found = self.converters.get(kind)
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
            name, shape, dtype = _input_info(info, value, default_dtype)
            result.append(var(name, shape=shape, dtype=dtype))
            self.values[value.debugName()] = result[-1]
        return result

    def output(self, value: Any) -> RelayExpr:
        """An output of the graph as one expression."""
        return self._as_expr(self._read(value))

    def _as_expr(self, value: Any) -> RelayExpr:
        if isinstance(value, TupleWrapper):
            return value.astuple()
        if isinstance(value, dict):
            value = list(value.values())
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
            for value, result in zip(node.outputs(), results, strict=False):
                self.values[value.debugName()] = result
            self._note_views(node)

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
        convert = self.find(kind)
        assert callable(convert)
        try:
            results = self._fold(convert(*args), node.outputsSize())
            for result in _tensors(results):
                infer_type(result)
        except TVMError as error:
            raise error.add_context(f"PyTorch node {_node_name(node)} ({kind})") from None
        except TypeError as error:
            shapes = [_type_text(v) for v in node.inputs()]
            raise TVMError(f"{kind} cannot be imported with inputs {shapes}: {error}") from error
        if kind.endswith("_") and not kind.endswith("__") and is_tensor(results[0]):
            results = [self.folder.fold(as_written(args[0], results[0]))]
            self._write(next(iter(node.inputs())).debugName(), results[0])
        return results

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
                convert = self.find(node.kind())
                assert callable(convert)
                self.values[derived] = self._fold(convert(*inputs), node.outputsSize())[0]
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
        if isinstance(result, (list, tuple)):
            items = [self.folder.fold(r) if is_tensor(r) else r for r in result]
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

    def _weight(self, path: str, tensor: Any) -> RelayExpr:
        if tensor.dim() == 0:
            return constant(_to_numpy(tensor))
        if path not in self._weights:
            value = self.params[path] = nd.array(_to_numpy(tensor))
            self._weights[path] = var(path, shape=value.shape, dtype=value.dtype)
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
            raise TVMError(f"{_node_name(node)} unpacks a tensor, a list is required")
        return list(value)

    _prim_TupleUnpack = _prim_ListUnpack

    def _prim_TupleIndex(self, node: Any, args: list[Any]) -> list[Any]:
        return [args[0][args[1]]]

    def _prim_RaiseException(self, node: Any, args: list[Any]) -> list[Any]:
        return []

    _prim_Print = _prim_SetAttr = _prim_RaiseException

    def _prim_If(self, node: Any, args: list[Any]) -> list[Any]:
        """Only a condition known at import is decided; the other branch is not looked at."""
        condition = as_number(args[0])
        if is_tensor(condition):
            raise TVMError(
                f"prim::If {_node_name(node)} depends on data",
                hint="trace the model, or give the condition as a constant",
            )
        block = list(node.blocks())[0 if condition else 1]
        self.run_block(block)
        return [self.values[value.debugName()] for value in block.outputs()]

    def _prim_Loop(self, node: Any, args: list[Any]) -> list[Any]:
        """Loops whose trip count and condition are known at import are unrolled."""
        trip_count, condition, *carried = [as_number(arg) for arg in args[:2]] + args[2:]
        (block,) = node.blocks()
        names = [value.debugName() for value in block.inputs()]
        step = 0
        while step < trip_count and condition:
            if is_tensor(trip_count) or is_tensor(condition):
                raise TVMError(
                    f"prim::Loop {_node_name(node)} depends on data",
                    hint="trace the model with example inputs instead of scripting it",
                )
            self.values.update(zip(names, [step, *carried], strict=True))
            self.run_block(block)
            condition, *carried = [self.values[v.debugName()] for v in block.outputs()]
            condition = as_number(condition)
            step += 1
        return carried


def _all_nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _all_nodes(inner)


def _node_name(node: Any) -> str:
    return next((f"%{value.debugName()}" for value in node.outputs()), node.kind())


def _type_text(value: Any) -> str:
    """``Float[1, 3]`` for a tensor of known shape, the type otherwise."""
    kind = value.type()
    if kind.kind() != "TensorType":
        return str(kind)
    sizes, scalar = kind.sizes(), kind.scalarType()
    return f"{scalar}{list(sizes)}" if sizes is not None else str(kind)


def _tensors(values: Any) -> Iterator[RelayExpr]:
    if isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)
    elif is_tensor(values):
        yield values


def _is_module(value: Any) -> bool:
    return hasattr(value, "named_parameters") or type(value).__name__.endswith("ScriptModule")


def _input_info(info: Any, value: Any, default_dtype: str) -> tuple[str, tuple[int, ...], str]:
    if not isinstance(info, (tuple, list)) or len(info) != 2 or not isinstance(info[0], str):
        raise TypeError(f"an input_info is (name, shape) or (name, (shape, dtype)), got {info!r}")
    name, rest = info
    if len(rest) == 2 and isinstance(rest[0], (tuple, list)):
        return name, _input_shape(name, rest[0]), _dtype_text(rest[1])
    is_tensor_type = value.type().kind() == "TensorType"
    scalar = value.type().scalarType() if is_tensor_type else None
    return name, _input_shape(name, rest), _SCALAR_TYPES.get(scalar, default_dtype)


def _input_shape(name: str, shape: Sequence[Any]) -> tuple[Any, ...]:
    """The extents, open ones (`relay.Any()`) among them."""
    if wrong := [dim for dim in shape if not isinstance(dim, (int, np.integer, PrimExpr))]:
        raise TypeError(f"the shape of input {name!r} requires integers, got {wrong[0]!r}")
    return tuple(shape)


_SCALAR_TYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool",
}  # fmt: skip


def _dtype_text(dtype: Any) -> str:
    text = str(dtype).removeprefix("torch.")
    return {"float": "float32", "double": "float64", "half": "float16", "long": "int64",
            "int": "int32"}.get(text, text)  # fmt: skip


def _to_numpy(tensor: Any) -> np.ndarray[Any, Any]:
    import torch

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array


def _tensor_constant(tensor: Any) -> Any:
    return constant(_to_numpy(tensor))


def _ivalue(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_ivalue(item) for item in value]
    return _tensor_constant(value) if hasattr(value, "detach") else value
