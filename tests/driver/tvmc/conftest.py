"""A small ONNX model, and the command line called in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tvm.driver.tvmc.main import _main


def small_model(batch: int | str = 1) -> onnx.ModelProto:
    """conv -> relu -> flatten -> dense, (batch, 3, 6, 6) to (batch, 5)."""
    random = np.random.default_rng(3)
    weights = {
        "w": random.normal(size=(4, 3, 3, 3)).astype("float32"),
        "b": random.normal(size=(4,)).astype("float32"),
        "d": random.normal(size=(64, 5)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["data", "w", "b"], ["conv"], name="conv0"),
        helper.make_node("Relu", ["conv"], ["relu"], name="relu0"),
        helper.make_node("Flatten", ["relu"], ["flat"], name="flatten0"),
        helper.make_node("MatMul", ["flat", "d"], ["scores"], name="dense0"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [batch, 3, 6, 6])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 5])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def two_inputs() -> onnx.ModelProto:
    """a + b, of the one length n."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "abc"]
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])], "two", values[:2], values[2:]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def onnx_file(tmp_path: Path) -> str:
    """The small model's file."""
    path = str(tmp_path / "small.onnx")
    onnx.save(small_model(), path)
    return path


@pytest.fixture
def image(tmp_path: Path) -> tuple[str, np.ndarray]:
    """A file with the model's input, and the input."""
    data = np.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype("float32")
    path = str(tmp_path / "in.npz")
    np.savez(path, data=data)
    return path, data


@pytest.fixture
def expected(image: tuple[str, np.ndarray]) -> np.ndarray:
    """What ONNX's reference says."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(small_model()).run(None, {"data": image[1]})[0]


@pytest.fixture
def tvmc_fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Call the command line, which has to fail; its complaint."""

    def call(*argv: str) -> str:
        try:
            status = _main(list(argv))
        except SystemExit as end:
            status = end.code
        text = capsys.readouterr().err
        assert status not in (0, None), text
        assert "Traceback" not in text and ".py" not in text.replace("mk.py", "")
        return text

    return call
