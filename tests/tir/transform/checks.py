"""How a pass is tried on a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import tir
from tvm.ir import IRModule, assert_structural_equal
from tvm.ir.transform import Pass
from tvm.tir.interp import interpret
from tvm.tir.verify import Stage, problems


def apply(transform: Pass, func: tir.PrimFunc) -> tir.PrimFunc:
    """The function after a pass."""
    result = transform(IRModule({"main": func}))["main"]
    assert isinstance(result, tir.PrimFunc)
    return result


def assert_unchanged(transform: Pass, func: tir.PrimFunc) -> None:
    """A pass that finds nothing returns the very same object."""
    assert apply(transform, func) is func


def assert_transforms(transform: Pass, before: tir.PrimFunc, after: tir.PrimFunc) -> None:
    """A pass gives exactly this, and leaves its own result alone."""
    result = apply(transform, before)
    assert_structural_equal(result, after)
    assert apply(transform, result) is result


def assert_same_results(
    before: tir.PrimFunc, after: tir.PrimFunc, *shapes: Any, stage: Stage = Stage.STAGES
) -> None:
    """Both functions compute the same from random arguments; the second is legal at the stage."""
    assert problems(after, stage) == []
    random = np.random.default_rng(0)
    dtypes = [before.buffer_map[param].dtype for param in before.params]
    arrays = [
        (random.standard_normal(shape) * 8).astype(str(dtype))
        for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    copies = [array.copy() for array in arrays]
    interpret(before, *arrays)
    interpret(after, *copies)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
