"""Schedules of matrix products under the classic module name."""

from __future__ import annotations

from ..nn.dense.x86 import (
    MatmulConfig,
    choose_matmul,
    packed_columns,
    schedule_dense_nopack,
    schedule_dense_pack,
)

__all__ = [
    "MatmulConfig",
    "choose_matmul",
    "packed_columns",
    "schedule_dense_nopack",
    "schedule_dense_pack",
]
