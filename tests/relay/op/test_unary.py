"""Constants in another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tvm.relay.expr import Constant, const
from tvm.relay.op.unary import converted


@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16", "bool"])
def test_a_constant_is_converted_where_numpy_only_reads_through_dlpack(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: Callable[..., Any] = np.from_dlpack

    def as_numpy_1_has_it(array: Any) -> Any:
        values = shared(array)
        values.flags.writeable = False
        return values

    monkeypatch.setattr(np, "from_dlpack", as_numpy_1_has_it)
    found = converted(const(np.array([0.0, 1.0, 7.0], "float32")), dtype)
    assert type(found) is Constant and found.data.dtype == dtype
    expected = [0, 1, 1] if dtype == "bool" else [0, 1, 7]
    assert found.data.numpy().astype("float32").tolist() == expected
