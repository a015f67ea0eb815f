"""Cases of the sorting and searching operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relay

from .cases import Array, Case, bools, floats, ints


def _with_nan(shape: tuple[int, ...]) -> Array:
    data = floats(*shape)
    data.reshape(-1)[::5] = np.nan
    return data


def _descending(a: Array, axis: int) -> Array:
    """Stable indices of the descending order."""
    return np.argsort(-a.astype("float64"), axis, kind="stable")


def _topk(a: Array, k: int, axis: int, dtype: str = "int32") -> list[Array]:
    order = np.take(_descending(a, axis), range(k), axis)
    return [np.take_along_axis(a, order, axis), order.astype(dtype)]


def _rows_searched(rows: Array, values: Array, side: Any) -> Array:
    found = [np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)]
    return np.array(found).astype("int32")


def algorithm_cases() -> list[Case]:
    ties = ints(4, 9)
    rows = np.sort(ints(3, 8), axis=-1)
    big = np.sort(floats(1, 20000), axis=-1)
    table: list[tuple[str, Any, tuple[Array, ...], Any]] = [
        ("sort", relay.sort, (floats(3, 7),), lambda a: np.sort(a, -1)),
        ("sort", lambda a: relay.sort(a, 0), (_with_nan((7, 3)),), lambda a: np.sort(a, 0)),
        ("sort", lambda a: relay.sort(a, 1, False), (ties,), lambda a: -np.sort(-a, 1)),
        ("sort", relay.sort, (bools(9),), np.sort),
        ("sort", relay.sort, (ints(5, low=0, high=250, dtype="uint8"),), np.sort),
        ("sort", relay.sort, (floats(2, 9).astype("float16"),), np.sort),
        ("sort", relay.sort, (floats(9).astype("float64"),), np.sort),
        ("sort", relay.sort, (floats(3, 0),), np.sort),
        ("sort", relay.sort, (floats(64, 400),), np.sort),
        ("argsort", relay.argsort, (ties,), lambda a: np.argsort(a, -1, "stable").astype("int32")),
        ("argsort", lambda a: relay.argsort(a, 0, False, "int64"), (ties,), lambda a: _descending(a, 0)),
        ("argsort", lambda a: relay.argsort(a, dtype="float32"), (_with_nan((11,)),), lambda a: np.argsort(a, kind="stable").astype("float32")),
        ("topk", lambda a: relay.topk(a, 3).astuple(), (ties,), lambda a: _topk(a, 3, -1)),
        ("topk", lambda a: relay.topk(a, 2, 0, dtype="int64").astuple(), (floats(5, 3, 2),), lambda a: _topk(a, 2, 0, "int64")),
        ("topk", lambda a: relay.topk(a, 0, -1).astuple(), (ties,), lambda a: _topk(a, 9, -1)),
        ("topk", lambda a: relay.topk(a, 4, ret_type="values"), (floats(70, 300),), lambda a: _topk(a, 4, -1)[0]),
        ("topk", lambda a: relay.topk(a, 2, ret_type="indices", is_ascend=True), (ties,), lambda a: np.argsort(a, -1, "stable")[:, :2].astype("int32")),
        ("searchsorted", relay.searchsorted, (rows, ints(3, 5)), lambda r, v: _rows_searched(r, v, "left")),
        ("searchsorted", lambda r, v: relay.searchsorted(r, v, True), (rows, ints(3, 5)), lambda r, v: _rows_searched(r, v, "right")),
        ("searchsorted", lambda r, v: relay.searchsorted(r, v, dtype="int64"), (rows[0], ints(2, 3)), np.searchsorted),
        ("searchsorted", relay.searchsorted, (big, floats(1, 5)), lambda r, v: _rows_searched(r, v, "left")),
    ]  # fmt: skip
    return [Case(name, build, inputs, expected) for name, build, inputs, expected in table]
