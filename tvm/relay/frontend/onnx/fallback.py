"""Nodes that ONNX's reference, or ONNX Runtime, computes while the compiled model runs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm._ffi.registry import register_func
from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import infer_shape, infer_type, infer_value
from tvm.relay.op.foreign import packed_call

from .functions import Attributes, without_references
from .registry import OnnxNode

Run = Callable[[Mapping[str, Any]], Sequence[Any]]

_NUMBERS = itertools.count()


def reference_call(
    node: Any, view: OnnxNode, opsets: Mapping[str, int], attributes: Attributes
) -> list[RelayExpr]:
    """The results of a node as a reference computes them.

    The function is registered in this process: a library that is exported does not contain it.
    """
    plain = without_references(node, attributes, view)
    given = {n: v for n, v in zip(plain.input, view.inputs, strict=False) if n}
    constants = {n: a for n, v in given.items() if (a := _constant(view, v)) is not None}
    tensors = {name: value for name, value in given.items() if name not in constants}
    examples = {name: _example(view, value) for name, value in tensors.items()}
    model = model_of(plain, examples, constants, opsets)
    name, run, made = _first_that_works(model, view, examples)
    warnings.warn(f"{view.op_type} runs in {name}, in this process only", stacklevel=2)
    order = list(tensors)
    types = [(result.shape, str(result.dtype)) for result in made]

    def compute(*arrays: Any) -> None:
        found = run({name: a.numpy() for name, a in zip(order, arrays, strict=False)})
        for array, result, (shape, _) in zip(arrays[len(order) :], found, types, strict=True):
            if result.shape != shape:
                raise TVMError(
                    f"{view.op_type} {view.name} requires a result of the shape that it had at "
                    f"import, {shape}, got {result.shape}",
                    hint="its shape depends on data, which an external function cannot say",
                )
            array.copyfrom(np.ascontiguousarray(result))

    function = f"tvm.contrib.onnx.{view.op_type}.{next(_NUMBERS)}"
    register_func(function, compute)
    call = packed_call(
        function, list(tensors.values()), [s for s, _ in types], [d for _, d in types]
    )
    return [call[i] for i in range(len(types))]


def has_reference(op_type: str, domain: str, opset: int) -> bool:
    """Whether something here computes the operator."""
    from onnx.reference.ops import load_op

    try:
        load_op("" if domain == "ai.onnx" else domain, op_type, opset)
    except Exception:  # of classes that the package does not export
        return (domain, op_type) in _runtime_operators()
    return True


def _runtime_operators() -> set[tuple[str, str]]:
    """The operators that ONNX Runtime has, by domain and name."""
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema
    except ImportError:
        return set()
    return {(schema.domain, schema.name) for schema in get_all_operator_schema()}


def _constant(view: OnnxNode, value: Any) -> Any:
    return infer_value(value, view.values) if isinstance(value, RelayExpr) else None


def _example(view: OnnxNode, value: Any) -> np.ndarray[Any, Any]:
    """An array as the node will get it."""
    if not isinstance(value, RelayExpr):
        raise OpNotImplemented(
            f"{view.op_type} {view.name} requires tensors to be computed by a reference, "
            f"got a value of type {type(value).__name__.lower()}"
        )
    shape = infer_shape(value)
    if not all(isinstance(dim, int) for dim in shape):
        raise OpNotImplemented(
            f"{view.op_type} {view.name} requires known shapes to be computed by a reference, "
            f"got {shape}",
            hint="give the shapes of the inputs with from_onnx(model, shape={...})",
        )
    return np.ones(shape, infer_type(value).dtype.numpy)


def model_of(
    node: Any,
    examples: Mapping[str, Any],
    constants: Mapping[str, Any],
    opsets: Mapping[str, int],
) -> Any:
    """A model of one node, of inputs like the examples and of constants."""
    from onnx import ValueInfoProto, helper, numpy_helper

    def typed(name: str, array: Any) -> Any:
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )

    graph = helper.make_graph(
        [node],
        "node",
        [typed(name, array) for name, array in examples.items()],
        [ValueInfoProto(name=name) for name in node.output if name],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )
    domains = {"": 1, **opsets, node.domain: opsets.get(node.domain, 1)}
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _first_that_works(
    model: Any, view: OnnxNode, examples: Mapping[str, Any]
) -> tuple[str, Run, Sequence[Any]]:
    """A reference's name, how it runs the model, and what it gives for the examples."""
    reasons = []
    for name, prepare in (("ONNX's reference", evaluator), ("ONNX Runtime", _session)):
        try:
            run = prepare(model)
            made = run(examples)
        except Exception as error:  # whatever numpy or the runtime says
            reasons.append(
                f"{name}: {str(error).strip().splitlines()[0] if str(error) else error!r}"
            )
            continue
        if all(isinstance(result, np.ndarray) for result in made):
            return name, run, made
        reasons.append(f"{name} gives no tensors")
    raise OpNotImplemented(
        f"{view.op_type} {view.name} cannot be computed by a reference: {'; '.join(reasons)}"
    )


def evaluator(model: Any) -> Run:
    """How ONNX's reference runs a model."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    # scalars of numpy are 0-d tensors
    return lambda feeds: [
        np.asarray(r) if isinstance(r, np.generic) else r for r in evaluator.run(None, dict(feeds))
    ]


def _session(model: Any) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"]
    )
    return lambda feeds: session.run(None, dict(feeds))
