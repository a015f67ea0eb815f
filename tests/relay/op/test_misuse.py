"""Wrong arguments of operators: one error that names the operator, the argument and what is wanted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tvm import relay
from tvm.error import TVMError
from tvm.relay.analysis import infer_type_of

X = relay.var("x", shape=(2, 4, 6, 6))
FLOATS = relay.var("f", shape=(4,))

MISUSES: list[tuple[Callable[[], object], str]] = [
    (lambda: relay.nn.prelu(X, FLOATS, axis="C"), "prelu requires an integer for axis, got 'C'"),
    (lambda: relay.nn.softmax(X, axis=1.5), "softmax requires an integer for axis, got 1.5"),
    (lambda: relay.broadcast_to(X, "NCHW"), "requires integers for shape, got 'NCHW'"),
    (lambda: relay.nn.l2_normalize(X, [1]), r"requires a number for eps, got \[1\]"),
    (lambda: relay.nn.pad(X, None), "pad requires a sequence of pairs for pad_width, got None"),
    (
        lambda: relay.nn.pad(X, [(1, 1)] * 4, "edge"),
        "pad requires a number for pad_value, got 'edge'",
    ),
    (lambda: relay.nn.pad(X, [(1, 2, 3)]), "requires a pair of widths for each axis for pad_width"),
    (lambda: relay.nn.max_pool2d(X, layout=["N"]), "a layout such as NCHW or NCHW16c is required"),
    (lambda: relay.nn.max_pool2d(X, strides=0), "requires positive strides"),
    (lambda: relay.nn.max_pool2d(X, (1, 2, 3)), "max_pool2d requires 1 or 2 numbers for pool_size"),
    (lambda: relay.nn.avg_pool2d(X, padding=(1, 2, 3)), "requires 1, 2 or 4 numbers for padding"),
    (lambda: relay.nn.conv2d(X, X, strides=(1, 0)), "requires positive strides and dilation"),
    (lambda: relay.nn.adaptive_max_pool2d(X, ()), "requires an output_size of 2 numbers"),
    (lambda: relay.arange(relay.const(0), relay.const(3), relay.const(0)), "step other than 0"),
    (lambda: relay.arange(relay.const([1, 2])), "arange requires a tensor of rank 0 for stop"),
    (lambda: relay.arange(relay.const(np.inf)), "arange requires finite bounds"),
    (lambda: relay.concatenate(3, axis=0), "requires a sequence of tensors for data, got 3"),
    (lambda: relay.einsum(3, "ij"), "einsum requires a sequence of tensors for data, got 3"),
    (lambda: relay.cumsum(X, axis="x"), "cumsum requires an integer for axis"),
    (lambda: relay.random.threefry_key(-1), r"requires an integer in \[0, 2\*\*256\) for seed"),
    (
        lambda: relay.nn.layer_norm(relay.cast(X, "float16"), *[relay.var("w", shape=(6,))] * 2),
        "layer_norm requires gamma of the data's type float16, got float32",
    ),
    (lambda: relay.const(object()), "a constant requires numbers"),
    (lambda: relay.cast(X, (0, 0)), "dtype requires a name such as float32"),
]


@pytest.mark.parametrize(("call", "message"), MISUSES, ids=[m for _, m in MISUSES])
def test_wrong_arguments_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises((TVMError, TypeError, ValueError), match=message):
        infer_type_of(call())
