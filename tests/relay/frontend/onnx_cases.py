"""The tests that the onnx package brings: of single nodes, of small models, of light real ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests
from onnx.backend.test.runner import Runner

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")

DataSet = tuple[list[Any], list[Any]]  # inputs and what is expected for them


@dataclass(frozen=True)
class Case:
    """A model, what it is run on, and how far its results may be off."""

    kind: str
    name: str
    load: Callable[[], onnx.ModelProto]
    data_sets: Callable[[onnx.ModelProto], Iterator[DataSet]]
    rtol: float
    atol: float


def load_cases(*kinds: str) -> dict[str, Case]:
    """The tests of these kinds by name."""
    return {name: case for kind in kinds for name, case in _load_kind(kind).items()}


def _load_kind(kind: str) -> dict[str, Case]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="real" if kind == "light" else kind)
    make = {"node": _node_case, "light": _light_case}.get(kind, _stored_case)
    return {test.name: make(test) for test in sorted(tests, key=lambda test: test.name)}


def _node_case(test: Any) -> Case:
    def data_sets(_: onnx.ModelProto) -> Iterator[DataSet]:
        for inputs, expected in test.data_sets:
            yield [_plain(v) for v in inputs], [_plain(v) for v in expected]

    return Case("node", test.name, lambda: test.model, data_sets, test.rtol, test.atol)


def _plain(value: Any) -> Any:
    """Tests give arrays, lists of them, or TensorProtos."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _stored_case(test: Any) -> Case:
    folder = Path(test.model_dir)

    def data_sets(model: onnx.ModelProto) -> Iterator[DataSet]:
        for stored in sorted(folder.glob("test_data_set*")):
            yield (
                _values(stored, "input", model.graph.input),
                _values(stored, "output", model.graph.output),
            )

    return Case(
        folder.parent.name, test.name, lambda: onnx.load(folder / "model.onnx"), data_sets,
        test.rtol, test.atol,
    )  # fmt: skip


def _values(folder: Path, name: str, declared: Any) -> list[Any]:
    count = len(list(folder.glob(f"{name}_*.pb")))
    return [
        _value((folder / f"{name}_{i}.pb").read_bytes(), declared[i].type) for i in range(count)
    ]


def _value(text: bytes, kind: onnx.TypeProto) -> Any:
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(text))
    return numpy_helper.to_array(onnx.TensorProto.FromString(text))


def _light_case(test: Any) -> Case:
    """An architecture of which the onnx package has no weights, only one result."""
    path = Path(DATA_DIR) / "light" / Path(test.url).name

    def data_sets(model: onnx.ModelProto) -> Iterator[DataSet]:
        given = {tensor.name for tensor in model.graph.initializer}
        inputs = [
            Runner.generate_dummy_data(value, name=test.name)
            for value in model.graph.input
            if value.name not in given
        ]
        stored = path.with_name(f"{path.stem}_output_0.pb").read_bytes()
        yield inputs, [_value(stored, model.graph.output[0].type)]

    return Case("light", test.name, lambda: onnx.load(path), data_sets, test.rtol, test.atol)
