"""PyTorch's random numbers: a counter-based generator with a key of its own for each node.

The numbers are those of this generator, not PyTorch's, and the same in each run.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.composites import prelu, sampled

from .registry import (
    as_dtype,
    as_ints,
    as_number,
    dtype_or,
    promoted,
    torch_dtype,
    torch_op,
    torch_ops,
)

_SEEDS = itertools.count(1)


def _key() -> RelayExpr:
    return _op.random.threefry_key(next(_SEEDS))


def _uniform(shape: Any, dtype: str, low: float = 0.0, high: float = 1.0) -> RelayExpr:
    """Numbers of [low, high)."""
    return sampled(_op.random.uniform, _key(), as_ints(list(shape)), dtype, low, high)


def _normal(shape: Any, dtype: str) -> RelayExpr:
    return sampled(_op.random.normal, _key(), as_ints(list(shape)), dtype)


def _integers(shape: Any, low: Any, high: Any, dtype: str) -> RelayExpr:
    """Integers of [low, high)."""
    first, end = as_number(low), as_number(high)
    numbers = _op.floor(_uniform(shape, "float64", first, end))
    return as_dtype(_op.minimum(numbers, constant(float(end - 1))), dtype)


@torch_op("bernoulli")
def _bernoulli(x: RelayExpr, p: Any = None, *_: Any) -> RelayExpr:
    """Ones with the probabilities of the tensor, or all with that given."""
    given = p is not None and not hasattr(p, "initial_seed")
    chance = as_dtype(as_number(p), "float32") if given else x
    numbers = _uniform(infer_shape(x), "float32")
    return as_dtype(_op.less(numbers, as_dtype(chance, "float32")), infer_dtype(x))


@torch_op("normal", "normal_functional")
def _normal_of(mean: Any, deviation: Any = 1.0, *_: Any) -> RelayExpr:
    """The shape is that of mean and deviation together."""
    centre, spread = promoted(mean, deviation)
    total = centre + spread
    return centre + spread * _normal(infer_shape(total), infer_dtype(total))


def _normal_like(shape: Any, mean: Any, deviation: Any, dtype: str) -> RelayExpr:
    centre, spread = [as_dtype(as_number(v), dtype) for v in (mean, deviation)]
    return centre + spread * _normal(shape, dtype)


def _open_uniform(x: RelayExpr) -> RelayExpr:
    """Numbers between 0 and 1, neither of them."""
    tiny = 2.0**-24
    return _op.clip(_uniform(infer_shape(x), infer_dtype(x)), tiny, 1 - tiny)


@torch_op("multinomial")
def _multinomial(
    probabilities: RelayExpr, count: Any, replacement: bool = False, *_: Any
) -> RelayExpr:
    """Indices by the ranks of exponential races without replacement, by thresholds with it."""
    shape = infer_shape(probabilities)
    number, axis = as_number(count), len(shape) - 1
    kind = infer_dtype(probabilities)
    if not replacement:
        race = _op.log(_open_uniform(probabilities)) / _op.maximum(
            probabilities, constant(1e-30, kind)
        )
        order = _op.argsort(race, axis, False, "int64")
        return _op.strided_slice(order, [0], [number], [1], [axis])
    total = _op.cumsum(probabilities, axis=axis)
    total_weight = _op.sum(probabilities, axis=[axis], keepdims=True)
    numbers = _uniform((*shape[:-1], number), kind) * total_weight
    passed = _op.less_equal(_op.expand_dims(total, axis), _op.expand_dims(numbers, axis + 1))
    index = _op.sum(_op.cast(passed, "int64"), axis=[axis + 1])
    return _op.minimum(index, constant(shape[axis] - 1, "int64"))


torch_ops({
    "rand": lambda shape, dtype=None, *_: _uniform(shape, torch_dtype(dtype)),
    "randn": lambda shape, dtype=None, *_: _normal(shape, torch_dtype(dtype)),
    "rand_like": lambda x, dtype=None, *_: _uniform(infer_shape(x), dtype_or(dtype, x)),
    "randn_like": lambda x, dtype=None, *_: _normal(infer_shape(x), dtype_or(dtype, x)),
    "randint": lambda high, shape, dtype=None, *_: _integers(
        shape, 0, high, torch_dtype(dtype, "int64")
    ),
    "randint.low": lambda low, high, shape, dtype=None, *_: _integers(
        shape, low, high, torch_dtype(dtype, "int64")
    ),
    "randint_like": lambda x, high, dtype=None, *_: _integers(
        infer_shape(x), 0, high, dtype_or(dtype, x)
    ),
    "randint_like.low_dtype": lambda x, low, high, dtype=None, *_: _integers(
        infer_shape(x), low, high, dtype_or(dtype, x)
    ),
    "uniform prims::uniform": lambda x, low=0.0, high=1.0, *_: _uniform(
        infer_shape(x), infer_dtype(x), float(as_number(low)), float(as_number(high))
    ),
    "normal.float_float": lambda mean, deviation, shape, generator=None, dtype=None, *_: (
        _normal_like(as_ints(shape), mean, deviation, torch_dtype(dtype))
    ),
    "normal_": lambda x, mean=0.0, deviation=1.0, *_: _normal_like(
        infer_shape(x), mean, deviation, infer_dtype(x)
    ),
    "randperm": lambda count, dtype=None, *_: as_dtype(
        _op.argsort(_uniform((as_number(count),), "float32"), 0, True, "int64"),
        torch_dtype(dtype, "int64"),
    ),
})  # fmt: skip


# ---- dropout


def keep_some(x: RelayExpr, p: float, shape: Any = None) -> RelayExpr:
    """A mask, 1 with the probability 1 - p."""
    warnings.warn(
        "dropout of a model in training mode draws random numbers; call model.eval() before tracing",
        stacklevel=2,
    )
    numbers = _uniform(infer_shape(x) if shape is None else shape, "float32")
    return as_dtype(_op.greater_equal(numbers, constant(p, "float32")), infer_dtype(x))


def _is_plain(p: Any, train: Any) -> bool:
    return not as_number(train) or as_number(p) == 0


def _by_channel(x: RelayExpr) -> list[int]:
    shape = infer_shape(x)
    return [*shape[:2], *[1] * (len(shape) - 2)]


@torch_op("dropout")
def dropout(x: RelayExpr, p: Any = 0.5, train: Any = False, shape: Any = None) -> RelayExpr:
    """The identity in inference; in training, zeros and what makes up for them."""
    if _is_plain(p, train):
        return x
    rate = float(as_number(p))
    if rate == 1:
        return _op.zeros_like(x)
    return x * keep_some(x, rate, shape) * constant(1 / (1 - rate), infer_dtype(x))


@torch_op("native_dropout")
def _native_dropout(x: RelayExpr, p: Any, train: Any) -> list[RelayExpr]:
    if _is_plain(p, train):
        return [x, _op.ones_like(as_dtype(x, "bool"))]
    rate = float(as_number(p))
    kept = keep_some(x, rate)
    factor = 1 / (1 - rate) if rate < 1 else 0.0
    return [x * kept * constant(factor, infer_dtype(x)), as_dtype(kept, "bool")]


@torch_op("rrelu")
def _rrelu(
    x: RelayExpr, lower: Any = 0.125, upper: Any = 1 / 3, train: Any = False, *_: Any
) -> RelayExpr:
    """Negative numbers times the mean slope, or one sampled for each in training."""
    low, high, kind = float(as_number(lower)), float(as_number(upper)), infer_dtype(x)
    slope = constant((low + high) / 2, kind)
    if as_number(train):
        slope = _uniform(infer_shape(x), kind, low, high)
    return prelu(x, slope)


torch_ops({"feature_dropout": lambda x, p=0.5, train=False: dropout(x, p, train, _by_channel(x))})
