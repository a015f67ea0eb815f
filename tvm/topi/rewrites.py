"""Rewrites of calls that users register by target, asked before an operator's own.

    @topi.nn.conv2d_alter_layout.register("cpu")
    def blocked(attrs, inputs, tinfos, out_type): ...

Each gives a new call, or None to leave the call to what the operator says of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.target import Target
from tvm.target.generic_func import GenericFunc, generic_func


def _legalization(name: str) -> Any:
    def rewrite(attrs: Any, inputs: Any, types: Any) -> None:
        """From attributes, arguments and types (the result's last) to a call or None."""

    return _named(rewrite, name)


def _alteration(name: str) -> Any:
    def rewrite(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> None:
        """From attributes, arguments, their types and the result's to a call or None."""

    return _named(rewrite, name)


def _named(rewrite: Callable[..., None], name: str) -> Any:
    rewrite.__name__ = rewrite.__qualname__ = name
    return generic_func(rewrite)


erf_legalize = _legalization("erf_legalize")
take_legalize = _legalization("take_legalize")
batch_matmul_legalize = _legalization("batch_matmul_legalize")
bias_add_legalize = _legalization("bias_add_legalize")
bitserial_conv2d_legalize = _legalization("bitserial_conv2d_legalize")
conv2d_legalize = _legalization("conv2d_legalize")
conv2d_transpose_legalize = _legalization("conv2d_transpose_legalize")
conv3d_transpose_legalize = _legalization("conv3d_transpose_legalize")
dense_legalize = _legalization("dense_legalize")
matmul_legalize = _legalization("matmul_legalize")

add_alter_layout = _alteration("add_alter_layout")
conv2d_alter_layout = _alteration("conv2d_alter_layout")
conv2d_transpose_alter_layout = _alteration("conv2d_transpose_alter_layout")
conv3d_alter_layout = _alteration("conv3d_alter_layout")
dense_alter_layout = _alteration("dense_alter_layout")
qnn_conv2d_alter_layout = _alteration("qnn_conv2d_alter_layout")
qnn_dense_alter_layout = _alteration("qnn_dense_alter_layout")
qnn_requantize_alter_layout = _alteration("qnn_requantize_alter_layout")
sparse_dense_alter_layout = _alteration("sparse_dense_alter_layout")

LEGALIZATIONS: Mapping[str, Any] = {
    "erf": erf_legalize,
    "take": take_legalize,
    "nn.batch_matmul": batch_matmul_legalize,
    "nn.bias_add": bias_add_legalize,
    "nn.bitserial_conv2d": bitserial_conv2d_legalize,
    "nn.conv2d": conv2d_legalize,
    "nn.conv2d_transpose": conv2d_transpose_legalize,
    "nn.conv3d_transpose": conv3d_transpose_legalize,
    "nn.dense": dense_legalize,
    "nn.matmul": matmul_legalize,
}
ALTERATIONS: Mapping[str, Any] = {
    "add": add_alter_layout,
    "nn.conv2d": conv2d_alter_layout,
    "nn.conv2d_transpose": conv2d_transpose_alter_layout,
    "nn.conv3d": conv3d_alter_layout,
    "nn.dense": dense_alter_layout,
    "nn.sparse_dense": sparse_dense_alter_layout,
    "qnn.conv2d": qnn_conv2d_alter_layout,
    "qnn.dense": qnn_dense_alter_layout,
    "qnn.requantize": qnn_requantize_alter_layout,
}


def users_rewrite(rewrites: Mapping[str, Any], name: str) -> Callable[..., Any] | None:
    """What users registered for an operator and the current target."""
    asked = rewrites.get(name)
    if asked is None or not asked.dispatch_dict:
        return None
    generic: GenericFunc[Any] = asked.generic_func_node
    found = generic.choose(Target.current())
    return None if found is generic.default else found


__all__ = sorted(
    [function.__name__ for function in (*LEGALIZATIONS.values(), *ALTERATIONS.values())]
)
