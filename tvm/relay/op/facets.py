"""Parts of operators' records as functions, under the names of the classic release's files.

relay.op._tensor_grad.exp_grad      the gradient of exp:   (call, gradient) -> gradients of arguments
relay.op.nn._nn.compute_lrn         its tensors:           (attrs, inputs, out_type) -> tensors
relay.op.nn._nn.legalize_conv2d     what it is replaced by before layouts are chosen
relay.op._transform.take_shape_func its shape function
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm.ir.op import Op, has_op

_FACETS = (
    (r"(?P<op>\w+)_grad", "gradient"),
    (r"compute_(?P<op>\w+)|(?P<op2>\w+)_compute", "compute"),
    (r"(?P<op>\w+)_(?:shape_)?func", "shape_func"),
    (r"legalize_(?P<op>\w+)", "legalize"),
    (r"alter_op_layout_(?P<op>\w+)", "alter_layout"),
    (r"convert_(?P<op>\w+)", "convert"),
)
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


def facet_reader(module: str, prefixes: Sequence[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose functions are facets of operators.

    Parameters
    ----------
    module : its name.
    prefixes : of the operators' names, such as `nn.`, in the order in which they are tried.
    """

    def read(name: str) -> Any:
        for pattern, facet in _FACETS:
            match = re.fullmatch(pattern, name)
            if match is None:
                continue
            short = next(group for group in match.groups() if group is not None)
            for op in _operators_named(short, prefixes):
                if (found := _facet(op, facet)) is not None:
                    return found
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return read


def operator_named(short: str, prefixes: Sequence[str]) -> Op | None:
    """The operator that classic functions call by a short name: `dense`, `nms`."""
    return next(_operators_named(short, prefixes), None)


def _operators_named(short: str, prefixes: Sequence[str]) -> Iterator[Op]:
    names = (_NAMES.get(short, short), *[prefix + short for prefix in prefixes])
    return (Op.get(name) for name in names if has_op(name))


def _facet(op: Op, facet: str) -> Any:
    if facet == "convert":
        return op.get_attr("FTVMConvertOpLayout")
    if facet == "legalize":
        return op.legalize or op.qnn_legalize
    return getattr(op, facet)
