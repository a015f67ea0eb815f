"""From an ONNX model to a module of relax.

What ONNX's operators mean is said once, by the converters of `tvm/relay/frontend/onnx/`; the graph
that they make is translated operator by operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from tvm import tir
from tvm.ir.module import IRModule
from tvm.ir.type import TensorType
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Tuple, Var
from tvm.relax.frontend.relay import Translator
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.transform import DeadCodeElimination
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Var as GraphVar
from tvm.relay.frontend.onnx.model import import_model, loaded
from tvm.relay.frontend.onnx.shape_inference import extents_by_name, is_named, is_open, named_extent
from tvm.support import UniqueNames


def from_onnx(
    model: Any,
    shape_dict: Mapping[str, Sequence[Any]] | None = None,
    dtype_dict: str | Mapping[str, str] | None = "float32",
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
) -> IRModule:
    """Import an ONNX model.

    Parameters
    ----------
    model : onnx.ModelProto or str
        The model or the path of its file. Dimensions that it names are symbolic variables of these
        names, one for all inputs; a name that is a formula of others, such as ``past + sequence``, is
        that formula. Dimensions that it leaves open without a name are variables of their own.
    shape_dict : dict of str to tuple, optional
        Input shapes, of integers or `tir.Var`, which count before the model's, also for dimensions
        of the same names in other inputs.
    dtype_dict : str or dict of str to str
        Element types of inputs by name, or the one of all inputs that the model has no type for.
    opset : int, optional
        Overrides the model's opset.
    keep_params_in_input : bool
        Make weights parameters behind the inputs, with their values in the attribute ``params`` (see
        `relax.frontend.detach_params`), rather than constants.
    sanitize_input_names : bool
        Make the inputs' names identifiers: others than letters, digits and underscores become
        underscores, and a name that begins with a digit gets ``input_`` in front.

    Returns
    -------
    IRModule
        With the function ``main``; its attribute ``num_input`` is the number of inputs that are no
        weights.

    Raises
    ------
    OpNotImplemented
        With a list of all nodes whose operators are not supported; for control flow, and where the
        rank of a tensor depends on values.
    """
    proto, folder = loaded(model)
    shapes = symbolic_shapes(proto, shape_dict or {})
    imported = import_model(
        proto, shapes, dtype_dict or "float32", opset, not keep_params_in_input,
        allow_dynamic=True, folder=folder,
    )  # fmt: skip
    main = imported.mod["main"]
    values = [imported.params.get(p.name_hint) for p in main.params]
    attrs: dict[str, Any] = {"num_input": sum([value is None for value in values])}
    if keep_params_in_input:
        attrs["params"] = [value for value in values if value is not None]
    names = _parameter_names([p.name_hint for p in main.params], sanitize_input_names)
    builder = BlockBuilder()
    params = [_parameter(p, name) for p, name in zip(main.params, names, strict=True)]
    with builder.function("main", params, attrs):
        translator = Translator(builder)
        with builder.dataflow():
            for var, param in zip(main.params, params, strict=True):
                translator.bind(var, param)
            output = builder.emit_output(as_tuple(translator.run(main.body)))
        builder.emit_func_output(output)
    return DeadCodeElimination()(builder.get())


def symbolic_shapes(model: Any, given: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The shapes of inputs that are given, or that are open in the model, with variables.

    Dimensions of one name have one variable, formulas such as ``past + sequence`` those of their
    names, where inputs have these as dimensions of their own.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {
        value.name: value.type.tensor_type.shape.dim
        for value in model.graph.input
        if value.name not in weights and value.name not in given
        and value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape")
    }  # fmt: skip
    known = extents_by_name(model, given)
    for dim in chain.from_iterable(inputs.values()):
        if is_named(dim) and dim.dim_param.isidentifier():
            known.setdefault(dim.dim_param, _variable(dim.dim_param))
    found: dict[str, Sequence[Any]] = dict(given)
    for name, dims in inputs.items():
        if any([is_open(dim) for dim in dims]):
            found[name] = [_extent(dim, known, name) for dim in dims]
    return found


def _extent(dim: Any, known: dict[str, Any], name: str) -> Any:
    if not is_open(dim):
        return dim.dim_value
    if not is_named(dim):
        return _variable(f"{name}_dim")
    extent = named_extent(dim.dim_param, known)
    return known.setdefault(dim.dim_param, _variable(dim.dim_param)) if extent is None else extent


def _variable(name: str) -> tir.SizeVar:
    found: tir.SizeVar = tir.SizeVar(_identifier(name), "int64")
    return found


def _parameter_names(names: Sequence[str], sanitize: bool) -> list[str]:
    if not sanitize:
        return list(names)
    taken = UniqueNames()
    return [taken.fresh(_identifier(name)) for name in names]


def _identifier(name: str) -> str:
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"input_{plain}" if plain[:1].isdigit() else plain


def _parameter(param: GraphVar, name: str) -> Var:
    ty = infer_type_of(param)
    assert isinstance(ty, TensorType), "inputs of ONNX models are tensors"
    return Var(name, TensorStructInfo(list(ty.shape), str(ty.dtype)))


def as_tuple(value: Any) -> Any:
    """Nested lists as tuples."""
    return Tuple([as_tuple(field) for field in value]) if isinstance(value, list) else value
