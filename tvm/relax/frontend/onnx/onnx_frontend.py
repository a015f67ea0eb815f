"""From an ONNX model to a module of relax.

What ONNX's operators mean is said once, by the converters of `tvm/relay/frontend/onnx/`; the graph
that they make is translated operator by operator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
        names, those that it leaves open without a name are variables of their own.
    shape_dict : dict of str to tuple, optional
        Input shapes, of integers or `tir.Var`, which count before the model's.
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
    """The shapes of inputs that are given, or that are open in the model, with variables."""
    weights = {tensor.name for tensor in model.graph.initializer}
    named: dict[str, tir.Var] = {}
    found: dict[str, Sequence[Any]] = dict(given)
    for value in model.graph.input:
        if value.name in weights or not value.type.HasField("tensor_type"):
            continue
        tensor = value.type.tensor_type
        if value.name in given or not tensor.HasField("shape"):
            continue
        dims = [_dimension(dim, named, value.name) for dim in tensor.shape.dim]
        if any([not isinstance(dim, int) for dim in dims]):
            found[value.name] = dims
    return found


def _dimension(dim: Any, named: dict[str, tir.Var], name: str) -> Any:
    if dim.HasField("dim_value") and (dim.dim_value > 0 or not dim.dim_param):
        return dim.dim_value
    if not re.fullmatch(r"[A-Za-z_]\w*", dim.dim_param):
        return tir.SizeVar(re.sub(r"\W", "_", f"{name}_dim"), "int64")
    return named.setdefault(dim.dim_param, tir.SizeVar(dim.dim_param, "int64"))


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
