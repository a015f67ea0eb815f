"""From a TorchScript graph to a relay function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis import free_vars
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Tuple, TupleWrapper, Var, var
from tvm.relay.frontend.common import (
    ExprFolder,
    constant,
    infer_shape,
    set_span,
    unsupported_operators,
)
from tvm.relay.function import OUTPUT_NAMES, Function
from tvm.relay.op.packed_call import OPEN
from tvm.relay.prelude import Prelude
from tvm.runtime import ndarray as nd
from tvm.runtime.foreign.torch_call import to_numpy

from .aliasing import SharedMemory
from .complex_tensors import Complex, as_pairs
from .control import dynamic_branch, names_within
from .decomposition import Decomposer
from .dynamic_lists import item, on_dynamic_list
from .dynamic_loops import dynamic_loop
from .dynamic_shapes import without_variables
from .fallback import torch_call
from .folding import folded
from .fx import as_constant
from .graph_types import type_text, write_graph
from .inputs import Input, bound_input, needs_lists, script_defaults
from .nested import Record, is_dynamic_list
from .nodes import (
    all_nodes,
    empty_results,
    has_traced_shapes,
    is_within_branch,
    node_name,
    overload_of,
    stand_ins,
    tensors_in,
    traced_function,
    unsupported,
)
from .output_names import scripted_names
from .quantized import aware_operators, has_quantized, on_quantized, quantized_constant
from .quantized_layers import KEPT_WEIGHTS
from .registry import CONVERTERS, Converter, adapted, as_number, is_tensor
from .script_builtins import computed, has_list_first, is_plain, language_operator
from .strided import in_memory_order
from .views import Stale, as_written, put_same

_STRUCTURE = {
    "prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct",
    "prim::ListUnpack", "prim::TupleUnpack", "prim::If", "prim::Loop", "prim::DictConstruct",
    "prim::SetAttr", "prim::CreateObject", "prim::TupleIndex", "prim::PythonOp", "prim::Print",
    "prim::RaiseException", "prim::Enter", "prim::Exit",
}  # fmt: skip
# they write nothing: the name stands for another view of its memory from then on
_OTHER_SHAPE_IN_PLACE = {
    "aten::unsqueeze_", "aten::squeeze_", "aten::t_", "aten::transpose_", "aten::swapaxes_",
    "aten::swapdims_",
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
        The inputs in order. A tuple has a tuple of these shapes; a list has a list of them, and
        is passed as the prelude's ``List``.
    custom_convert_map : dict, optional
        More converters by operator name, ``f(inputs, input_types) -> expr``.
    default_dtype : str
        The element type of inputs for which neither ``input_infos`` nor the trace has one.
    use_parser_friendly_name : bool
        Replace dots in the names of weights by underscores.
    keep_quantized_weight : bool
        Let the integers of quantised weights be parameters, rather than constants of the module.
    export_renamed_c_graph_path : str, optional
        A folder to write the graph to as text, its values named as the spans of expressions are.
    preserve_pytorch_scopes : bool
        Let the spans of expressions name the modules that operators belong to.
    fallback : bool
        Let PyTorch compute operators that are not supported, with a warning for each. The compiled
        model then needs Python with this package and PyTorch to run, wherever that is.

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
    importer.custom = set(custom_convert_map or ())
    importer.fallback = fallback
    importer.with_scopes = preserve_pytorch_scopes
    importer.check_operators(graph)
    inputs = importer.bind_inputs(graph, script_module, input_infos, default_dtype)
    with KEPT_WEIGHTS.scope(importer.packed_weight) if keep_quantized_weight else nullcontext():
        importer.run_block(graph)
    importer.raise_if_unsupported()
    if export_renamed_c_graph_path:
        write_graph(graph, importer.names, export_renamed_c_graph_path)
    outputs = list(graph.outputs())
    mod = importer.finished(inputs, [importer.output(value) for value in outputs])
    if names := scripted_names(importer.values.get(outputs[0].debugName())):
        mod["main"] = mod["main"].with_attr(OUTPUT_NAMES, names)
    used = [v.name_hint for v in mod["main"].params if v.name_hint in importer.params]
    return mod, {name: importer.params[name] for name in used}


def _module_path(scope: str) -> str:
    """``"Net::/Block::layer1/Conv2d::conv"`` -> ``"layer1.conv"``; module paths keep their last part."""
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


class GraphImporter(SharedMemory):
    """Names of a TorchScript graph and the values they stand for."""

    def __init__(self, converters: Mapping[str, Converter], separator: str) -> None:
        self.converters = converters
        self.custom: set[str] = set()  # operators that the user converts
        self.separator = separator
        super().__init__()
        self.paths: dict[str, str] = {}  # of submodules
        self.params: dict[str, nd.NDArray] = {}
        self.prelude: Prelude | None = None  # of the module, if inputs are lists
        self._weights: dict[str, Var] = {}
        self.packed: dict[int, tuple[Any, str]] = {}  # quantised weights and their paths
        self.fields: dict[tuple[int, str], Any] = {}  # of modules and objects, once they are set
        self.folder = ExprFolder()
        self.fallback = False  # whether torch computes what is unknown
        self.left: set[str] = set()  # operators that it computes
        self.with_scopes = False  # whether spans name modules
        self._counts: dict[str, int] = {}  # nodes so far, by operator
        self.names: dict[str, str] = {}  # names of nodes, by their outputs
        self.unknown: list[Any] = []  # nodes that nothing is known to convert
        self.avoidable: list[Any] = []  # such nodes in branches, which may not be taken
        self.decomposer = Decomposer(converters, self.folder)
        self.aware = aware_operators()

    def check_operators(self, graph: Any) -> None:
        """Note the nodes of unknown operators, and raise at once for a graph without shapes."""
        for node in all_nodes(graph):
            if not self.knows(node):
                (self.avoidable if is_within_branch(node) else self.unknown).append(node)
        if any(stand_ins(node) is None for node in self.unknown):
            self.raise_if_unsupported()

    def raise_if_unsupported(self) -> None:
        """One error for all nodes that were found to be unknown."""
        unknown = [n for n in self.unknown if not self.fallback or overload_of(n) is None]
        if unknown:
            raise unsupported_operators(
                "PyTorch", [unsupported(n, self.converters) for n in unknown], _HINT
            )

    def knows(self, node: Any) -> bool:
        """Whether a node has a converter, or torch can decompose it."""
        if self.find(node) is not None or language_operator(node) is not None or is_plain(node):
            return True
        overload = overload_of(node)
        return overload is not None and self.decomposer.knows(overload)

    def find(self, node: Any) -> Converter | str | None:
        """The converter of an overload, of an operator, or of it without writing in place."""
        kind: str = node.kind()
        if kind in _STRUCTURE:
            return kind
        overload = node.schema().partition("(")[0]
        found = self.converters.get(overload) or self.converters.get(kind)
        if found is None and kind.endswith("_") and not kind.endswith("__"):
            found = self.converters.get(kind[:-1])
        return found

    def bind_inputs(
        self, graph: Any, module: Any, infos: Sequence[Any], default_dtype: str
    ) -> list[Input]:
        """The inputs of the graph, in order."""
        values = list(graph.inputs())
        if values and "__torch__" in str(values[0].type()):
            self.values[values[0].debugName()] = module
            self.paths[values[0].debugName()] = ""
            values = values[1:]
        values = self._with_defaults(values, script_defaults(module), len(infos))
        if len(values) != len(infos):
            names = [value.debugName() for value in values]
            raise TVMError(
                f"from_pytorch requires one input_info for each of the inputs {names}, "
                f"got {len(infos)}"
            )
        if needs_lists(infos):
            self.prelude = Prelude(IRModule())
        found = [
            bound_input(info, value.type(), default_dtype, self.prelude)
            for value, info in zip(values, infos, strict=True)
        ]
        self.values.update({v.debugName(): f.value for v, f in zip(values, found, strict=True)})
        return found

    def finished(self, inputs: Sequence[Input], outputs: Sequence[RelayExpr]) -> IRModule:
        """The module of a function of inputs and weights."""
        body = outputs[0] if len(outputs) == 1 else Tuple(list(outputs))
        weights = [v for v in free_vars(body) if v.name_hint in self.params]
        for bound in reversed(inputs):
            set_span(bound.variable, bound.variable.name_hint)
            body = bound.around(body)
        variables = [bound.variable for bound in inputs]
        func = without_variables(Function([*variables, *weights], body))
        if self.prelude is None:
            return IRModule.from_expr(func)
        mod = self.prelude.mod
        mod["main"] = func
        return mod

    def _with_defaults(self, values: list[Any], defaults: list[Any], count: int) -> list[Any]:
        """The inputs that are given, the last ones take the values they have by default."""
        known = list(zip(reversed(values[count:]), reversed(defaults), strict=False))
        if len(known) < len(values) - count:
            return values
        self.values.update({value.debugName(): default for value, default in known})
        return values[:count]

    def output(self, value: Any) -> RelayExpr:
        """An output of the graph as one expression."""
        return self._as_expr(self._read(value))

    def _as_expr(self, value: Any) -> RelayExpr:
        if isinstance(value, TupleWrapper):
            return value.astuple()
        if isinstance(value, dict):
            value = list(value.values())
        if is_dynamic_list(value):
            raise TVMError(
                "from_pytorch requires outputs of known structure, got a list whose length is "
                "known at run time only",
                hint="return torch.stack or torch.cat of the list",
            )
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
            elif (plain := self._plain(node, args)) is not None:
                results = plain
            else:
                results = self._convert(node, kind, args)
                self._set_spans(node, args, results)
            for value, result in zip(node.outputs(), results, strict=False):
                self.values[value.debugName()] = result
            self.note_views(node)
            self.note_members(node, args)

    def _plain(self, node: Any, args: list[Any]) -> list[Any] | None:
        """What the operators of the language give, and those without tensors."""
        if node.kind() in self.custom:
            return None
        if any(is_dynamic_list(arg) for arg in args):
            return [on_dynamic_list(node.kind(), args)]
        if (operator := language_operator(node)) is not None:
            return [operator(*args)]
        no_tensors = any(isinstance(arg, str) for arg in args) or has_list_first(args)
        if (no_tensors or self.find(node) is None) and is_plain(node):
            return computed(node, args)
        return None

    def _set_spans(self, node: Any, args: Sequence[Any], results: Sequence[Any]) -> None:
        """Say which node expressions come from: ``aten::relu_0``, the second is ``aten::relu_1``.

        Inputs and weights come from the first node that takes them: ``aten::linear_0.weight``.
        """
        kind = node.kind()
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        name = f"{kind}_{number}"
        if self.with_scopes and node.scopeName():
            name = f"{_module_path(node.scopeName())}/{name}"
        for value in node.outputs():
            self.names.setdefault(value.debugName(), name)
        for tensor in tensors_in(args):
            if isinstance(tensor, Var):
                set_span(tensor, f"{name}.{self._own_name(tensor)}")
        for tensor in tensors_in(results):
            set_span(tensor, name)

    def _own_name(self, variable: Var) -> str:
        """The name of an input, or that of a weight within its module."""
        name = variable.name_hint
        return name.rpartition(self.separator)[2] if name in self.params else name

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
        if any(node is unknown for unknown in self.avoidable):
            self._reach(node)
        if any(node is unknown for unknown in self.unknown):
            return self._replaced(node, args)
        try:
            results = self.fold_results(self.apply(node, args), node.outputsSize())
        except OpNotImplemented as error:
            if stand_ins(node) is None:
                raise error.add_context(f"PyTorch node {node_name(node)} ({kind})") from None
            self.unknown.append(node)
            return self._replaced(node, args)
        except TVMError as error:
            raise error.add_context(f"PyTorch node {node_name(node)} ({kind})") from None
        except (TypeError, RuntimeError) as error:
            shapes = [type_text(v) for v in node.inputs()]
            raise TVMError(f"{kind} cannot be imported with inputs {shapes}: {error}") from error
        if kind in _OTHER_SHAPE_IN_PLACE:
            self.values[next(iter(node.inputs())).debugName()] = results[0]
        elif kind.endswith("_") and not kind.endswith("__") and is_tensor(results[0]):
            results = [self.folder.fold(as_written(args[0], results[0]))]
            self.write(next(iter(node.inputs())).debugName(), results[0])
        return results

    def _reach(self, node: Any) -> None:
        """A branch with unknown nodes is taken."""
        self.avoidable = [other for other in self.avoidable if other is not node]
        self.unknown.append(node)
        if not self.fallback and stand_ins(node) is None:
            self.raise_if_unsupported()

    def _replaced(self, node: Any, args: Sequence[Any]) -> list[Any]:
        """The results of an unknown operator: torch's, or variables while faults are sought."""
        substitutes = stand_ins(node) or []
        overload = overload_of(node)
        if not self.fallback or overload is None:
            return list(substitutes)
        types = [(infer_shape(v), tensor_type_of(v).dtype) for v in substitutes]
        if not has_traced_shapes(node, args):
            types = [((OPEN,) * len(shape), dtype) for shape, dtype in types]
        return list(torch_call(overload, [as_number(arg) for arg in args], types, self.left))

    def _strided_arguments(self, node: Any, args: Sequence[Any]) -> list[Any]:
        data = next(iter(node.inputs()))
        view = self.views.get(data.debugName())
        strides = data.type().strides() if data.type().kind() == "TensorType" else None
        return in_memory_order(args, strides, view is None or view.put is put_same)

    def apply(self, node: Any, args: Sequence[Any]) -> Any:
        if (empty := empty_results(node, args)) is not None:
            return empty if len(empty) > 1 else empty[0]
        if node.kind() == "aten::as_strided":
            args = self._strided_arguments(node, args)
        convert = self.find(node) or (
            lambda *given: self.decomposer.apply(overload_of(node), given)
        )
        assert callable(convert)
        if node.kind() not in self.aware and has_quantized(args):
            return on_quantized(node.kind(), convert, args)
        return convert(*args)

    def fold_results(self, result: Any, count: int) -> list[Any]:
        """The results of a node with so many outputs."""
        found = folded(result, self.folder)
        return found if count > 1 and isinstance(found, list) else [found]

    # ---- structure

    def _prim_Constant(self, node: Any, args: list[Any]) -> list[Any]:
        if "value" not in node.attributeNames():
            return [None]
        kind = node.kindOf("value")
        if kind == "t":
            return [_tensor_constant(node.t("value"))]
        if kind == "ival":
            return [_ivalue(node.output().toIValue())]
        value = getattr(node, kind)("value")
        return [bool(value) if node.output().type().kind() == "BoolType" else value]

    def _prim_GetAttr(self, node: Any, args: list[Any]) -> list[Any]:
        owner = next(iter(node.inputs())).debugName()
        name = node.s("name")
        if isinstance(args[0], Record):
            return [args[0].fields[name]]
        if (id(args[0]), name) in self.fields:
            return [self.fields[id(args[0]), name]]
        path = f"{self.paths[owner]}{self.separator}{name}" if self.paths[owner] else name
        value = getattr(args[0], name)
        output = node.output().debugName()
        if hasattr(value, "named_parameters") or type(value).__name__.endswith("ScriptModule"):
            self.paths[output] = path
            return [value]
        if type(value).__name__ == "ScriptObject":
            self.packed[id(value)] = value, path
        if isinstance(value, list) and any(hasattr(item, "detach") for item in value):
            return [self._weights_of(args[0], value, path)]
        return [self._weight(path, value) if hasattr(value, "detach") else value]

    def _weights_of(self, owner: Any, values: Sequence[Any], path: str) -> list[Any]:
        """A list of tensors, under the names that they have as parameters of their module."""
        names = {tensor.data_ptr(): name for name, tensor in owner.named_parameters()}
        prefix = path.rpartition(self.separator)[0]
        return [
            self._weight(
                self.separator.join([prefix, name] if prefix else [name])
                if (name := names.get(value.data_ptr())) else f"{path}{self.separator}{i}",
                value,
            )
            for i, value in enumerate(values)
        ]  # fmt: skip

    def _weight(self, path: str, tensor: Any) -> Any:
        if tensor.dim() == 0 or tensor.is_complex() or tensor.is_quantized:
            return _tensor_constant(tensor)
        return self._weights.get(path) or self._parameter(path, to_numpy(tensor))

    def _parameter(self, path: str, array: np.ndarray) -> Var:
        if path not in self._weights:
            value = self.params[path] = nd.array(array)
            weight = var(path, shape=value.shape, dtype=value.dtype)
            self._weights[path] = weight
        return self._weights[path]

    def packed_weight(self, packed: Any, integers: np.ndarray) -> Var:
        """A variable for the integers of a packed weight."""
        _, path = self.packed.get(id(packed), (packed, f"packed{self.separator}{len(self.packed)}"))
        self.packed.setdefault(id(packed), (packed, path))
        return self._parameter(f"{path}_weight", integers)

    def _prim_ListConstruct(self, node: Any, args: list[Any]) -> list[Any]:
        return [list(args)]

    _prim_TupleConstruct = _prim_ListConstruct

    def _prim_DictConstruct(self, node: Any, args: list[Any]) -> list[Any]:
        return [dict(zip(args[::2], args[1::2], strict=True))]

    def _prim_ListUnpack(self, node: Any, args: list[Any]) -> list[Any]:
        value = args[0]
        if is_dynamic_list(value):
            return [item(value, i) for i in range(node.outputsSize())]
        if isinstance(value, TupleWrapper):
            return [value[i] for i in range(value.size)]
        if is_tensor(value):
            raise TVMError(f"{node_name(node)} unpacks a tensor, a list is required")
        return list(value)

    _prim_TupleUnpack = _prim_ListUnpack

    def _prim_TupleIndex(self, node: Any, args: list[Any]) -> list[Any]:
        return [args[0][args[1]]]

    def _prim_Enter(self, node: Any, args: list[Any]) -> list[Any]:
        """A context such as torch.no_grad, which results do not depend on."""
        return list(args)

    def _prim_RaiseException(self, node: Any, args: list[Any]) -> list[Any]:
        return []

    _prim_Print = _prim_Exit = _prim_RaiseException

    def _prim_CreateObject(self, node: Any, args: list[Any]) -> list[Any]:
        return [Record()]

    def _prim_SetAttr(self, node: Any, args: list[Any]) -> list[Any]:
        owner, value = args
        if isinstance(owner, Record):
            owner.fields[node.s("name")] = value
        else:
            self.fields[id(owner), node.s("name")] = value
        return []

    def _prim_PythonOp(self, node: Any, args: list[Any]) -> list[Any]:
        """A function of torch.autograd: what its forward computes was traced too."""
        if not traced_function(node):
            raise unsupported_operators("PyTorch", [unsupported(node, self.converters)], _HINT)
        (graph,) = traced_function(node)
        outside = self.values, self.views, self.derived
        inside = {v.debugName(): arg for v, arg in zip(graph.inputs(), args, strict=True)}
        self.values, self.views, self.derived = inside, {}, {}
        try:
            results = self.block_results(graph)
        finally:
            self.values, self.views, self.derived = outside
        for value, inner, arg in zip(node.inputs(), graph.inputs(), args, strict=True):
            if (written := inside[inner.debugName()]) is not arg:
                self.write(value.debugName(), written)
        return results if len(results) == node.outputsSize() else [results]

    def _prim_If(self, node: Any, args: list[Any]) -> list[Any]:
        """A condition known at import decides; the other branch is not looked at then."""
        condition = as_number(args[0])
        if is_tensor(condition):
            return dynamic_branch(self, node, condition)
        chosen = list(node.blocks())[0 if condition else 1]
        results = self.block_results(chosen)
        for value, inner in zip(node.outputs(), chosen.outputs(), strict=True):
            self.note_alias(value.debugName(), inner.debugName(), node)
        return results

    def block_results(self, block: Any) -> list[Any]:
        """Convert the nodes of a block; what it gives."""
        self.run_block(block)
        return [self._read(value) for value in block.outputs()]

    def _prim_Loop(self, node: Any, args: list[Any]) -> list[Any]:
        """Loops are unrolled while trip count and condition are known at import."""
        trip_count, condition, *carried = [as_number(arg) for arg in args[:2]] + args[2:]
        (block,) = node.blocks()
        sources = [value.debugName() for value in list(node.inputs())[2:]]
        names = [value.debugName() for value in block.inputs()]
        inner = names_within(node)
        step = 0
        while is_tensor(trip_count) or step < trip_count:
            if is_tensor(condition) or is_tensor(trip_count):
                return dynamic_loop(self, node, trip_count, condition, carried, step)
            if not condition:
                break
            self.values.update(zip(names, [step, *carried], strict=True))
            for name, source in zip(names[1:], sources, strict=True):
                self.note_alias(name, source, node)
            condition, *carried = self.block_results(block)
            condition = as_number(condition)
            sources = [self.owner(value.debugName(), inner) for value in block.outputs()][1:]
            step += 1
        for output, source in zip(node.outputs(), sources, strict=True):
            self.note_alias(output.debugName(), source, node)
        return carried


def _tensor_constant(tensor: Any) -> Any:
    if tensor.is_quantized:
        return quantized_constant(tensor)
    return as_constant(tensor)


def _ivalue(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_ivalue(item) for item in value]
    return _tensor_constant(value) if hasattr(value, "detach") else value
