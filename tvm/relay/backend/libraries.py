"""Products of matrices, and convolutions, by the library that a target names: `llvm -libs=dnnl`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te
from tvm.ir.attrs import Attrs
from tvm.ir.op import Op
from tvm.relay.op.registry import ops
from tvm.relay.op.strategy import OpImplementation
from tvm.target import Target
from tvm.topi.nn.conv2d.library import dnnl_conv2d
from tvm.topi.nn.dense import library

_DTYPES = {
    "cblas": ("float32", "float64"),
    "mkl": ("float32", "float64"),
    "dnnl": ("float32",),
}
_DENSE = {
    "cblas": library.dense_cblas,
    "mkl": library.dense_mkl,
    "dnnl": library.dense_dnnl,
}
_MATMUL = {
    "cblas": library.matmul_cblas,
    "mkl": library.matmul_mkl,
    "dnnl": library.matmul_dnnl,
}
_BATCH_MATMUL = {"cblas": library.batch_matmul_cblas, "mkl": library.batch_matmul_mkl}


def product_library(target: Target) -> str | None:
    """The library that computes a target's products."""
    return next((name for name in target.libs if name in _DTYPES), None)


def by_library(
    op: Op, attrs: Attrs, inputs: Sequence[te.Tensor], target: Target
) -> tuple[OpImplementation, list[te.Tensor]] | None:
    """The implementation of an operator by the target's library, and its results."""
    if op is ops.nn.conv2d:
        return _convolution(attrs, inputs, target)
    is_product = any(
        [op is product for product in (ops.nn.dense, ops.nn.matmul, ops.nn.batch_matmul)]
    )
    name = product_library(target) if is_product else None
    if name is None or any([str(t.dtype) not in _DTYPES[name] for t in inputs]):
        return None
    ranks = 3 if op is ops.nn.batch_matmul else 2
    if any([len(t.shape) != ranks for t in inputs]) or inputs[0].dtype != inputs[1].dtype:
        return None
    compute = _compute(op, name, attrs)
    if compute is None:
        return None

    return _implementation(f"{op.name}_{name}.x86", compute), [compute(*inputs)]


def _implementation(name: str, compute: Callable[..., te.Tensor]) -> OpImplementation:
    def schedule(_: Attrs, outs: Sequence[te.Tensor], __: Target) -> te.Schedule:
        return library.schedule_product(outs)

    def run(_: Attrs, tensors: Sequence[te.Tensor], __: Any) -> list[te.Tensor]:
        return [compute(*tensors)]

    return OpImplementation(run, schedule, name)


_CONVOLUTION_LAYOUTS = {("NCHW", "OIHW"): False, ("NHWC", "HWIO"): True}  # channels last?


def _convolution(
    attrs: Any, inputs: Sequence[te.Tensor], target: Target
) -> tuple[OpImplementation, list[te.Tensor]] | None:
    """A convolution by oneDNN: float32 in plain layouts."""
    layouts = (attrs.data_layout, attrs.kernel_layout)
    fits = layouts in _CONVOLUTION_LAYOUTS and attrs.out_layout in ("", attrs.data_layout)
    fits = fits and attrs.out_dtype in ("", "float32")
    if "dnnl" not in target.libs or not fits or any([t.dtype != "float32" for t in inputs]):
        return None

    def compute(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
        steps = (attrs.strides, attrs.padding, attrs.dilation)
        is_last = _CONVOLUTION_LAYOUTS[layouts]
        return dnnl_conv2d(data, weight, *steps, attrs.groups, is_last)

    return _implementation("nn.conv2d_dnnl.x86", compute), [compute(*inputs)]


def _compute(op: Op, name: str, attrs: Attrs) -> Callable[..., te.Tensor] | None:
    out_dtype = attrs.out_dtype
    if op is ops.nn.dense:
        return lambda a, b: _DENSE[name](a, b, None, out_dtype)
    if op is ops.nn.batch_matmul and name not in _BATCH_MATMUL:
        return None
    flags = bool(attrs.transpose_a), bool(attrs.transpose_b)
    if op is ops.nn.matmul:
        return lambda a, b: _MATMUL[name](a, b, None, out_dtype, *flags)
    return lambda a, b: _BATCH_MATMUL[name](a, b, None, out_dtype, *flags)
