"""ONNX optimisers: one step for each group of tensors."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import scalar_like

from .registry import OnnxNode, onnx_op

_DOMAIN = "ai.onnx.preview.training"


def _grouped(node: OnnxNode, states: int) -> list[list[RelayExpr]]:
    """For each parameter the tensors: itself, its gradient, its states."""
    inputs = node.given()[2:]
    count = len(inputs) // (2 + states)
    return [[inputs[i + kind * count] for kind in range(2 + states)] for i in range(count)]


def _like(node: OnnxNode, name: str, default: float, x: RelayExpr) -> RelayExpr:
    return scalar_like(node.attr(name, default), x)


def _ordered(rows: list[list[RelayExpr]]) -> list[RelayExpr]:
    """All parameters first, then all of each state."""
    return [value for kind in zip(*rows, strict=True) for value in kind]


@onnx_op(f"{_DOMAIN}.Adagrad")
def _adagrad(node: OnnxNode) -> list[RelayExpr]:
    rows = []
    for x, gradient, squares in _grouped(node, 1):
        one = scalar_like(1.0, x)
        decay = _like(node, "decay_factor", 0.0, x) * node[1].astype(node.dtype(2))
        rate = node[0] / (one + decay)
        g = _like(node, "norm_coefficient", 0.0, x) * x + gradient
        squares = squares + g * g
        rows.append([x - rate * g / (_op.sqrt(squares) + _like(node, "epsilon", 1e-6, x)), squares])
    return _ordered(rows)


@onnx_op(f"{_DOMAIN}.Momentum")
def _momentum(node: OnnxNode) -> list[RelayExpr]:
    rows = []
    for x, gradient, velocity in _grouped(node, 1):
        alpha, beta = node.attr("alpha"), node.attr("beta")
        g = _like(node, "norm_coefficient", 0.0, x) * x + gradient
        # the first step takes the full gradient
        count, one = node[1].astype(node.dtype(2)), scalar_like(1.0, x)
        part = _op.where(_op.greater(count, scalar_like(0.0, x)), scalar_like(beta, x), one)
        velocity = scalar_like(alpha, x) * velocity + part * g
        step = velocity
        if node.attr("mode") == "nesterov":
            step = g + scalar_like(alpha, x) * velocity
        rows.append([x - node[0] * step, velocity])
    return _ordered(rows)


@onnx_op(f"{_DOMAIN}.Adam")
def _adam(node: OnnxNode) -> list[RelayExpr]:
    rows = []
    for x, gradient, first, second in _grouped(node, 2):
        one, zero = scalar_like(1.0, x), scalar_like(0.0, x)
        alpha, beta = _like(node, "alpha", 0.9, x), _like(node, "beta", 0.999, x)
        g = _like(node, "norm_coefficient", 0.0, x) * x + gradient
        first = alpha * first + (one - alpha) * g
        second = beta * second + (one - beta) * g * g
        count = node[1].astype(node.dtype(2))
        adjusted = node[0] * _op.sqrt(one - _op.power(beta, count)) / (
            one - _op.power(alpha, count)
        )  # fmt: skip
        rate = _op.where(_op.greater(count, zero), adjusted, node[0])
        new = x - rate * first / (_op.sqrt(second) + _like(node, "epsilon", 1e-6, x))
        new = (one - _like(node, "norm_coefficient_post", 0.0, x)) * new
        rows.append([new, first, second])
    return _ordered(rows)
