"""numpy arrays of other widths as inputs of executors."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor

CODES = np.array([0, 7, 255])  # int64


def doubled(dtype: str) -> tvm.IRModule:
    x = relay.var("x", shape=(3,), dtype=dtype)
    return tvm.IRModule.from_expr(relay.Function([x], x + x))


def test_integers_of_the_other_sign_are_converted_where_they_fit() -> None:
    module = graph_executor.GraphModule(relay.build(doubled("uint8"), "llvm")["default"](tvm.cpu()))
    module.run(x=CODES)
    np.testing.assert_array_equal(module.get_output(0).numpy(), [0, 14, 254])
    with pytest.raises(ValueError, match=r"needs \(3,\) uint8, got \(3,\) int64"):
        module.set_input("x", CODES + 1)


@pytest.mark.parametrize("kind", ["graph", "debug", "vm", "aot"])
def test_numbers_of_another_width_are_arguments(kind: str) -> None:
    run = relay.create_executor(kind, doubled("float32")).evaluate()
    for given in (np.array([1.0, 2.0, 4.0]), np.array([1, 2, 4])):
        found = run(given)
        assert found.dtype == "float32"
        np.testing.assert_array_equal(found.numpy(), [2, 4, 8])


def test_parameters_are_converted_to_the_type_of_theirs() -> None:
    x = relay.var("x", shape=(3,), dtype="float32")
    wide = np.array([1.0, 2.0, 0.5])
    for values in (wide, np.array([1, 2, 3]), tvm.nd.array(wide)):
        bound = relay.build_module.bind_params_by_name(relay.Function([x], x), {"x": values})
        assert bound.body.data.dtype == "float32"
    with pytest.raises(ValueError, match="parameter x must be float32 of shape"):
        relay.build_module.bind_params_by_name(relay.Function([x], x), {"x": wide[:2]})


def test_python_tuples_of_numbers_are_arguments() -> None:
    scalar = relay.TensorType((), "int64")
    x = relay.var("x", relay.TupleType([scalar, scalar]))
    run = relay.create_executor("debug", tvm.IRModule.from_expr(relay.Function([x], x)))
    found = run.evaluate()((10, 8))
    assert [int(v.numpy()) for v in found] == [10, 8] and found[0].dtype == "int64"
