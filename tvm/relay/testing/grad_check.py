"""Gradients of relay functions beside finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import relay
from tvm.ir.module import IRModule
from tvm.relay.function import Function
from tvm.relay.transform import InferType, gradient
from tvm.runtime import Device, cpu

Array = np.ndarray


def _typed(func: Function) -> Function:
    typed: Function = InferType()(IRModule.from_expr(func))["main"]
    return typed


def _np_randn_from_type(t: relay.TensorType, scale: float = 1, mean: float = 0) -> Array:
    """An array of a type, from a normal distribution."""
    if not np.issubdtype(np.dtype(str(t.dtype)), np.floating):
        raise ValueError(
            f"check_grad draws inputs of float16, float32 and float64, one is {t.dtype}: "
            "pass inputs and test_inputs"
        )
    return np.asarray(np.random.normal(mean, scale, t.concrete_shape)).astype(str(t.dtype))


def check_grad(
    func: Function,
    inputs: Sequence[Array] | None = None,
    test_inputs: Sequence[Array] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: Sequence[tuple[Any, Device]] | None = None,
    executor_kind: str = "debug",
) -> None:
    """Assert that the gradient of `func` agrees with central differences of its sum.

    Parameters
    ----------
    func : Function
        A function of tensors that gives one tensor.
    inputs : sequence of numpy.ndarray, optional
        The arguments; by default drawn from a normal distribution.
    test_inputs : sequence of numpy.ndarray, optional
        Those of the inputs, the arrays themselves, whose gradients are compared; by default all.
    eps : float
        The step of the differences.
    atol, rtol : float
        Tolerances.
    scale, mean : float
        Standard deviation, by default ten times `eps`, and mean of drawn inputs.
    mode : str
        "higher_order" or "first_order".
    target_devices : sequence of (target, Device), optional
        Where to run, by default on the CPU.
    executor_kind : str
        "debug", "graph" or "vm".

    Raises
    ------
    AssertionError
        If they differ.
    """
    forward = _typed(func)
    backward = _typed(gradient(forward, mode=mode))
    if inputs is None:
        deviation = 10 * eps if scale is None else scale  # of the step's size: little is lost
        inputs = [_np_randn_from_type(p.checked_type, deviation, mean) for p in forward.params]
    chosen = inputs if test_inputs is None else test_inputs
    for target, device in target_devices or [("llvm", cpu(0))]:
        run_forward, run_backward = [
            relay.create_executor(executor_kind, device=device, target=target).evaluate(f)
            for f in (forward, backward)
        ]
        _, gradients = run_backward(*inputs)
        for index, given in enumerate(inputs):
            if any(given is c for c in chosen):
                expected = _differences(run_forward, inputs, index, eps)
                np.testing.assert_allclose(gradients[index].numpy(), expected, atol=atol, rtol=rtol)


def _differences(run: Callable[..., Any], inputs: Sequence[Array], index: int, eps: float) -> Array:
    """Of the sum of the result, for each element of one input."""
    moved = [np.array(a) for a in inputs]
    varied = moved[index]
    result = np.zeros(varied.shape)
    for position in np.ndindex(varied.shape):
        value = varied[position]
        sides = []
        for step in (eps, -eps):
            varied[position] = value + step
            sides.append(run(*moved).numpy().astype("float64"))
        varied[position] = value
        result[position] = np.sum(sides[0] - sides[1]) / (2 * eps)
    return result
