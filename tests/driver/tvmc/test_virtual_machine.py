"""Models that only the virtual machine can run are compiled for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.driver.tvmc.conftest import small_model, two_inputs
from tvm.driver import tvmc
from tvm.driver.tvmc.main import _main


def detector() -> onnx.ModelProto:
    """The boxes that non-maximum suppression keeps, as many as there are."""
    constants = {"most": np.array([5]), "overlap": np.float32([0.5]), "score": np.float32([0.1])}
    constants |= {"last": np.array([2]), "first": np.array([0]), "middle": np.array([1])}
    nodes = [
        ("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "score"], ["kept"], {}),
        ("Gather", ["kept", "last"], ["column"], {"axis": 1}),
        ("Squeeze", ["column", "middle"], ["places"], {}),
        ("Squeeze", ["boxes", "first"], ["rows"], {}),
        ("Gather", ["rows", "places"], ["found"], {}),
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, ins, outs, **attrs) for kind, ins, outs, attrs in nodes],
        "detector",
        [
            helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 9, 4]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 1, 9]),
        ],
        [helper.make_tensor_value_info("found", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def branches() -> onnx.ModelProto:
    """if c: x + x, else: -x"""
    value = helper.make_tensor_value_info
    then, otherwise = (
        helper.make_graph([helper.make_node(kind, ins, [out])], out, [], [
            value(out, TensorProto.FLOAT, [2])
        ])
        for kind, ins, out in (("Add", ["x", "x"], "twice"), ("Neg", ["x"], "less"))
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)],
        "branches",
        [value("c", TensorProto.BOOL, []), value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (small_model("n"), "the input 'data' is float32[?, 3, 6, 6]"),
        (small_model(-1), "the input 'data' is float32[?, 3, 6, 6]"),
        (detector(), "require constant shapes"),
        (branches(), "cannot run If"),
    ],
    ids=["symbol", "minus one", "detector", "branches"],
)
def test_models_go_to_the_virtual_machine_by_themselves(
    model: onnx.ModelProto, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, package, out = (str(tmp_path / name) for name in ("m.onnx", "m.tar", "out.npz"))
    onnx.save(model, path)
    assert _main(["compile", path, "--target", "llvm", "-o", package]) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("compiled for the virtual machine: ") and reason in told[0]
    assert _main(["run", package, "-o", out, "--print-time"]) == 0
    report = capsys.readouterr().err
    assert "(virtual machine)" in report
    assert f"output  {model.graph.output[0].name} " in report
    assert np.load(out)["output_0"].ndim > 0


def test_detectors_agree_with_onnx(tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    random = np.random.default_rng(0)
    corners = random.uniform(0, 1, (1, 9, 2)).astype("float32")
    sides = random.uniform(0.1, 0.5, (1, 9, 2)).astype("float32")
    inputs = {
        "boxes": np.concatenate([corners, corners + sides], -1),
        "scores": random.uniform(0, 1, (1, 1, 9)).astype("float32"),
    }
    onnx.save(detector(), tmp_path / "m.onnx")
    for name in ("m.tar", "m.so"):
        path = str(tmp_path / name)
        package = tvmc.compile(tvmc.load(tmp_path / "m.onnx"), "llvm", package_path=path)
        found = tvmc.run(package, "cpu", inputs=inputs).get_output("output_0")
        expected = ReferenceEvaluator(detector()).run(None, inputs)[0]
        np.testing.assert_array_equal(found, expected)


def test_python_is_told_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(two_inputs(), tmp_path / "m.onnx")
    package = tvmc.compile(tvmc.load(tmp_path / "m.onnx"), target="llvm")
    assert package.type == "vm"
    assert "the input 'a' is float32[?]" in capsys.readouterr().err
    result = tvmc.run(package, "cpu", input_shapes={"a": [3], "b": [3]}, fill_mode="ones")
    assert result.get_output("output_0").tolist() == [2, 2, 2]
    assert result.conditions is not None and result.conditions.inputs["a"] == "float32[3]"


def test_one_shape_determines_the_symbols_of_other_inputs(tmp_path: Path) -> None:
    path, package = str(tmp_path / "m.onnx"), str(tmp_path / "m.tar")
    onnx.save(two_inputs(), path)
    assert _main(["compile", path, "-o", package, "--input-shapes", "a:[3]"]) == 0
    assert tvmc.TVMCPackage(package).executor_type == "graph"
    result = tvmc.run(tvmc.TVMCPackage(package), "cpu", fill_mode="ones")
    assert result.get_output("output_0").tolist() == [2, 2, 2]


def test_quiet_compilations_say_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(two_inputs(), tmp_path / "m.onnx")
    assert _main(["compile", str(tmp_path / "m.onnx"), "-q", "-o", str(tmp_path / "m.tar")]) == 0
    assert capsys.readouterr().err == ""
