"""Build an imported module and run it on numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tvm
from tests.executors import outputs_of
from tvm import relay
from tvm.contrib import graph_executor


def run(
    mod: Any, params: Mapping[str, Any], inputs: Mapping[str, Any], level: int = 3
) -> list[Any]:
    """The outputs of ``main``."""
    with tvm.transform.PassContext(opt_level=level):
        lib = relay.build(mod, target="llvm", params=dict(params))
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for name, array in inputs.items():
        module.set_input(name, np.asarray(array))
    module.run()
    return outputs_of(module)


def assert_close(actual: Any, expected: Any, relative: float = 1e-4) -> None:
    """Equal shapes and types; differences at most ``relative`` of the output's scale."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind == "f":
        finite = np.isfinite(expected)
        scale = np.abs(expected[finite]).max(initial=1e-6)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=relative * scale)
    else:
        np.testing.assert_array_equal(actual, expected)
