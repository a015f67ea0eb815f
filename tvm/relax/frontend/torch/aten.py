"""Graphs of ATen's operators: by emitters, else by the converters of relay's importer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import tir
from tvm.arith import Analyzer
from tvm.error import OpError, OpNotImplemented, TVMError
from tvm.ir.expr import PrimExpr
from tvm.ir.type import TensorType
from tvm.relax.expr import Constant, Tuple
from tvm.relax.frontend.relay import Translator
from tvm.relax.struct_info import TensorStructInfo
from tvm.relay.expr import Constant as GraphConstant
from tvm.relay.expr import Var as GraphVar
from tvm.relay.frontend.pytorch.complex_tensors import Complex, has_complex
from tvm.relay.frontend.pytorch.decomposition import decomposing_runner
from tvm.relay.frontend.pytorch.exported import as_expr
from tvm.relay.frontend.pytorch.fx import full_arguments, wants_no_indices
from tvm.relay.frontend.pytorch.registry import CONVERTERS, kind_of
from tvm.relay.frontend.pytorch.tree import leaves

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
    importer.traced = node.meta.get("val")
    if target is operator.getitem:
        return sized(importer, node, importer.getitem(*args))
    if not hasattr(target, "_schema"):
        if any([is_tensor(arg) for arg in args]):
            raise OpNotImplemented(f"node {node.name} calls {target}, which is no ATen operator")
        if any([isinstance(arg, PrimExpr) for arg in args]):
            target = _OF_SIZES.get(target.__name__, target)
        return target(*args, **kwargs)
    try:
        return sized(importer, node, call_overload(importer, node, args, kwargs))
    except TVMError as error:
        raise error.add_context(f"PyTorch node {node.name} ({node.target})") from None


def _quotient(a: Any, b: Any) -> Any:
    return tir.div(*[tir.convert(value).astype("float64") for value in (a, b)])


# functions of numbers, of symbolic sizes
_OF_SIZES: dict[str, Callable[..., Any]] = {
    "sym_float": lambda value: value.astype("float64"),
    "sym_int": lambda value: value.astype("int64"),
    "sym_max": tir.max,
    "sym_min": tir.min,
    "_sym_sqrt": lambda value: tir.sqrt(value.astype("float64")),
    "truediv": _quotient,
    "pow": lambda a, b: tir.power(*[tir.convert(value).astype("float64") for value in (a, b)]),
}


def sized(importer: BaseFXGraphImporter, node: Any, value: Any) -> Any:
    """A tensor with the sizes that PyTorch found, where struct info says less of them."""
    found = getattr(node.meta.get("val"), "shape", None)
    if found is None or not is_tensor(value):
        return value
    info = value.struct_info
    if not isinstance(info, TensorStructInfo) or info.ndim != len(found):
        return value
    known = info.dimensions
    if known is not None and all([isinstance(extent, tir.IntImm) for extent in known]):
        return value
    try:
        wanted = [importer.dimension(extent) for extent in found]
    except OpNotImplemented:
        return value
    pairs = zip(wanted, known or (), strict=known is not None)
    if known is not None and all([Analyzer().can_prove_equal(a, b) for a, b in pairs]):
        return value
    checked = TensorStructInfo(wanted, info.dtype, info.vdevice)
    return importer.block_builder.match_cast(value, checked)


def call_overload(
    importer: BaseFXGraphImporter, node: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """The results of an operator of ATen."""
    name = kind_of(node.target).removeprefix("aten::")
    if name in _CHECKS:
        return None
    if has_complex([*args, *kwargs.values()]):
        return by_relay(importer, node, args, kwargs)
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
        if isinstance(value, Complex):
            return value.map(as_graph)
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
    arguments = full_arguments(node.target, args, kwargs)
    values = list(leaves(arguments))
    unsupported = OpNotImplemented(f"{node.target} of symbolic sizes is not supported")
    if any([isinstance(value, PrimExpr) for value in values]):
        raise unsupported
    given = [as_graph(arg) for arg in arguments]
    try:
        found = runner.fold_results(runner.convert(node.target, given))
    except (TypeError, ValueError, RuntimeError, OpError) as error:
        if isinstance(error, OpNotImplemented) or not any([_is_symbolic(v) for v in values]):
            raise
        raise unsupported from error  # converters of relay's importer count with numbers
    return _translated(translator, found)


def _translated(translator: Translator, result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [_translated(translator, item) for item in result]
    if isinstance(result, Complex):
        return result.map(lambda part: translator.run(as_expr(part)))
    return result if result is None else translator.run(as_expr(result))


def _is_symbolic(value: Any) -> bool:
    """Whether a value is a tensor some of whose sizes are symbolic."""
    info = value.struct_info if is_tensor(value) else None
    if not isinstance(info, TensorStructInfo) or info.dimensions is None:
        return False
    return not all([isinstance(extent, tir.IntImm) for extent in info.dimensions])
