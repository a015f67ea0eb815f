from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay


@pytest.mark.parametrize("count", [3, None, relay.const(3)])
@pytest.mark.parametrize("shape", [(5, 3), (5,), (relay.Any(), relay.Any())])
def test_slices_of_one_segment_are_added(count: object, shape: tuple[object, ...]) -> None:
    x, ids = relay.var("x", shape=shape), relay.var("ids", shape=(5,), dtype="int32")
    run = relay.create_executor(
        "vm", mod=tvm.IRModule.from_expr(relay.Function([x, ids], relay.segment_sum(x, ids, count)))
    ).evaluate()
    values = np.arange(15, dtype="float32").reshape(5, 3)[(..., 0)[: 3 - len(shape)]]
    segments = np.array([0, 0, 2, 1, 2], "int32")
    wanted = np.zeros((3, *values.shape[1:]), "float32")
    np.add.at(wanted, segments, values)
    np.testing.assert_array_equal(run(values, segments).numpy(), wanted)
