"""Networks for inputs of several sizes."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.relay.vm.common import run_vm
from tvm import relay
from tvm.relay.transform import FlexibleShapeDispatch
from tvm.relay.transform.flexible_shape import flexible_dispatch, override_shape

WEIGHT = np.random.default_rng(0).standard_normal((5, 3)).astype("float32")


def network() -> tvm.IRModule:
    x = relay.var("x", shape=(1, 3))
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(WEIGHT))))


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 3)).astype("float32")


def test_each_size_has_its_function() -> None:
    mod = flexible_dispatch(network(), [4, 1])
    assert {g.name_hint for g in mod.functions} == {"main", "main_1", "main_4"}
    assert mod["main_4"].ret_type == relay.TensorType((4, 5))
    for count in (1, 4):
        np.testing.assert_allclose(run_vm(mod, rows(count)), rows(count) @ WEIGHT.T, rtol=1e-4)


def test_inputs_are_padded_to_the_next_size() -> None:
    mod = FlexibleShapeDispatch([1, 4, 8], auto_pad=True)(network())
    for count in (1, 2, 4, 7):
        found = run_vm(mod, rows(count))
        np.testing.assert_allclose(found, rows(count) @ WEIGHT.T, rtol=1e-4)


def test_results_without_the_axis_are_not_cut() -> None:
    x = relay.var("x", shape=(1, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.max(x, axis=0)))
    flexible = flexible_dispatch(mod, [2, 4], auto_pad=True, pad_value=-100, affects_output=False)
    np.testing.assert_allclose(run_vm(flexible, rows(3)), rows(3).max(0))


def test_no_sizes_are_rejected() -> None:
    with pytest.raises(tvm.error.TVMError, match="at least one bucket"):
        flexible_dispatch(network(), [])
    assert override_shape(relay.TensorType((1, 2)), 1, 7) == relay.TensorType((1, 7))
