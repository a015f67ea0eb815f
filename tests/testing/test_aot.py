"""Models that are compiled ahead of time, in programs that check them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.micro.testing.aot_test_utils import (
    AOT_APROFILE_AEM_RUNNER,
    AOT_CORSTONE300_RUNNER,
    AOT_DEFAULT_RUNNER,
    AOT_USMP_CORSTONE300_RUNNER,
    parametrize_aot_options,
)
from tvm.micro.testing.utils import get_conv2d_relay_module
from tvm.testing.aot import (
    AOTDataLinkage,
    AOTTestModel,
    AOTTestRunner,
    compile_and_run,
    compile_models,
    generate_ref_data,
    get_dtype_range,
    run_and_check,
)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
RNG = np.random.default_rng(2)


def two_results(name: str = "default") -> AOTTestModel:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4,), dtype="int64")
    body = relay.Tuple([relay.exp(x), y * relay.const(-3, "int64")])
    inputs = {
        "x": RNG.normal(size=(2, 3)).astype("float32"),
        "y": RNG.integers(-(2**40), 2**40, 4),
    }
    mod = tvm.IRModule.from_expr(relay.Function([x, y], body))
    return AOTTestModel(mod, inputs, generate_ref_data(mod, inputs), name=name)


@parametrize_aot_options
def test_results_agree_under_each_interface(interface_api, use_unpacked_api, test_runner) -> None:
    assert compile_and_run(two_results(), test_runner, interface_api, use_unpacked_api)


def test_parameters_become_constants() -> None:
    mod = get_conv2d_relay_module()
    data = RNG.integers(-128, 127, (1, 3, 64, 64), "int8")
    params = {"weight": RNG.integers(-128, 127, (8, 3, 5, 5), "int8")}
    outputs = generate_ref_data(mod, {"data": data}, params)
    assert list(outputs) == ["output"] and outputs["output"].shape == (1, 8, 64, 64)
    model = AOTTestModel(mod, {"data": data}, outputs, params=params)
    assert compile_and_run(model, AOT_DEFAULT_RUNNER, "c", True)


def test_a_wrong_result_is_found() -> None:
    model = two_results()
    outputs = dict(model.outputs)
    outputs["output1"] = outputs["output1"] + 1
    with pytest.raises(AssertionError, match="Mismatched"):
        compile_and_run(model._replace(outputs=outputs), AOT_DEFAULT_RUNNER, "c", True)


def test_models_share_a_program(tmp_path: Path) -> None:
    models = [two_results("first"), two_results("second")]
    compiled = compile_models(models, "c", True)
    runner = AOTTestRunner(prologue='  printf("begin\\n");', epilogue='  printf("end\\n");')
    linkage = AOTDataLinkage("io", 64)
    seen = []
    assert run_and_check(
        compiled, runner, "c", data_linkage=linkage, test_dir=tmp_path, expected_output="end",
        checker=lambda folder: bool(seen.append(folder)) or True,
    )  # fmt: skip
    assert seen == [str(tmp_path)] and 'section("io")' in (tmp_path / "main.c").read_text()


def test_models_of_the_packed_interface_share_a_program() -> None:
    models = [two_results("first"), two_results("second")]
    assert compile_and_run(models, AOT_DEFAULT_RUNNER, "packed", False)


@parametrize_aot_options
def test_models_without_inputs(interface_api, use_unpacked_api, test_runner) -> None:
    mod = tvm.IRModule.from_expr(relay.Function([], relay.const(1) + relay.const(2)))
    model = AOTTestModel(mod, {}, generate_ref_data(mod, {}))
    assert model.outputs["output"] == 3
    assert compile_and_run(model, test_runner, interface_api, use_unpacked_api)


def test_functions_of_compilers_to_c_are_linked() -> None:
    x, y = [relay.var(name, shape=(2, 3)) for name in "xy"]
    begin, end = relay.op.annotation.compiler_begin, relay.op.annotation.compiler_end
    total = end(relay.add(begin(x, "ccompiler"), begin(y, "ccompiler")), "ccompiler")
    mod = tvm.IRModule.from_expr(relay.Function([x, y], total * x))
    mod = relay.transform.PartitionGraph()(relay.transform.InferType()(mod))
    inputs = {name: RNG.normal(size=(2, 3)).astype("float32") for name in "xy"}
    outputs = generate_ref_data(mod, inputs)
    np.testing.assert_allclose(
        outputs["output"], (inputs["x"] + inputs["y"]) * inputs["x"], rtol=1e-6
    )
    model = AOTTestModel(mod, inputs, outputs)
    assert compile_and_run(model, AOT_DEFAULT_RUNNER, "packed", False)


def test_operators_are_kernels_of_their_own_without_fusion() -> None:
    x = relay.var("x", shape=(8,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.tanh(relay.exp(x))))
    model = AOTTestModel(mod, {}, {})
    counts = [
        len(compile_models(model, "c", True, enable_op_fusion=fuse)[0].executor_factory.function_metadata)
        for fuse in (True, False)
    ]  # fmt: skip
    assert counts == [2, 3]


def test_what_needs_a_board_is_rejected() -> None:
    compiled = compile_models(two_results(), "c", True)
    with pytest.raises(tvm.TVMError, match="requires AOT_DEFAULT_RUNNER, got one for corstone300"):
        run_and_check(compiled, AOTTestRunner("corstone300"), "c")
    with pytest.raises(tvm.TVMError, match="takes no debug_calculated_workspaces"):
        run_and_check(compiled, AOT_DEFAULT_RUNNER, "c", debug_calculated_workspaces=True)


def test_ranges_of_dtypes() -> None:
    assert get_dtype_range("int8") == (-128, 127) and get_dtype_range("uint8") == (0, 255)
    assert get_dtype_range("float32") == (0, 1)


def test_runners_of_boards_are_rejected_when_they_are_run() -> None:
    for runner in (AOT_CORSTONE300_RUNNER, AOT_USMP_CORSTONE300_RUNNER, AOT_APROFILE_AEM_RUNNER):
        with pytest.raises(tvm.TVMError, match=f"got one for {runner.makefile}"):
            run_and_check([], runner, "c")
