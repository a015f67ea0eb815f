from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tvm
from tests.driver.tvmc.conftest import small_model
from tests.verify.models import facet, model_of, rewriting, tower
from tvm import relay, te, topi
from tvm.driver.tvmc.main import _main
from tvm.error import TVMError
from tvm.ir.op import Op
from tvm.relay.frontend.onnx.registry import CONVERTERS
from tvm.verify import Tolerance, verify
from tvm.verify.compare import compare
from tvm.verify.graph import ModelGraph


@pytest.mark.parametrize("against", ["onnxruntime", "reference", "opt0"])
def test_right_models_pass(against: str) -> None:
    report = verify(small_model(), against=against)
    assert report.passed and [row.name for row in report.rows] == ["conv", "relu", "flat", "scores"]
    assert "all agree" in str(report) and report.largest_error < 1e-5


def break_layer(number: int, only_single_outputs: bool = False) -> relay.transform.FunctionPass:
    """A pass that takes the sine, not the hyperbolic tangent, in one layer of a tower."""
    bias = _bias_of(tower(), number)

    def wrong(call: relay.Call) -> relay.Expr | None:
        if call.op != Op.get("tanh") or not isinstance(call.args[0], relay.Call):
            return None
        constants = [a for a in call.args[0].args if isinstance(a, relay.Constant)]
        is_it = any(np.array_equal(c.data.numpy().reshape(-1), bias) for c in constants)
        return relay.sin(call.args[0]) if is_it else None

    def applies(func: relay.Function) -> bool:
        return not (only_single_outputs and isinstance(func.body, relay.Tuple))

    return rewriting("Saboteur", wrong, applies)


def _bias_of(model: onnx.ModelProto, number: int) -> np.ndarray:
    return next(numpy_helper.to_array(t) for t in model.graph.initializer if t.name == f"b{number}")


def test_first_tensor_that_differs_is_named_with_its_pass() -> None:
    report = verify(tower(), passes=[break_layer(2)])
    assert report.first is not None and report.first.name == "tanh2"
    assert report.first.node == "layer2/tanh" and "tanh5" in report.outputs
    assert report.reproducer is not None and report.verdict is not None
    assert [n.name for n in report.reproducer.model.graph.node] == ["layer2/add", "layer2/tanh"]
    assert report.verdict.name == "Saboteur"
    assert "tanh(" in report.verdict.before and "sin(" in report.verdict.after
    assert "to blame: graph pass Saboteur, number 1 of" in str(report)


def test_what_goes_wrong_only_in_the_fused_model_is_found() -> None:
    report = verify(tower(), passes=[break_layer(3, only_single_outputs=True)])
    assert report.first is not None and report.first.name == "tanh3"
    assert report.verdict is not None and report.verdict.name == "Saboteur"
    assert all(row.difference is None for row in report.rows)


def test_what_does_not_happen_again_is_told() -> None:
    runs: list[bool] = []

    def once(call: relay.Call) -> relay.Expr | None:
        if call.op != Op.get("tanh") or len(runs) > 5:
            return None
        runs.append(True)
        return relay.sin(call.args[0])

    report = verify(tower(6), passes=[rewriting("Moody", once)])
    assert not report.passed and report.reproducer is None
    assert "compiled once more, the output agrees" in str(report)


def test_our_own_passes_are_blamed() -> None:
    def alter(attrs, inputs, arg_types, out_type):
        return relay.nn.relu(relay.Call(relay.op.get("nn.conv2d"), inputs, attrs))

    with facet("nn.conv2d", alter_layout=alter):
        report = verify(small_model())
    assert report.first is not None and report.first.name == "conv"
    assert report.verdict is not None
    assert (report.verdict.kind, report.verdict.name) == ("pass", "AlterOpLayout")


def test_kernels_that_are_wrong_on_the_target_are_blamed() -> None:
    def compute(attrs, inputs, out_type):
        right = topi.tanh(inputs[0])
        # as code for one kind of processor may be
        on_cpu = "cpu" in tvm.target.Target.current().keys
        return [right * te.const(1.01, "float32") if on_cpu else right]

    with facet("tanh", compute=compute):
        report = verify(tower(2), against="reference")
    assert report.first is not None and report.first.name == "tanh0"
    assert report.verdict is not None and report.verdict.kind == "kernel"
    assert report.verdict.name.endswith("tanh") and "tanh" in report.verdict.before


def test_what_operators_compute_is_blamed() -> None:
    def compute(attrs, inputs, out_type):
        return [topi.tanh(inputs[0]) * te.const(1.01, "float32")]

    with facet("tanh", compute=compute):
        report = verify(tower(2), against="reference")
    assert report.verdict is not None and report.verdict.kind == "kernel"
    assert "the compute of" in report.verdict.text and "tanh" in report.verdict.text


