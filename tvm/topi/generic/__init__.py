"""Schedules that suit any target."""

from .schedules import (
    default_schedule,
    schedule_extern,
    schedule_injective,
    schedule_injective_from_existing,
)
from .schedules import default_schedule as _default


def _inlined(outs):  # type: ignore[no-untyped-def]
    return _default(outs, True)


schedule_reduce = _inlined
schedule_softmax = _inlined
schedule_dense = _inlined
schedule_matmul = _inlined
schedule_batch_matmul = _inlined
schedule_conv2d_nchw = _inlined
schedule_conv2d_nhwc = _inlined
schedule_conv2d_NCHWc = _inlined
schedule_depthwise_conv2d_nchw = _inlined
schedule_depthwise_conv2d_NCHWc = _inlined
schedule_adaptive_pool = _inlined


def schedule_pool(outs, layout="NCHW"):  # type: ignore[no-untyped-def]
    """Pooling: loops in order."""
    return _default(outs, True)


__all__ = [
    "default_schedule",
    "schedule_adaptive_pool",
    "schedule_batch_matmul",
    "schedule_conv2d_NCHWc",
    "schedule_conv2d_nchw",
    "schedule_conv2d_nhwc",
    "schedule_dense",
    "schedule_depthwise_conv2d_NCHWc",
    "schedule_depthwise_conv2d_nchw",
    "schedule_extern",
    "schedule_injective",
    "schedule_injective_from_existing",
    "schedule_matmul",
    "schedule_pool",
    "schedule_reduce",
    "schedule_softmax",
]
