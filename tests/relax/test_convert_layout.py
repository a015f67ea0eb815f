"""Converted programs compute what they did before, and stay in the new layout as far as rules tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.relax import op

WANTED = {"relax.nn.conv2d": ["NHWC", "OHWI"]}


def _of_rank_one(value: float) -> Any:
    return relax.const(np.full(4, value, "float32"))


# after a convolution to (1, 4, 6, 5): the function, and how many permutations follow the convolution
ROWS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "relu": (op.nn.relu, 1),
    "scalar": (lambda y: op.multiply(relax.const(2.0, "float32"), y), 1),
    "added": (lambda y: op.add(y, op.exp(y)), 1),
    "channels": (lambda y: op.add(y, relax.const(np.ones((1, 4, 1, 1), "float32"))), 2),
    "rows": (lambda y: op.add(y, relax.const(np.arange(5, dtype="float32"))), 1),
    "sum": (lambda y: op.sum(y, [1, -1]), 0),
    "kept": (lambda y: op.mean(y, [1], keepdims=True), 1),
    "all": (op.max, 0),
    "argmax": (lambda y: op.argmax(y, 1), 0),
    "cumsum": (lambda y: op.cumsum(y, 2), 1),
    "softmax": (lambda y: op.nn.softmax(y, 1), 1),
    "permuted": (lambda y: op.permute_dims(y, [0, 3, 2, 1]), 1),
    "expanded": (lambda y: op.sum(op.expand_dims(y, [1, -1]), 3), 1),
    "squeezed": (lambda y: op.squeeze(y, [0]), 1),
    "ones_squeezed": (lambda y: op.squeeze(y), 1),
    "concat": (lambda y: op.concat([op.exp(y), y], 1), 1),
    "split": (lambda y: op.concat(op.split(y, [1, 3], 1), 1), 1),
    "sliced": (lambda y: op.strided_slice(y, [1, 3], [1, 0], [4, 5], [2, 2]), 1),
    "padded": (lambda y: op.nn.pad(y, [0, 0, 1, 2, 0, 3, 4, 0]), 1),
    "pooled": (lambda y: op.nn.max_pool2d(y, (2, 2), strides=(2, 1), padding=1), 1),
    "averaged": (lambda y: op.nn.adaptive_avg_pool2d(y, (2, 2)), 1),
    "resized": (lambda y: op.image.resize2d(y, (3, 7), layout="NCHW"), 1),
    "flipped": (lambda y: op.flip(y, 3), 1),
    "repeated": (lambda y: op.repeat(y, 2, 1), 1),
    "reshaped": (lambda y: op.reshape(y, (4, 30)), 1),
    "group_norm": (
        lambda y: op.nn.group_norm(y, _of_rank_one(2), _of_rank_one(3), 2, 1, [2, 3]), 1
    ),
    "batch_norm": (
        lambda y: op.nn.batch_norm(y, *[_of_rank_one(v) for v in (2, 3, 0.1, 0.5)], axis=1)[0], 1
    ),
    "layer_norm": (
        lambda y: op.nn.layer_norm(
            y, *[relax.const(np.arange(30, dtype="float32").reshape(6, 5))] * 2, axes=[-2, -1]
        ),
        1,
    ),
}  # fmt: skip


def _module() -> tvm.IRModule:
    builder = relax.BlockBuilder()
    for name, (function, _) in ROWS.items():
        x = relax.Var("x", relax.TensorStructInfo((1, 3, 8, 7), "float32"))
        w = relax.Var("w", relax.TensorStructInfo((4, 3, 3, 3), "float32"))
        with builder.function(name, [x, w]):
            with builder.dataflow():
                y = builder.emit(op.nn.conv2d(x, w))
                result = builder.emit_output(function(y))
            builder.emit_func_output(result)
    return builder.get()


def test_converted_operators_compute_the_same() -> None:
    mod = _module()
    converted = relax.transform.ConvertLayout(WANTED)(mod)
    assert relax.analysis.well_formed(converted)
    x = tvm.nd.array(np.random.default_rng(0).normal(size=(1, 3, 8, 7)).astype("float32"))
    w = tvm.nd.array(np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype("float32"))
    machines = [relax.VirtualMachine(relax.build(m, "llvm"), tvm.cpu()) for m in (mod, converted)]
    for name, (_, count) in ROWS.items():
        text = str(converted[name])
        assert text.count("R.permute_dims") - 2 == count, text
        before, after = [vm[name](x, w).numpy() for vm in machines]
        np.testing.assert_allclose(after, before, 1e-4, 1e-4, err_msg=name)


def test_convolutions_without_wishes_take_the_layout_of_their_data() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 6, 6), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((3, 3, 3, 3), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = builder.emit(op.image.resize2d(x, (6, 6), layout="NCHW"))
            z = builder.emit_output(op.nn.conv2d(y, w))
        builder.emit_func_output(z)
    mod = relax.transform.ConvertLayout({"relax.image.resize2d": ["NHWC"]})(builder.get())
    attrs = mod["main"].body.blocks[0].bindings[2].value.attrs
    assert (attrs.data_layout, attrs.kernel_layout, attrs.out_layout) == ("NHWC", "OIHW", "NHWC")


def test_functions_without_wishes_stay_the_same() -> None:
    mod = _module()
    assert relax.transform.ConvertLayout({})(mod)["relu"] is mod["relu"]


def test_permutations_of_equal_extents_are_converted() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3, 3, 5, 5), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((3, 3, 3, 3), "float32"))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            y = builder.emit(op.nn.conv2d(x, w))
            z = builder.emit_output(op.permute_dims(y, [1, 0, 2, 3]))
        builder.emit_func_output(z)
    mod = relax.transform.ConvertLayout(WANTED)(builder.get())
    assert mod["main"].body.blocks[0].bindings[-1].value.attrs.axes == (3, 0, 1, 2)


def test_layouts_have_the_axes_of_the_operator() -> None:
    with pytest.raises(TVMError, match="requires layouts with the axes of NCHW, got NCHW4c"):
        relax.transform.ConvertLayout({"relax.nn.conv2d": ["NCHW4c", "OIHW"]})(_module())
    with pytest.raises(TVMError, match=r"requires operators of relax, got relax.nn.conv2"):
        relax.transform.ConvertLayout({"relax.nn.conv2": ["NHWC", "OHWI"]})
