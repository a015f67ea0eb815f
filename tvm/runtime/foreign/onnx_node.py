"""ONNX nodes that ONNX's reference or ONNX Runtime computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError, install_hint
from tvm.runtime.foreign.node import Array, ForeignNode

# who computes a node is the first byte of its text, and a model of this node alone the rest
REFERENCE, RUNTIME = b"r", b"o"
NAMES = {REFERENCE: "ONNX's reference", RUNTIME: "ONNX Runtime"}


def read_onnx_node(text: bytes) -> ForeignNode:
    """The node that a text describes."""
    engine, model = text[:1], text[1:]
    if engine == REFERENCE:
        return _by_reference(model)
    if engine == RUNTIME:
        return _by_runtime(model)
    raise TVMError("the text of an ONNX node starts with a byte for what computes it")


def _by_reference(text: bytes) -> ForeignNode:
    try:
        import onnx
        from onnx.reference import ReferenceEvaluator
    except ImportError:
        raise _missing("ONNX's reference", "onnx", install_hint("onnx")) from None
    model = onnx.load_from_string(text)
    evaluator = ReferenceEvaluator(model)
    names = [value.name for value in model.graph.input]

    def run(arrays: Sequence[Array]) -> list[Array]:
        made = evaluator.run(None, dict(zip(names, arrays, strict=True)))
        return [_tensor(result) for result in made]

    return ForeignNode(model.graph.node[0].op_type, len(names), run)


def _by_runtime(text: bytes) -> ForeignNode:
    try:
        import onnxruntime
    except ImportError:
        raise _missing("ONNX Runtime", "onnxruntime", "pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(text, options, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def run(arrays: Sequence[Array]) -> list[Array]:
        made = session.run(None, dict(zip(names, arrays, strict=True)))
        return [_tensor(result) for result in made]

    return ForeignNode(session.get_modelmeta().graph_name, len(names), run)


def _tensor(value: Any) -> Array:
    # scalars of numpy are 0-d tensors
    found = np.asarray(value) if isinstance(value, np.generic) else value
    if not isinstance(found, np.ndarray):
        raise TVMError(f"a node of another framework gives tensors, got {type(found).__name__}")
    return found


def _missing(who: str, package: str, install: str) -> TVMError:
    return TVMError(
        f"the compiled model leaves a node to {who}, which requires the package {package}",
        hint=install,
    )
