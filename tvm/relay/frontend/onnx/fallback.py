"""Nodes that ONNX's reference, or ONNX Runtime, computes while the compiled model runs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import const
from tvm.relay.frontend.common import infer_shape, infer_value, is_static, static_or
from tvm.relay.op.packed_call import OPEN, packed_call
from tvm.runtime.foreign import ONNX, described
from tvm.runtime.foreign.onnx_node import NAMES

from .functions import Attributes, without_references
from .registry import OnnxNode

# example values of dynamic extents: a result's extent that is the same in both does not depend on them
_TRIALS = (3, 5)


def reference_call(
    node: Any, view: OnnxNode, opsets: Mapping[str, int], attributes: Attributes, warned: set[str]
) -> list[RelayExpr]:
    """The results of a node as a reference computes them.

    The node is an argument of the call: whoever runs the compiled model needs the reference alone.
    `warned` has the operators that a warning was given for.
    """
    plain = without_references(node, attributes, view)
    given = {n: v for n, v in zip(plain.input, view.inputs, strict=False) if n}
    exprs = {n: v for n, v in given.items() if isinstance(v, RelayExpr)}
    constants = {n: a for n, v in exprs.items() if (a := infer_value(v, view.values)) is not None}
    tensors = {name: value for name, value in given.items() if name not in constants}
    has_fixed_shapes = all(is_static(infer_shape(exprs[n])) for n in tensors if n in exprs)
    examples = [
        {name: _example(view, value, extent) for name, value in tensors.items()}
        for extent in (_TRIALS[:1] if has_fixed_shapes else _TRIALS)
    ]
    inputs = {name: (each.dtype, infer_shape(tensors[name])) for name, each in examples[0].items()}
    model = model_of(plain, inputs, constants, opsets)
    text, made = _first_that_works(model, view, [list(each.values()) for each in examples])
    if view.op_type not in warned:
        warned.add(view.op_type)
        who = NAMES[text[:1]]
        warnings.warn(
            f"{view.op_type} runs in {who}, which the compiled model needs too", stacklevel=2
        )
    shapes = [
        [OPEN if len(set(extents)) > 1 else extents[0] for extents in zip(*each, strict=True)]
        for each in zip(*[[r.shape for r in results] for results in made], strict=True)
    ]
    dtypes = [str(result.dtype) for result in made[0]]
    arguments = [*[const(part) for part in described(text)], *tensors.values()]
    call = packed_call(ONNX.function, arguments, shapes, dtypes)
    return [call[i] for i in range(len(dtypes))]


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


def _example(view: OnnxNode, value: Any, extent: int) -> np.ndarray[Any, Any]:
    """An array as the node will get it, with an extent for dynamic ones."""
    if not isinstance(value, RelayExpr):
        raise OpNotImplemented(
            f"{view.op_type} {view.name} requires tensors to be computed by a reference, "
            f"got a value of type {type(value).__name__.lower()}"
        )
    shape = static_or(infer_shape(value), extent)
    return np.ones(shape, tensor_type_of(value).dtype.numpy)


def model_of(
    node: Any,
    inputs: Mapping[str, tuple[Any, Sequence[Any]]],
    constants: Mapping[str, Any],
    opsets: Mapping[str, int],
) -> Any:
    """A model of one node, of inputs of such element types and shapes and of constants."""
    from onnx import ValueInfoProto, helper, numpy_helper

    def typed(name: str, dtype: Any, shape: Sequence[Any]) -> Any:
        dims = static_or(shape, None)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), dims)

    graph = helper.make_graph(
        [node],
        node.op_type,
        [typed(name, *of_input) for name, of_input in inputs.items()],
        [ValueInfoProto(name=name) for name in node.output if name],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )
    domains = {"": 1, **opsets, node.domain: opsets.get(node.domain, 1)}
    imports = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _first_that_works(
    model: Any, view: OnnxNode, examples: Sequence[Sequence[Any]]
) -> tuple[bytes, list[Sequence[Any]]]:
    """The text of the node for the first reference that can compute it, and what the trials give."""
    reasons = []
    for engine, name in NAMES.items():
        text = engine + model.SerializeToString()
        try:
            run = ONNX.read(text).run
            return text, [run(each) for each in examples]
        except Exception as error:  # whatever numpy or the runtime says
            reasons.append(
                f"{name}: {str(error).strip().splitlines()[0] if str(error) else error!r}"
            )
    raise OpNotImplemented(
        f"{view.op_type} {view.name} cannot be computed by a reference: {'; '.join(reasons)}"
    )