def test_shapes_that_data_decide_are_compiled_not_computed_at_import() -> None:
    def wrong(call: relay.Call) -> relay.Expr | None:
        return call.args[0] + call.args[0] if call.op == Op.get("multiply") else None

    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Cast", ["places"], ["numbers"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["numbers", "numbers"], ["y"]),
    ]
    model = model_of(nodes, {"x": np.ones((2, 3), "float32")}, ["y"])
    assert verify(model).passed
    report = verify(model, passes=[rewriting("Doubler", wrong)])
    assert report.first is not None and report.first.name == "y"
    assert report.verdict is not None and report.verdict.name == "Doubler"


def test_loops_run_as_the_virtual_machine_runs_them() -> None:
    def compute(attrs, inputs, out_type):
        return [topi.tanh(inputs[0]) * te.const(1.01, "float32")]

    value = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3]) for n in ("v", "w")]
    truth = [helper.make_tensor_value_info(n, onnx.TensorProto.BOOL, []) for n in ("c", "d")]
    count = helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [])
    inner = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Tanh", ["v"], ["w"])]
    body = helper.make_graph(inner, "body", [count, truth[0], value[0]], [truth[1], value[1]])
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["n"], to=onnx.TensorProto.INT64),
        helper.make_node("Loop", ["n", "", "x"], ["y"], body=body),
    ]
    x = np.full((2, 3), 0.5, "float32")
    model = model_of(nodes, {"x": x}, ["y"])
    assert verify(model, {"x": x}).passed
    with facet("tanh", compute=compute):
        report = verify(model, {"x": x})
    assert report.first is not None and report.first.name == "y"
    assert report.verdict is not None and report.verdict.kind == "kernel"


def test_passes_on_loops_are_blamed() -> None:
    def halve(mod):
        """Store half of what tanh's kernel computes."""
        return mod.with_functions({g: halved(f) for g, f in mod.functions.items()})

    def halved(func):
        if "tanh" not in str(func):
            return func

        def rewrite(stmt):
            if isinstance(stmt, tvm.tir.BufferStore) and "tanh" in str(stmt.value):
                return tvm.tir.BufferStore(
                    stmt.buffer, stmt.value * tvm.tir.const(0.5, "float32"), stmt.indices
                )
            return None

        body = tvm.tir.stmt_functor.ir_transform(func.body, None, rewrite, ["tir.BufferStore"])
        return func.with_body(body)

    report = verify(tower(2), context={"config": {"tir.add_lower_pass": [(1, halve)]}})
    assert report.verdict is not None and report.verdict.kind == "kernel"
    assert "your pass halve in kernel" in str(report)


def test_importers_are_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONVERTERS, "Tanh", lambda node: relay.sin(node[0]))
    report = verify(tower(2))
    assert report.first is not None and report.first.name == "tanh0"
    assert report.verdict is not None and report.verdict.kind == "import"
    assert "the importer or the definition of an operator: Tanh" in str(report)


def test_reproducers_show_the_difference_by_themselves(tmp_path: Path) -> None:
    broken = [break_layer(2)]
    report = verify(tower(), passes=broken, folder=tmp_path)
    model = onnx.load(report.files["reproducer"])
    onnx.checker.check_model(model)
    inputs = dict(np.load(tmp_path / "inputs.npz"))
    again = verify(model, inputs, passes=broken)
    assert not again.passed and again.first is not None and again.first.name == "tanh2"
    assert verify(model, inputs).passed
    assert "sin(" in (tmp_path / "after.txt").read_text()


def test_nodes_in_branches_and_shapes_of_data_are_compared() -> None:
    branch = [
        helper.make_graph(
            [helper.make_node(kind, ["x"], [f"{kind}_out"])], kind, [],
            [helper.make_tensor_value_info(f"{kind}_out", 1, [3])],
        )
        for kind in ("Exp", "Neg")
    ]  # fmt: skip
    nodes = [
        helper.make_node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("NonZero", ["y"], ["where"]),
        helper.make_node("SplitToSequence", ["y", "one"], ["parts"]),
        helper.make_node("SequenceAt", ["parts", "one"], ["z"]),
    ]
    inputs = {"x": np.array([0, 1, 2], "float32"), "c": np.array(False)}
    report = verify(model_of(nodes, inputs, ["where", "z"], {"one": np.array(1, "int64")}), inputs)
    assert [row.name for row in report.rows] == ["y", "where", "z"] and report.passed
    assert report.skipped == ["parts"]


def test_code_in_c_is_verified() -> None:
    assert verify(tower(1), target="c").passed


def test_random_tensors_are_left_out() -> None:
    nodes = [
        helper.make_node("RandomNormal", [], ["noise"], shape=[3]),
        helper.make_node("Add", ["x", "noise"], ["z"]),
        helper.make_node("Neg", ["x"], ["y"]),
    ]
    model = model_of(nodes, {"x": np.zeros(3, "float32")}, ["y", "z"])
    assert ModelGraph(model).random_tensors() == {"noise", "z"}


