"""Schedules of Arm that change the loops of a lowered function by `tir.Schedule`."""

from __future__ import annotations

from typing import Any, NoReturn

from tvm.error import OpNotImplemented


def schedule_conv2d_NHWC_hybrid_TIR(sch: Any) -> NoReturn:
    """A convolution by the outer products of SME, which `tir.Schedule` would make of its loops."""
    raise OpNotImplemented(
        "schedule_conv2d_NHWC_hybrid_TIR requires tir.Schedule, which this package does not have",
        hint="schedule_conv2d_NHWC_hybrid schedules the convolution as it was declared in te",
    )
