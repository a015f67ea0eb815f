"""What this release does not have is said in one sentence, with what there is instead."""

from __future__ import annotations

import importlib

import pytest

from tests.errors.messages import rejection
from tvm.error import TVMError
from tvm.support.absent import explanation

PARTS = [
    ("tvm.contrib", "ethosn", "targets llvm, c, opencl and cuda"),
    ("tvm.contrib", "msc", "tvm.relay.frontend"),
    ("tvm.runtime", "disco", "tvm.rpc"),
    ("tvm.auto_scheduler", "testing", "tvmc tune"),
    ("tvm.micro", "class_factory", "--output-format mlf"),
]


@pytest.mark.parametrize(("package", "name", "instead"), PARTS)
def test_absent_parts_say_what_there_is_instead(package: str, name: str, instead: str) -> None:
    module = importlib.import_module(package)
    sentence = explanation(f"{package}.{name}")
    assert sentence is not None and sentence.startswith(
        f"{package}.{name} is not in this release; "
    )
    assert instead in sentence
    assert rejection(lambda: getattr(module, name), AttributeError) == sentence
    for statement in (f"import {package}.{name}", f"from {package} import {name}"):
        assert rejection(lambda text=statement: exec(text), ModuleNotFoundError) == sentence


@pytest.mark.parametrize(
    ("part", "name", "instead"),
    [
        ("tvm.meta_schedule", "tune_tir", "tvm.autotvm"),
        ("tvm.dlight", "ApplyDefaultSchedule", "tvm.autotvm"),
        ("tvm.contrib.nvrtc", "compile", "targets llvm, c, opencl and cuda"),
        (
            "tvm.contrib.cuda_graph.cuda_graph_executor",
            "create",
            "targets llvm, c, opencl and cuda",
        ),
    ],
)
def test_parts_for_some_uses_are_imported_and_rejected_there(
    part: str, name: str, instead: str
) -> None:
    module = importlib.import_module(part)
    sentence = explanation(part)
    assert sentence is not None and instead in sentence
    assert not hasattr(module, name) and not hasattr(module, "__wrapped__")
    assert rejection(lambda: getattr(module, name), AttributeError) == sentence
    for statement in (f"import {part}.{name}", f"from {part} import {name}"):
        assert rejection(lambda text=statement: exec(text), ModuleNotFoundError) == sentence


@pytest.mark.parametrize(
    ("module", "function", "instead"),
    [
        ("tvm.contrib.cublas", "matmul", "targets llvm, c, opencl and cuda"),
        ("tvm.contrib.cutlass", "finalize_modules", "targets llvm, c, opencl and cuda"),
        ("tvm.contrib.coreml_runtime", "create", "executors"),
        ("tvm.relay.op.contrib.ethosu", "partition_for_ethosu", "dnnl"),
        ("tvm.relay.op.contrib", "partition_for_ethosn", "dnnl"),
        ("tvm.contrib.hexagon", "allocate_hexagon_array", "targets llvm and c"),
        ("tvm.contrib.hexagon.session", "Session", "targets llvm and c"),
        ("tvm.relay.backend.contrib.ethosu.tir.compiler", "lower_to_te", "targets llvm and c"),
        ("tvm.relay.op.contrib.ethosu", "qnn_conv2d_pattern", "dnnl"),
        ("tvm.relay.op.contrib.ethosu", "ConcatParams", "dnnl"),
        ("tvm.micro", "Session", "--output-format mlf"),
        ("tvm.micro.project", "generate_project_from_mlf", "--output-format mlf"),
        ("tvm.relay.frontend", "from_keras", "ONNX"),
        ("tvm.relay.frontend.tensorflow", "from_tensorflow", "ONNX"),
        ("tvm.relay.testing.tf", "get_workload", "ONNX"),
    ],
)
def test_functions_of_absent_libraries_reject_to_be_called(
    module: str, function: str, instead: str
) -> None:
    found = getattr(importlib.import_module(module), function)
    text = rejection(lambda: found(None, axis=1), TVMError)
    assert function in text and " is not in this release; " in text and instead in text


def test_questions_about_absent_libraries_are_answered() -> None:
    from tvm.contrib.target.vitis_ai import vitis_ai_available
    from tvm.relay.op.contrib import ethosn, ethosu, tensorrt

    from tvm.contrib import nnpack, thrust

    assert not thrust.can_use_thrust("llvm", "tvm.contrib.thrust.sort")
    assert not nnpack.is_available() and not vitis_ai_available()
    assert ethosu.ConcatParams.composite_name == "ethos-u.concat"
    assert ethosn.ethosn_available() == ethosn.Available.UNAVAILABLE
    assert not tensorrt.is_tensorrt_runtime_enabled()


def test_device_libraries_reject_what_they_would_run() -> None:
    module = importlib.import_module("tvm.contrib.cudnn")
    text = rejection(lambda: module.compile_cuda, AttributeError)
    assert text.startswith("tvm.contrib.cudnn.compile_cuda is not in this release; ")


def test_absent_parts_can_be_probed() -> None:
    import tvm

    assert not hasattr(tvm.contrib, "msc")
    with pytest.raises(ImportError, match="tvm.meta_schedule is not in this release"):
        importlib.import_module("tvm.meta_schedule.runner")


def test_names_that_never_were_are_told_as_python_does() -> None:
    for package in ("tvm", "tvm.tir", "tvm.contrib", "tvm.micro", "tvm.relay.frontend"):
        module = importlib.import_module(package)
        text = rejection(lambda found=module: found.frobnicate, AttributeError)
        assert text == f"module {package!r} has no attribute 'frobnicate'"
        with pytest.raises(ModuleNotFoundError, match=f"No module named '{package}.frobnicate'"):
            importlib.import_module(f"{package}.frobnicate")
