from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

import tvm
from tvm import compat, te
from tvm.error import TVMError
from tvm.ir.transform import PassContext


def warnings_of(action: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()  # type: ignore[operator]
    return [str(item.message) for item in caught if item.category is DeprecationWarning]


def test_an_old_name_warns_once_and_tells_the_new_spelling() -> None:
    vars(tvm).pop("size_var", None)
    assert warnings_of(lambda: tvm.size_var) == ["tvm.size_var is deprecated: use tvm.te.size_var"]
    assert warnings_of(lambda: tvm.size_var) == []


@pytest.mark.parametrize("name", [*compat.NAMES, *compat.MODULES])
def test_every_old_name_is_there(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert getattr(tvm, name) is not None


def test_array_methods_of_old_warn() -> None:
    array = tvm.nd.array(np.ones(2))
    assert "NDArray.numpy" in warnings_of(array.asnumpy)[0]
    assert "NDArray.device" in warnings_of(lambda: array.ctx)[0]
    assert "device=" in warnings_of(lambda: tvm.nd.empty((2,), ctx=tvm.cpu()))[0]


def test_a_function_is_measured_on_a_context() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    func = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    array = tvm.nd.array(np.ones(4, "float32"))
    times: list[float] = []

    def measure() -> None:
        timer = func.time_evaluator(func.entry_name, ctx=tvm.cpu(), number=1, repeat=2)
        times.extend(timer(array, array).results)

    assert "time_evaluator(dev=...)" in warnings_of(measure)[0]
    assert len(times) == 2
    with pytest.raises(TypeError, match="requires dev, the device"):
        func.time_evaluator(func.entry_name)


def test_an_unknown_name_stays_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'placeholdr'"):
        tvm.placeholdr


def test_build_config_becomes_a_pass_context() -> None:
    with compat.resolve("tvm.compat.api.build_config")(
        auto_unroll_max_step=16, unroll_explicit=False, partition_const_loop=True
    ):
        config = PassContext.current().config
    assert config["tir.UnrollLoop"].auto_max_step == 16
    assert not config["tir.UnrollLoop"].explicit_unroll
    assert config["tir.LoopPartition"].partition_const_loop


def test_build_config_lays_out_the_buffers_of_arguments_and_intrinsics() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    seen = []
    with compat.resolve("tvm.compat.api.build_config")(offset_factor=2, data_alignment=32):
        func = tvm.lower(te.create_schedule(B.op), [A, B])["main"]
        te.decl_tensor_intrin(
            B.op, lambda ins, outs: seen.extend([*ins, *outs]) or tvm.tir.Evaluate(0)
        )
    for buffer in (*func.buffer_map.values(), *seen):
        assert buffer.offset_factor == 2 and buffer.data_alignment == 32
        assert not isinstance(buffer.elem_offset, tvm.tir.IntImm)


def test_build_config_rejects_what_has_no_equivalent() -> None:
    build_config = compat.resolve("tvm.compat.api.build_config")
    with pytest.raises(TVMError, match="takes only disable_select_rewriting=False, got True"):
        build_config(disable_select_rewriting=True)
    with pytest.raises(TVMError, match="no option 'unrol'"):
        build_config(unrol=1)


def test_pointers_are_stored_to_through_buffers() -> None:
    make = importlib.import_module("tvm.compat.make")
    with pytest.raises(TVMError, match=r"make\.Store cannot store through the pointer p"):
        make.Store(tvm.tir.Var("p", "handle"), 1, 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_modules_of_the_topi_package_are_those_of_tvm() -> None:
    assert importlib.import_module("topi.nn.conv2d") is importlib.import_module(
        "tvm.topi.nn.conv2d"
    )
    assert importlib.import_module("topi.util") is importlib.import_module("tvm.topi.utils")
    assert importlib.import_module("tvm.topi.nn").__spec__.name == "tvm.topi.nn"
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("topi.nothing")
