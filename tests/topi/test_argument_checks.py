"""Arguments that topi cannot work with: each call names what it requires and what it found."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay, te, topi

X = te.placeholder((2, 3), name="x")
IMAGE, BATCH = te.placeholder((1, 4, 6, 6)), te.placeholder((2, 3, 4))
STRANGERS = {
    "None": None,
    "3": 3,
    "'a'": "a",
    "a numpy.ndarray": np.zeros((2, 3), "float32"),
    "a runtime.NDArray": tvm.nd.array(np.zeros((2, 3), "float32")),
    "a relay.Var": relay.var("x", shape=(2, 3)),
    "a te.Tensor": [X],
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "topi.exp": topi.exp,
    "topi.sum": topi.sum,
    "topi.reshape": lambda x: topi.reshape(x, (6,)),
    "topi.take": lambda x: topi.take(X, x),
    "topi.einsum": lambda x: topi.einsum("ij,jk", X, x),
    "topi.nn.softmax": topi.nn.softmax,
    "topi.nn.dense": lambda x: topi.nn.dense(X, x),
    "topi.nn.batch_norm": lambda x: topi.nn.batch_norm(X, x, X, X, X),
    "topi.image.resize2d": lambda x: topi.image.resize2d(x, None, (2, 2)),
    "topi.vision.get_valid_counts": topi.vision.get_valid_counts,
    "topi.vision.rcnn.roi_pool_nchw": lambda x: topi.vision.rcnn.roi_pool_nchw(x, X, 2, 1.0),
    "topi.x86.conv2d_nchw": lambda x: topi.x86.conv2d_nchw(x, X, 1, 0, 1),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("found", STRANGERS)
def test_what_is_no_tensor_is_named(name: str, found: str) -> None:
    stranger = STRANGERS[found]
    described = r"\[float32\(2, 3\)\]" if isinstance(stranger, list) else found
    with pytest.raises(TypeError, match=rf"^{name} requires a (list of )?te.Tensor for \w+, got") as info:  # fmt: skip
        CALLS[name](stranger)
    info.match(described)


@pytest.mark.parametrize("schedule", [topi.generic.schedule_dense, topi.x86.schedule_reduce])
@pytest.mark.parametrize("outs", [None, "a", [1], np.zeros(3)])
def test_schedules_require_tensors(schedule: Any, outs: Any) -> None:
    with pytest.raises(TypeError, match=r"requires a te.Tensor or a list of te.Tensor for outs"):
        schedule(outs)


@pytest.mark.parametrize("stranger", [None, "a", np.zeros((2, 3)), [X]])
def test_operators_of_two_tensors_require_numbers(stranger: Any) -> None:
    for pair in ((X, stranger), (stranger, X)):
        with pytest.raises(TypeError, match="topi.add requires a te.Tensor or PrimExpr for [lr]hs"):
            topi.add(*pair)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: topi.nn.conv2d_nchw(X, X, 1, 1, 1), "topi.nn.conv2d_nchw"),
        (lambda: topi.nn.pool2d(X, [2], [2], [1], [0], "max"), "topi.nn.pool2d"),
        (lambda: topi.layout_transform(X, "NCHW", "NHWC"), "topi.layout_transform"),
    ],
)
def test_shapes_that_do_not_suit_are_told(call: Callable[[], Any], name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name} does not suit its arguments: \w+=float32\(2, 3\)"):  # fmt: skip
        call()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: topi.nn.softmax(X, 5), "axis 5 is out of range for 2 dimensions"),
        (lambda: topi.split(X, [1], axis=-3), "axis -3 is out of range"),
        (lambda: topi.squeeze(X, 1), r"squeeze requires axes of extent 1, got \(2, 3\) and axis 1"),
        (lambda: topi.transpose(X, (0, 0)), r"transpose requires each of 2 axes once, got \(0, 0\)"),
        (lambda: topi.reshape(X, (7,)), r"as many elements as \(2, 3\), got \(7,\)"),
        (lambda: topi.nn.conv2d_nchw(IMAGE, te.placeholder((8, 5, 3, 3)), 1, 1, 1), "data of the kernel's channels, got 4 and 5"),
        (lambda: topi.nn.group_conv2d_nchw(IMAGE, te.placeholder((8, 4, 3, 3)), 1, 1, 1, 2), "a convolution of 2 groups requires"),
        (lambda: topi.matmul(X, X), "a product of matrices requires equal inner extents, got 3 and 2"),
        (lambda: topi.nn.dense(X, X, te.placeholder((3,))), "a bias for each unit, got 3 and 2"),
        (lambda: topi.nn.batch_matmul(BATCH, te.placeholder((2, 5, 3))), "batch_matmul requires equal inner extents, got 4 and 3"),
        (lambda: topi.nn.pool2d(IMAGE, [2, 2], [1, 1], [1, 1], [0] * 4, "mean"), "a pool_type of max or avg, got 'mean'"),
        (lambda: topi.nn.adaptive_pool(IMAGE, (1, 1), "sum"), "a pool_type of max or avg, got 'sum'"),
        (lambda: topi.broadcast_to(X, (3, 5)), "axes of that extent or of 1, got 3 and 5"),
        (lambda: topi.take(X, X, 0, mode="nearest"), "a mode of clip, wrap or fast, got 'nearest'"),
        (lambda: topi.nn.depth_to_space(IMAGE, 3), "an extent that 9 divides, got 4"),
        (lambda: topi.nn.space_to_depth(IMAGE, 4), "an extent that 4 divides, got 6"),
        (lambda: topi.nn.depth_to_space(IMAGE, 2, mode="ABC"), "a mode of DCR or CRD, got 'ABC'"),
        (lambda: topi.nn.lstm(BATCH, te.placeholder((8, 5)), te.placeholder((8, 2))), "inputs of the width of Wi, got 4 and 5"),
        (lambda: topi.concatenate([]), "concatenate requires at least one tensor"),
        (lambda: topi.concatenate([X, topi.transpose(X)], 0), "equal shapes but for axis 0"),
        (lambda: topi.stack([X, topi.sum(X)], 0), r"stack requires equal shapes, got \(2, 3\) and \(\)"),
    ],
)  # fmt: skip
def test_attributes_that_do_not_fit_are_told(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()


def test_errors_of_a_callers_own_function_pass() -> None:
    def activation(value: Any) -> Any:
        return value.nonsense

    sequence, weight = te.placeholder((2, 1, 3)), te.placeholder((12, 3))
    with pytest.raises(AttributeError, match="nonsense"):
        topi.nn.lstm(sequence, weight, weight, f_act=activation)


def test_functions_are_pickled_by_the_name_they_are_called_by() -> None:
    for function in (topi.exp, topi.nn.dense, topi.x86.schedule_injective):
        assert pickle.loads(pickle.dumps(function)) is function
