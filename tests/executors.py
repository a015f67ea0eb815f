"""Run built models on numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm.contrib import graph_executor


def run_library(lib: Any, **inputs: Any) -> list[np.ndarray]:
    """The outputs of a model for the graph executor, as `relay.build` returns it."""
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    return outputs_of(module)


def outputs_of(module: Any) -> list[np.ndarray]:
    """What the last run of an executor gave."""
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


def flat_arrays(value: Any) -> list[np.ndarray]:
    """The tensors of a value that may be a tuple of tuples."""
    if isinstance(value, tvm.nd.NDArray):
        return [value.numpy()]
    return [array for field in value for array in flat_arrays(field)]
