"""Wrong arguments are told in one line, with what would be right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import tvm
from tests.driver.tvmc.conftest import small_model, two_inputs
from tvm import te
from tvm.driver import tvmc
from tvm.driver.tvmc.main import _main
from tvm.relay.backend import Executor

Fails = Callable[..., str]


@pytest.mark.parametrize(("options", "part"), [
    (["--target", "llvmm"], "did you mean 'llvm'"),
    (["--target", "llvm -mcpux=3"], "did you mean 'mcpu'"),
    (["--target", "llvm,"], "requires a name between commas"),
    (["--target", "llvm, llvm"], "Duplicate target kinds"),
    (["--target", "llvm", "--target-c-mcpu=3"], "did not specify c target"),
    (["--pass-config", "tir.disable_vectorizer=1"], "did you mean 'tir.disable_vectorize'"),
    (["--pass-config", "tir.disable_vectorize"], "use name=value"),
    (["--pass-config", "tir.disable_vectorize=maybe"], "Invalid value 'maybe'"),
    (["--pass-config", "tir.add_lower_pass=1,no.such.function"], "there is no function"),
    (["--disabled-pass", "FuseOp"], "FuseOp; did you mean 'FuseOps'"),
    (["--input-shapes", "data=[1,2]"], "malformed"),
    (["--input-shapes", "data:[1,x]"], "integers as dimensions"),
    (["--input-shapes", "daata:[1,3,6,6]"], "did you mean 'data'"),
    (["--executor-aot-link-params", "1"], "did not specify aot executor"),
    (["--executor-graph-link-params", "yes"], "1 or 0 is required"),
    (["--runtime", "crt"], "--output-format mlf"),
    (["--use-vm", "--output-format", "mlf"], "got 'mlf'"),
    (["--desired-layout", "NHWQ"], "got NHWQ"),
    (["--desired-layout", "NHWC", "NCHW"], "one layout or 3"),
    (["--mixed-precision", "--mixed-precision-ops", "nn.conv"], "there is no 'nn.conv'"),
    (["--cross-compiler", "no-such-gcc"], "no-such-gcc"),
    (["--dump-code", "exe"], "--dump-code has the formats"),
    (["--dump-code", "c"], "--dump-code c"),
    (["--tuning-records", "log.json"], "no file of records log.json"),
    (["--model-format", "tflite"], "convert them to ONNX"),
])  # fmt: skip
def test_compile_rejects(
    options: list[str], part: str, onnx_file: str, tmp_path: Path, tvmc_fails: Fails
) -> None:
    assert part in tvmc_fails("compile", onnx_file, "-o", str(tmp_path / "m.tar"), *options)


@pytest.mark.parametrize(("name", "part"), [
    ("none.onnx", "doesn't exist"),
    ("model.tflite", "tflite cannot be imported yet"),
    ("model.xyz", "Please specify --model-format"),
])  # fmt: skip
def test_compile_rejects_files(name: str, part: str, tmp_path: Path, tvmc_fails: Fails) -> None:
    if not name.startswith("none"):
        (tmp_path / name).write_text("?")
    assert part in tvmc_fails("compile", str(tmp_path / name), "--target", "llvm")


def test_files_that_are_no_models_are_rejected(tmp_path: Path, tvmc_fails: Fails) -> None:
    for name in ("a.onnx", "a.pt", "a.relay"):
        path = tmp_path / name
        path.write_bytes(b"\x93\xfa no model")
        assert "Error: " in tvmc_fails("compile", str(path), "--input-shapes", "x:[1]")
    assert "no archive of a model" in tvmc_fails("run", str(tmp_path / "a.onnx"))
    assert "there is no file" in tvmc_fails("run", str(tmp_path / "b.tar"))


def test_run_rejects_wrong_inputs(onnx_file: str, tmp_path: Path, tvmc_fails: Fails) -> None:
    package = str(tmp_path / "m.tar")
    tvmc.compile(tvmc.load(onnx_file), "llvm", package_path=package)
    data, path = np.zeros((1, 3, 6, 6), "float32"), str(tmp_path / "in.npz")

    def rejected(**arrays: object) -> str:
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return tvmc_fails("run", package, "--inputs", path)

    assert "did you mean 'data'" in rejected(daata=data)
    assert "has the shape (1, 3, 6, 6)" in rejected(data=data[:, :2])
    assert "has the type float32" in rejected(data=data.astype("complex64"))
    assert "requires plain arrays" in rejected(data=np.array([{}], object))
    assert "onnx is none: np.savez" in tvmc_fails("run", package, "--inputs", onnx_file)
    np.save(tmp_path / "in.npy", data)
    assert "holds one array" in tvmc_fails("run", package, "--inputs", str(tmp_path / "in.npy"))
    assert "there is no nothing.npz" in tvmc_fails("run", package, "--inputs", "nothing.npz")
    assert "device" in tvmc_fails("run", package, "--device", "rocm")
    assert "requires --rpc-tracker" in tvmc_fails("run", package, "--rpc-key", "pi")
    assert "at least 1" in tvmc_fails("run", package, "--repeat", "0")


def test_models_of_one_function_cannot_be_profiled(
    onnx_file: str, tmp_path: Path, tvmc_fails: Fails
) -> None:
    package = str(tmp_path / "m.tar")
    executor = Executor("aot")
    tvmc.compile(tvmc.load(onnx_file), "llvm", executor=executor, package_path=package)
    assert "cannot be measured" in tvmc_fails("run", package, "--profile")
    assert "end-to-end" in tvmc_fails("run", package, "--print-time", "--end-to-end")


def test_commands_that_there_are_not_say_why(tvmc_fails: Fails) -> None:
    assert "microcontrollers" in tvmc_fails("micro", "create", "x")
    assert "usage: tvmc" in tvmc_fails()


def test_help_of_commands_that_there_are_not_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        _main(["micro", "--help"])
    assert end.value.code == 0 and "Not available" in capsys.readouterr().out


def test_packages_that_were_not_compiled_are_rejected(onnx_file: str) -> None:
    with pytest.raises(tvmc.TVMCException, match="compiled yet"):
        tvmc.run(tvmc.load(onnx_file), device="cpu")  # type: ignore[arg-type]
    with pytest.raises(tvmc.TVMCException, match="mod and params"):
        tvmc.TVMCModel()


def test_python_face_rejects_what_it_does_not_take(onnx_file: str, tmp_path: Path) -> None:
    model, package = tvmc.load(onnx_file), str(tmp_path / "m.tar")
    tvmc.compile(model, "llvm", package_path=package)
    for wrong, part in (
        (lambda: tvmc.compile(onnx_file, "llvm"), "requires a TVMCModel"),  # type: ignore[arg-type]
        (lambda: tvmc.compile(model, None), "a target is a text"),  # type: ignore[arg-type]
        (lambda: tvmc.compile(model, "llvm", tuning_records=package), "no file of records"),
        (lambda: tvmc.TVMCModel(model_path=package), "it is a compiled model"),
        (lambda: tvmc.run(tvmc.TVMCPackage(package), "cpu", inputs=[1]), "arrays by name"),  # type: ignore[arg-type]
    ):
        with pytest.raises(tvmc.TVMCException, match=part):
            wrong()


def test_pytorch_files_that_are_no_programs_are_distinguished(
    tmp_path: Path, tvmc_fails: Fails
) -> None:
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "weights.pt")
    text = tvmc_fails("compile", str(tmp_path / "weights.pt"), "--input-shapes", "x:[1,2]")
    assert "a pickled module or its weights" in text and "torch.jit.trace" in text


def test_shapes_of_open_inputs_are_checked(tmp_path: Path, tvmc_fails: Fails) -> None:
    onnx.save(small_model("n"), tmp_path / "open.onnx")
    package = str(tmp_path / "m.tar")
    tvmc.compile(tvmc.load(tmp_path / "open.onnx"), "llvm", package_path=package)
    np.savez(tmp_path / "in.npz", data=np.zeros((2, 3, 5, 6), "float32"))
    text = tvmc_fails("run", package, "--inputs", str(tmp_path / "in.npz"))
    assert "has the shape (2, 3, 6, 6)" in text
    text = tvmc_fails("run", package, "--input-shapes", "data:[2,3,5,6]")
    assert "'data' is float32[?, 3, 6, 6], got the shape [2, 3, 5, 6]" in text
    assert "did you mean 'data'" in tvmc_fails("run", package, "--input-shapes", "daata:[1]")


def test_open_inputs_are_not_filled_beside_given_ones(tmp_path: Path, tvmc_fails: Fails) -> None:
    package = str(tmp_path / "m.tar")
    onnx.save(two_inputs(), tmp_path / "two.onnx")
    tvmc.compile(tvmc.load(tmp_path / "two.onnx"), "llvm", package_path=package)
    text = tvmc_fails("run", package, "--input-shapes", "a:[3]")
    assert "'b' of float32[?] requires a shape as 'a' has one" in text


def test_other_executors_do_not_become_the_virtual_machine(
    tmp_path: Path, tvmc_fails: Fails
) -> None:
    text = "def @main(%c: bool, %x: float32) { if (%c) { %x } else { negative(%x) } }"
    (tmp_path / "m.relay").write_text(f'#[version = "0.0.5"]\n{text}')
    for options in (["--executor", "aot"], ["-f", "mlf"], ["--executor-graph-link-params", "1"]):
        found = tvmc_fails("compile", str(tmp_path / "m.relay"), "--target", "llvm", *options)
        assert "executors cannot run If" in found and "virtual machine" in found


def test_libraries_that_are_no_models_are_rejected(tmp_path: Path, tvmc_fails: Fails) -> None:
    x = te.placeholder((2,), name="x")
    kernels = tvm.build(te.create_schedule(te.compute((2,), lambda i: x[i]).op), [x], "llvm")
    kernels.export_library(str(tmp_path / "kernels.so"))
    assert "holds kernels and no model" in tvmc_fails("run", str(tmp_path / "kernels.so"))
    assert "there is no file" in tvmc_fails("run", str(tmp_path / "none.so"))
    (tmp_path / "text.so").write_text("text")
    assert "cannot load" in tvmc_fails("run", str(tmp_path / "text.so"))


def test_libraries_are_written_in_one_format(
    onnx_file: str, tmp_path: Path, tvmc_fails: Fails
) -> None:
    library = str(tmp_path / "m.so")
    assert "got 'mlf'" in tvmc_fails("compile", onnx_file, "-o", library, "-f", "mlf")


def test_configurations_have_options_of_commands(
    onnx_file: str, tmp_path: Path, tvmc_fails: Fails
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"targets": [{"kind": "llvm"}], "opt-leve": 2}')
    text = tvmc_fails("--config", str(config), "compile", onnx_file)
    assert "there is no 'opt-leve'" in text and "did you mean 'opt_level'" in text


def test_tuning_takes_at_least_one_trial(onnx_file: str, tvmc_fails: Fails) -> None:
    for option in ("--trials", "--number", "--repeat"):
        text = tvmc_fails("tune", onnx_file, "--target", "llvm", "-o", "records", option, "-1")
        assert "at least 1 is required, got -1" in text


def test_targets_without_code_generator_are_rejected(onnx_file: str, tvmc_fails: Fails) -> None:
    assert "no code generator for target vulkan" in tvmc_fails(
        "compile", onnx_file, "--target", "vulkan"
    )
