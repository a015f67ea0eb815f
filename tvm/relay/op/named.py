"""Operators by the short names that classic functions have for them: `dense`, `nms`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tvm.ir.op import Op, has_op

# where one function stands for several operators, or an operator has another name
_NAMES = {
    "adv_index": "adv_index", "avg_pool2d": "nn.avg_pool2d", "concat": "concatenate",
    "conv": "nn.conv2d", "group_conv1d": "nn.conv1d", "conv_transpose": "nn.conv2d_transpose", "elemwise": "exp",
    "expand_dim": "expand_dims", "global_pool2d": "nn.global_max_pool2d",
    "image_resize1d": "image.resize1d", "image_resize2d": "image.resize2d",
    "nms": "vision.non_max_suppression", "no_data_full": "zeros", "pool2d": "nn.max_pool2d",
    "reduce": "sum", "regular_nms": "vision.regular_non_max_suppression",
    "all_class_nms": "vision.all_class_non_max_suppression", "dense_pack": "nn.contrib_dense_pack",
    "broadcast": "add", "reverse_reshape": "contrib_reverse_reshape", "dyn_zeros": "dyn.zeros",
    "dyn_ones": "dyn.ones", "dyn_reshape": "dyn.reshape",
}  # fmt: skip


def operator_named(short: str, prefixes: Sequence[str]) -> Op | None:
    """The operator that classic functions call by a short name."""
    return next(operators_named(short, prefixes), None)


def operators_named(short: str, prefixes: Sequence[str]) -> Iterator[Op]:
    """All operators of the short name, also behind these prefixes, in the order of them."""
    names = (_NAMES.get(short, short), *[prefix + short for prefix in prefixes])
    return (Op.get(name) for name in names if has_op(name))
