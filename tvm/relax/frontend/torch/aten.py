"""Graphs of ATen's operators: by emitters, else by the converters of relay's importer."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.type import TensorType
from tvm.relax.expr import Constant, Tuple
from tvm.relax.frontend.relay import Translator
from tvm.relay.expr import Constant as GraphConstant
from tvm.relay.expr import Var as GraphVar
from tvm.relay.frontend.pytorch.complex_tensors import Complex
from tvm.relay.frontend.pytorch.decomposition import decomposing_runner
from tvm.relay.frontend.pytorch.exported import as_expr
from tvm.relay.frontend.pytorch.fx import full_arguments, wants_no_indices
from tvm.relay.frontend.pytorch.registry import CONVERTERS, kind_of

from .base_fx_graph_translator import BaseFXGraphImporter, NoEmitter, is_tensor

# they check what tracing assumed, and compute nothing
_CHECKS = {
    "_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range",
    "sym_constrain_range_for_size", "_set_grad_enabled",
}  # fmt: skip


def run_nodes(importer: BaseFXGraphImporter, module: Any, inputs: Sequence[Any]) -> Any:
    """The outputs of a graph of ATen's operators, for the values of its placeholders."""
    given = iter(inputs)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            importer.env[node] = next(given)
        elif node.op == "get_attr":
            importer.env[node] = attribute(importer, module, node.target)
        elif node.op == "output":
            return importer.value(node.args[0])
        else:
            importer.env[node] = call_node(importer, node)
            if hasattr(node.target, "_schema"):
                importer.write_back(kind_of(node.target), node)
    return None


def attribute(importer: BaseFXGraphImporter, module: Any, target: str) -> Any:
    """An attribute of a module, a tensor as a parameter or a constant."""
    found = module
    for part in target.split("."):
        found = getattr(found, part)
    return importer.constant(found) if hasattr(found, "detach") else found


def call_node(importer: BaseFXGraphImporter, node: Any) -> Any:
    """The value of a node that calls an operator."""
    args, kwargs = importer.retrieve_args(node), importer.value(dict(node.kwargs))
    target = node.target
    if target is operator.getitem:
        return importer.getitem(*args)
    if not hasattr(target, "_schema"):
        if any([is_tensor(arg) for arg in args]):
            raise OpNotImplemented(f"node {node.name} calls {target}, which is no ATen operator")
        return target(*args, **kwargs)
    try:
        return call_overload(importer, node, args, kwargs)
    except TVMError as error:
        raise error.add_context(f"PyTorch node {node.name} ({target})") from None


def call_overload(
    importer: BaseFXGraphImporter, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The results of an operator of ATen."""
    name = kind_of(node.target).removeprefix("aten::")
    if name in _CHECKS:
        return None
    try:
        if wants_no_indices(node):
            return [importer.call(name.removesuffix("_with_indices"), args, kwargs), None]
        return importer.call(name, args, _without_places(kwargs))
    except NoEmitter:
        return by_relay(importer, node, args, kwargs)


def _without_places(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that say something of values."""
    names = ("device", "layout", "pin_memory", "memory_format")
    return {name: value for name, value in kwargs.items() if name not in names}


def by_relay(
    importer: BaseFXGraphImporter, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The results of an operator as the converter of relay's importer has it."""
    translator = Translator(importer.block_builder)

    def as_graph(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [as_graph(item) for item in value]
        if isinstance(value, Constant):
            return GraphConstant(value.data)
        if not is_tensor(value):
            return value
        if isinstance(value, Tuple):
            return [as_graph(field) for field in value.fields]
        ty = TensorType(importer.shape_of(value), importer.dtype_of(value))
        made = GraphVar("x", ty)
        translator.bind(made, value)
        return made

    runner = decomposing_runner(CONVERTERS)
    given = [as_graph(arg) for arg in full_arguments(node.target, args, kwargs)]
    if any([isinstance(arg, PrimExpr) for arg in _leaves(given)]):
        raise OpNotImplemented(f"{node.target} of symbolic sizes is not supported")
    return _translated(translator, runner.fold_results(runner.convert(node.target, given)))


def _translated(translator: Translator, result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [_translated(translator, item) for item in result]
    if isinstance(result, Complex):
        raise OpNotImplemented("relax has no complex numbers")
    return result if result is None else translator.run(as_expr(result))


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]
