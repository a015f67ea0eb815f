"""Hints, devices and debugging within programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor


def _kernels(build: Any) -> list[str]:
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], build(x)))
    graph = relay.build(mod, "llvm").get_graph_json()
    return [name for name in graph.split('"') if name.startswith("tvmgen_")]


def test_stop_fusion_parts_kernels() -> None:
    whole = set(_kernels(lambda x: relay.exp(relay.tanh(x))))
    parts = set(_kernels(lambda x: relay.exp(relay.annotation.stop_fusion(relay.tanh(x)))))
    assert len(whole) == 1
    assert len(parts) == 2  # the annotation itself is no kernel


def test_debug_calls_the_function_with_the_value() -> None:
    seen: list[np.ndarray] = []
    x = relay.var("x", shape=(2, 3))
    body = relay.add(relay.debug(relay.exp(x), lambda t: seen.append(t.numpy().copy())), x)
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    data = np.random.rand(2, 3).astype("float32")
    module.run(x=data)
    np.testing.assert_allclose(seen[0], np.exp(data), rtol=1e-5)
    np.testing.assert_allclose(module.get_output(0).numpy(), np.exp(data) + data, rtol=1e-5)


def test_debug_without_a_function_prints_the_value(capsys: pytest.CaptureFixture[str]) -> None:
    x = relay.var("x", shape=(2,))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], relay.debug(x))), "llvm")
    graph_executor.GraphModule(lib["default"](tvm.cpu())).run(x=np.array([1.5, 2.5], "float32"))
    assert "debug: float32 (2,)\n[1.5 2.5]" in capsys.readouterr().out


def test_on_device_records_the_device() -> None:
    x = relay.var("x", shape=(2,))
    attrs = relay.annotation.on_device(x, tvm.cpu(3), constrain_result=True).attrs
    assert attrs.virtual_device.device_type_int == 1
    assert attrs.virtual_device.virtual_device_id == 3
    assert (attrs.constrain_result, attrs.constrain_body) == (True, True)


def test_a_device_that_the_target_lacks_is_rejected() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match="placed on cuda"):
        _kernels(lambda x: relay.annotation.on_device(x, "cuda"))


def test_function_on_device_wants_a_device_for_each_parameter() -> None:
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], x)
    placed = relay.annotation.function_on_device(function, ["cpu"], "cpu")
    assert placed.virtual_device_.device_type_int == 1
    assert placed.params[0].virtual_device_.device_type_int == 1
    assert x.virtual_device_ is None
    with pytest.raises(ValueError, match="each of 1 parameters, got 2"):
        relay.annotation.function_on_device(function, ["cpu", "cpu"], "cpu")


def test_what_is_no_device_is_rejected() -> None:
    with pytest.raises(ValueError, match="requires a Device or its name, got float"):
        relay.annotation.on_device(relay.var("x", shape=(2,)), 1.5)
