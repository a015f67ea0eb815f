"""Choosing schedules by target, and comparing a compute with numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from tvm import te
from tvm.driver import build
from tvm.runtime import Device
from tvm.runtime import ndarray as nd
from tvm.target import Target

from .. import generic, nn, threads, x86

T = TypeVar("T")


def dispatch(target: Any, dispatch_map: Mapping[str, T]) -> T:
    """The value of the first of the target's keys that the map has, or that of "generic"."""
    keys = Target(target).keys if isinstance(target, str) else target.keys
    return next((dispatch_map[key] for key in keys if key in dispatch_map), dispatch_map["generic"])


_INJECTIVE: dict[str, Callable[..., te.Schedule]] = {
    "generic": generic.schedule_injective,
    "cpu": x86.schedule_injective,
    "gpu": threads.schedule_injective,
}
_REDUCE: dict[str, Callable[..., te.Schedule]] = {
    "generic": generic.schedule_reduce,
    "cpu": x86.schedule_reduce,
    "gpu": threads.schedule,
}
_CONV2D = {
    "generic": (nn.conv2d_nchw, generic.schedule_conv2d_nchw),
    "cpu": (nn.conv2d_nchw, generic.schedule_conv2d_nchw),
    "gpu": (nn.conv2d_nchw, threads.schedule),
}


def get_injective_schedule(target: Any) -> Callable[..., te.Schedule]:
    """The schedule of injective operators."""
    return dispatch(target, _INJECTIVE)


get_broadcast_schedule = get_elemwise_schedule = get_injective_schedule


def get_reduce_schedule(target: Any) -> Callable[..., te.Schedule]:
    """The schedule of reductions."""
    return dispatch(target, _REDUCE)


def get_conv2d_nchw_implement(target: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The compute and the schedule of convolutions with channels first."""
    return dispatch(target, _CONV2D)


def compare_numpy_tvm(
    inputs: Sequence[np.ndarray],
    output: np.ndarray,
    target: Any,
    device: Device,
    compute: Callable[..., Any],
    schedule: Callable[..., te.Schedule],
) -> None:
    """Check what a compute gives for arrays against an array.

    Parameters
    ----------
    inputs : sequence of numpy.ndarray
    output : numpy.ndarray
        What is expected.
    target : Target or str
    device : Device
    compute : callable
        From te tensors to a te tensor.
    schedule : callable
        From a list of tensors to a schedule.
    """
    tensors = [te.placeholder(x.shape, str(x.dtype), f"x{i}") for i, x in enumerate(inputs)]
    with Target(target):
        out = compute(*tensors)
        kernel = build(schedule([out]), [*tensors, out], target)
    found = nd.array(np.zeros(output.shape, str(out.dtype)), device)
    kernel(*[nd.array(x, device) for x in inputs], found)
    np.testing.assert_allclose(found.numpy(), output, rtol=1e-4, atol=1e-5)
