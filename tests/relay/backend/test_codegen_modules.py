"""The code generators of graphs as modules of functions."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.error import TVMError
from tvm.relay.backend import Executor
from tvm.runtime.module import Module
from tvm.tir import PrimFunc

TARGET = tvm.target.Target("llvm")


def model() -> tvm.IRModule:
    x = relay.var("x", shape=(4, 4))
    bias = relay.const(np.full((4, 4), 3, "float32"))
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x) + bias))


def made(name: str, mod: tvm.IRModule) -> Module:
    codegen = tvm.get_global_func(f"relay.build_module.{name}")()
    assert (codegen.is_runnable, codegen.is_binary_serializable) == (True, False)
    assert not codegen.is_dso_exportable
    codegen["init"](None, [TARGET])
    codegen["codegen"](mod, mod["main"], "default")
    return codegen


def test_aot_codegen_gives_the_models_function_among_its_kernels() -> None:
    codegen = made("_AOTExecutorCodegen", model())
    assert codegen.type_key == "AOTExecutorCodegenModule"
    (lowered,) = codegen["get_irmodule"]().values()
    names = {gvar.name_hint for gvar, f in lowered.functions.items() if isinstance(f, PrimFunc)}
    assert names == {"tvmgen_default___tvm_main__", "tvmgen_default_fused_nn_relu_add"}
    assert list(codegen["list_params_name"]()) == []  # the constants are in the code
    assert set(codegen["get_function_metadata"]()) == {
        "__tvm_main__",
        "tvmgen_default_fused_nn_relu_add",
    }
    assert codegen["get_executor_codegen_metadata"]().inputs == ["x"]
    assert list(codegen["get_devices"]()) == ["cpu"]
    assert list(codegen["get_external_modules"]()) == []


def test_aot_codegen_takes_the_modules_executor() -> None:
    mod = model().with_attr("executor", Executor("aot", {"link-params": False}))
    codegen = made("_AOTExecutorCodegen", mod)
    (name,) = codegen["list_params_name"]()
    np.testing.assert_array_equal(codegen["get_param_by_name"](name).numpy(), np.full((4, 4), 3))


def test_graph_codegen_gives_graph_and_constants() -> None:
    codegen = made("_GraphExecutorCodegen", model())
    graph = json.loads(codegen["get_graph_json"]())
    assert [node["name"] for node in graph["nodes"]][:2] == ["x", "p0"]
    assert list(codegen["list_params_name"]()) == ["p0"]
    assert not codegen.implements_function("get_function_metadata")


def test_steps_out_of_order_are_rejected() -> None:
    codegen = tvm.get_global_func("relay.build_module._AOTExecutorCodegen")()
    mod = model()
    with pytest.raises(TVMError, match="requires a target: call init first"):
        codegen["codegen"](mod, mod["main"], "default")
    with pytest.raises(TVMError, match="requires a target, got none"):
        codegen["init"](None, [])
    with pytest.raises(TVMError, match="nothing was lowered"):
        codegen["get_irmodule"]()
