"""The other side: what ONNX Runtime, ONNX's reference or our own unoptimised code computes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from tvm.error import TVMError, suggest

from .engine import Engine
from .graph import ModelGraph

Values = dict[str, Any]
_LARGEST_PROTO = 2**31 - 2**20


def reference_values(
    against: str, graph: ModelGraph, names: Sequence[str], inputs: Mapping[str, Any], plain: Engine
) -> Values:
    """The values of tensors by name; tensors that the reference does not tell are left out.

    Parameters
    ----------
    against : "onnxruntime", "reference" or "opt0".
    names : the tensors.
    plain : our own compiler without optimisation.
    """
    if against not in REFERENCES:
        raise TVMError(
            f"verify compares with {', '.join(REFERENCES)}, got {against!r}",
            hint=suggest(against, REFERENCES),
        )
    found = REFERENCES[against](graph, names, inputs, plain)
    return {name: value for name, value in found.items() if value is not None}


def _onnxruntime(
    graph: ModelGraph, names: Sequence[str], inputs: Mapping[str, Any], _: Engine
) -> Values:
    try:
        import onnxruntime
    except ImportError:
        raise TVMError(
            "verify against onnxruntime requires that package",
            hint='pip install onnxruntime, or against="reference"',
        ) from None
    options = onnxruntime.SessionOptions()
    # the model as it is written: no node is fused or left out
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = _session(onnxruntime, graph.exposing(names), options)
        return dict(zip(names, session.run(list(names), dict(inputs)), strict=True))
    except TVMError:
        raise
    except Exception as error:  # the package has an exception class for each status
        raise TVMError(
            f"ONNX Runtime cannot run the model: {error}", hint='compare against="reference"'
        ) from None


def _session(onnxruntime: Any, model: onnx.ModelProto, options: Any) -> Any:
    providers = ["CPUExecutionProvider"]
    if model.ByteSize() < _LARGEST_PROTO:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        onnx.save(model, path, save_as_external_data=True)
        return onnxruntime.InferenceSession(path, options, providers)


def _evaluator(
    graph: ModelGraph, names: Sequence[str], inputs: Mapping[str, Any], _: Engine
) -> Values:
    from onnx.reference import ReferenceEvaluator

    try:
        return dict(
            zip(
                names,
                ReferenceEvaluator(graph.exposing(names)).run(None, dict(inputs)),
                strict=True,
            )
        )
    except Exception as error:  # whatever numpy says inside of it
        raise TVMError(
            f"ONNX's reference cannot run the model: {error}", hint='compare against="onnxruntime"'
        ) from None


def _unoptimised(
    graph: ModelGraph, names: Sequence[str], inputs: Mapping[str, Any], plain: Engine
) -> Values:
    return plain.run(graph.exposing(names), inputs)


REFERENCES: dict[str, Callable[[ModelGraph, Sequence[str], Mapping[str, Any], Engine], Values]] = {
    "onnxruntime": _onnxruntime,
    "reference": _evaluator,
    "opt0": _unoptimised,
}