def test_quantised_models_may_differ_by_a_step() -> None:
    weights = {"s": np.array(0.02, "float32"), "z": np.array(3, "int8")}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    assert verify(model_of(nodes, {"x": np.zeros((50,), "float32")}, ["y"], weights)).passed
    off_by_one = np.array([3, 4], "int8")
    assert compare(off_by_one, off_by_one - 1, Tolerance(quantised=True)) is None  # type: ignore[arg-type]
    assert compare(off_by_one, off_by_one - 2, Tolerance(quantised=True)) is not None  # type: ignore[arg-type]


def test_tensors_are_compared_by_the_largest_element() -> None:
    expected = np.array([1000.0, 1.0, np.nan, np.inf], "float32")
    near = np.array([1000.05, 1.05, np.nan, np.inf], "float32")
    assert compare(near, expected, Tolerance()) is None
    difference = compare(near, expected, Tolerance(rtol=0, atol=1e-5))
    assert difference is not None and "50 % of 4 elements differ" in str(difference)
    for wrong in ([1000, 1, 0, np.inf], [1000, 1, np.nan, -np.inf]):
        assert compare(np.array(wrong, "float32"), expected, Tolerance()) is not None
    assert compare(np.zeros(3, "float32"), expected, Tolerance()).reason == "shape"  # type: ignore[union-attr]
    assert compare(expected.astype("float64"), expected, Tolerance()).reason == "dtype"  # type: ignore[union-attr]
    assert compare([expected], expected, Tolerance()).reason == "nothing"  # type: ignore[union-attr]


def test_errors_that_add_up_slowly_are_called_rounding() -> None:
    def compute(attrs, inputs, out_type):
        on_cpu = "cpu" in tvm.target.Target.current().keys
        return [topi.sin(inputs[0]) * te.const(1.0001 if on_cpu else 1.0, "float32")]

    names = ["x", *(f"y{i}" for i in range(40))]
    nodes = [helper.make_node("Sin", [a], [b]) for a, b in pairwise(names)]
    x = np.linspace(-0.01, 0.01, 9, dtype="float32")
    with facet("sin", compute=compute):
        report = verify(model_of(nodes, {"x": x}, ["y39"]), {"x": x}, against="reference")
    assert report.first is not None and report.verdict is not None
    assert report.verdict.kind == "rounding" and report.reproducer is None
    assert "rounding that adds up" in str(report)


def test_wrong_arguments_are_rejected() -> None:
    model = small_model("n")
    with pytest.raises(TVMError, match="verify compares with onnxruntime, reference, opt0"):
        verify(model, against="onnx")
    with pytest.raises(TVMError, match="did you mean 'data'"):
        verify(model, {"daata": np.zeros((1, 3, 6, 6), "float32")})
    with pytest.raises(TVMError, match=r"float32\['\?', 3, 6, 6\] for the input 'data'"):
        verify(model, {"data": np.zeros((1, 3, 6), "float32")})
    assert verify(model, shape={"data": (2, 3, 6, 6)}).rows[0].error < 1e-5


def test_command_line_says_what_to_verify_instead(capsys: pytest.CaptureFixture[str]) -> None:
    for name, part in (("m.tar", "the model that was compiled"), ("m.pt", "torch.onnx.export")):
        assert _main(["verify", name]) == 4
        text = capsys.readouterr().err
        assert part in text and "--model-format" not in text


def test_reproducers_are_verified_again_as_before(tmp_path: Path) -> None:
    report = verify(tower(2), against="reference", opt_level=2, rtol=0, atol=0, folder=tmp_path)
    command = shlex.split(report.files["once more"])
    assert command[:2] == ["tvmc", "verify"] and "--against=reference" in command
    assert _main(command[1:]) == 2


def test_inputs_of_narrow_floats_are_read_from_reproducers(tmp_path: Path) -> None:
    from onnx import TensorProto

    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [3])],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [3])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    bits = np.array([0x3F80, 0x4000, 0xC000], "uint16")  # 1, 2, -2
    report = verify(model, {"x": bits}, against="opt0")
    assert report.passed


def test_command_line_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "model.onnx")
    onnx.save(tower(2), path)
    assert _main(["verify", path, "--against", "reference", "--print-all", "-O", "2"]) == 0
    text = capsys.readouterr().out
    assert "6 tensors compared, 0 differ" in text and "layer" not in text and "tanh1" in text
    assert _main(["verify", path, "--rtol", "0", "--atol", "1e-12", "-o", str(tmp_path / "r")]) == 2
    assert "first divergence" in capsys.readouterr().out
    assert _main(["verify", str(tmp_path / "none.onnx")]) == 4
    assert _main(["verify", str(tmp_path / "none.pt")]) == 4
    assert "verify takes ONNX models" in capsys.readouterr().err
