"""Parts of operators' records as functions, under the names of the classic release's files.

relay.op._tensor_grad.exp_grad      the gradient of exp:   (call, gradient) -> gradients of arguments
relay.op.nn._nn.compute_lrn         its tensors:           (attrs, inputs, out_type) -> tensors
relay.op.nn._nn.legalize_conv2d     what it is replaced by before layouts are chosen
relay.op._transform.take_shape_func its shape function
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.op import Op
from tvm.relay.op.named import operators_named

_FACETS = (
    (r"(?P<op>\w+)_grad", "gradient"),
    (r"compute_(?P<op>\w+)|(?P<op2>\w+)_compute", "compute"),
    (r"(?P<op>\w+)_(?:shape_)?func", "shape_func"),
    (r"legalize_(?P<op>\w+)", "legalize"),
    (r"alter_op_layout_(?P<op>\w+)", "alter_layout"),
    (r"convert_(?P<op>\w+)", "convert"),
)


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
            for op in operators_named(short, prefixes):
                if (found := _facet(op, facet)) is not None:
                    return found
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return read


def _facet(op: Op, facet: str) -> Any:
    if facet == "convert":
        return op.get_attr("FTVMConvertOpLayout")
    if facet == "legalize":
        return op.legalize or op.qnn_legalize
    return getattr(op, facet)
