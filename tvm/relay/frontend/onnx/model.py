"""From an ONNX model, or its file, to a relay module."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from tvm.error import TVMError, install_hint, suggest
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis import free_vars
from tvm.relay.expr import Tuple, Var
from tvm.relay.frontend.common import flat_names
from tvm.relay.function import OUTPUT_NAMES, Function
from tvm.relay.ty import Any as AnyDim
from tvm.runtime import ndarray as nd
from tvm.support.files import replacing

from .checker import all_nodes, check_model
from .importer import GraphImporter
from .narrow_floats import narrow_types
from .registry import EmptyOptional, StringTensor, TensorSequence, Value
from .shape_inference import named_dims, shapes_by_symbols
from .unsupported import check_operators


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    convert_config: Mapping[str, Any] | None = None,
    export_node_renamed_model_path: str | None = None,
    fallback: bool = False,
) -> tuple[IRModule, dict[str, nd.NDArray]]:
    """Import an ONNX model.

    Parameters
    ----------
    model : onnx.ModelProto or str
        The model or the path of its file.
    shape : dict of str to tuple, optional
        Input shapes, where the model leaves dimensions dynamic. A dimension that the model names has
        the same extent in all inputs: the shape of one of them is enough; a name may be a formula of
        others, such as ``past + sequence``.
    dtype : str or dict of str to str
        Element types of inputs by name, which count before the model's; or the one of all inputs
        that the model has no type for.
    opset : int, optional
        Overrides the model's opset.
    freeze_params : bool
        Make weights constants of the function; otherwise they are parameters, returned as dict.
    convert_config : dict, optional
        Options of converters: with ``use_nt_batch_matmul`` (False), batches of matrices are
        multiplied with a transposed second operand.
    export_node_renamed_model_path : str, optional
        Write the model with a name for each node that has none, ``<operator>_<number>``, to this
        file, or into this folder if the path does not end in ``.onnx``.
    fallback : bool
        Let ONNX's reference or ONNX Runtime compute what is not supported, with a warning for each
        operator. The compiled model then needs Python with this package and that one to run,
        wherever that is.

    Returns
    -------
    (IRModule, dict of str to NDArray)
        The module, and the values of its parameters (none if they are frozen).

    Raises
    ------
    OpNotImplemented
        With a list of all nodes whose operators are not supported.
    """
    if export_node_renamed_model_path is not None:
        model = export_renamed(model, export_node_renamed_model_path)
    imported = import_model(
        model, shape, dtype, opset, freeze_params, fallback=fallback,
        convert_config=convert_config, allow_dynamic=True,
    )  # fmt: skip
    for position, value in enumerate(imported.outputs):
        if isinstance(value, StringTensor):
            warnings.warn(
                f"output {position} of the ONNX model gives indices into {list(value.table)}, since "
                "relay has no strings",
                stacklevel=2,
            )
    return imported.mod, imported.params


@dataclass(frozen=True)
class Imported:
    """A module, the values of its parameters, and what its outputs are."""

    mod: IRModule
    params: dict[str, nd.NDArray]
    outputs: list[Value]


def import_model(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
    bound: Mapping[str, Any] | None = None,
    like: Mapping[str, Any] | None = None,
    fallback: bool = False,
    convert_config: Mapping[str, Any] | None = None,
    allow_dynamic: bool = False,
    folder: str = "",
) -> Imported:
    """Import a model; ``bound`` gives values of inputs, ``like`` examples of others.

    With ``allow_dynamic`` shapes may depend on values known only at run time. External data lies in
    the folder of the model's file, or in ``folder`` if the model is no file.
    """
    config = _checked_config(convert_config or {})
    model, own_folder = loaded(model)
    folder = own_folder or folder
    check_model(model, opset)
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    if opset is not None:
        opsets[""] = opset
    check_operators(model, opsets, fallback)
    given = _checked_shapes(shape)
    for name, extents in shapes_by_symbols(model, given).items():
        given[name] = [AnyDim() if extent is None else extent for extent in extents]
    dims = named_dims(model, given) if allow_dynamic and _has_dynamic_inputs(model, given) else {}
    importer = GraphImporter(
        given, dtype, opsets, freeze_params, {(f.domain, f.name): f for f in model.functions},
        bound or {}, like or {}, folder, fallback, config, allow_dynamic, dims,
        narrow_types(model),
    )  # fmt: skip
    outputs = importer.run(model.graph)
    exprs = [_as_expr(value) for value in outputs]
    body = exprs[0] if len(exprs) == 1 else Tuple(exprs)
    used = free_vars(body)
    names = {v.name_hint for v in used}
    inputs = [v for value in importer.inputs.values() for v in _variables(value)]
    weights = [v for v in used if v.name_hint in importer.params]
    params = {name: value for name, value in importer.params.items() if name in names}
    called = [output.name for output in model.graph.output]
    flat = [n for e, name in zip(exprs, called, strict=True) for n in flat_names(name, e)]
    main = Function([*inputs, *weights], body, attrs={OUTPUT_NAMES: flat})
    return Imported(IRModule.from_expr(main), params, outputs)


def _checked_shapes(shape: Any) -> dict[str, Sequence[Any]]:
    """The shapes of inputs by name."""
    if not isinstance(shape or {}, Mapping):
        raise TypeError(f"from_onnx requires a dict of the inputs' shapes, got {shape!r}")
    for name, extents in (shape or {}).items():
        for extent in extents:
            if isinstance(extent, str) or (isinstance(extent, (int, float)) and extent < 0):
                raise TVMError(
                    f"from_onnx requires extents that are not negative, or relay.Any(), got "
                    f"{tuple(extents)} for the input {name!r}"
                )
    return dict(shape or {})


def _has_dynamic_inputs(model: Any, given: Mapping[str, Sequence[Any]]) -> bool:
    """Whether an input has a dimension that is not known at import."""
    return any(
        not isinstance(extent, int)
        for value in model.graph.input
        for extent in given.get(
            value.name,
            [d.dim_value if d.HasField("dim_value") else None
             for d in value.type.tensor_type.shape.dim],
        )
    )  # fmt: skip


def _as_expr(value: Value) -> RelayExpr:
    if isinstance(value, TensorSequence):
        return Tuple([_as_expr(field) for field in value.fields])
    if isinstance(value, StringTensor):
        return value.indices
    return Tuple([]) if isinstance(value, EmptyOptional) else value


def _variables(value: Value) -> list[Var]:
    if isinstance(value, TensorSequence):
        return [v for field in value.fields for v in _variables(field)]
    return [value] if isinstance(value, Var) else []


def loaded(model: Any) -> tuple[Any, str]:
    """The model, and the folder where its external data lies if it is a file."""
    try:
        import onnx
    except ImportError:
        raise TVMError("from_onnx requires the onnx package", hint=install_hint("onnx")) from None
    if isinstance(model, onnx.ModelProto):
        return model, ""
    if not isinstance(model, (str, bytes)) and not hasattr(model, "__fspath__"):
        raise TypeError(f"from_onnx requires a ModelProto or a path, got {type(model).__name__}")
    try:
        # the importer reads external data tensor by tensor: never two copies of all of it
        found = onnx.load(model, load_external_data=False)
    except Exception as error:
        if isinstance(error, OSError):
            raise
        raise TVMError(
            f"from_onnx requires an ONNX file, {shortened(model)} is none: {error}"
        ) from error
    return found, os.path.dirname(os.path.abspath(os.fsdecode(model)))


_OPTIONS = {"use_nt_batch_matmul": False}


def _checked_config(given: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        if name not in _OPTIONS:
            raise TVMError(
                f"from_onnx has the options {', '.join(_OPTIONS)} in convert_config, got {name!r}",
                hint=suggest(name, _OPTIONS),
            )
        if not isinstance(value, bool):
            raise TypeError(f"option {name} of from_onnx requires a bool, got {value!r}")
    return {**_OPTIONS, **given}


def export_renamed(model: Any, path: str) -> Any:
    """Write the model with a name for each node; the model, which has the names now."""
    import onnx

    found, folder = loaded(model)
    renamed = onnx.ModelProto()
    renamed.CopyFrom(found)
    if folder:
        onnx.load_external_data_for_model(renamed, folder)
    counts: dict[str, int] = {}
    for node in all_nodes(renamed.graph):
        if not node.name:
            number = counts.get(node.op_type, 0)
            counts[node.op_type] = number + 1
            node.name = f"{node.op_type}_{number}"
    file = Path(path)
    if file.suffix != ".onnx":
        stamp = datetime.now().strftime("%d_%m_%Y_%H_%M_%S")
        file = file / f"tvm_exported_model_{stamp}.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as new:
        onnx.save(renamed, new)
    return renamed
