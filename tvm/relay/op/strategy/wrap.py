"""Functions of tensors as the computes and schedules of implementations.

@relay.op.register_strategy("nn.dense")
def strategy(attrs, inputs, out_type, target):
    found = relay.op.OpStrategy()
    found.add_implementation(
        wrap_compute_dense(my_dense),           # my_dense(data, weight, bias, out_dtype)
        wrap_topi_schedule(schedule_my_dense),  # schedule_my_dense(outs)
        name="dense.mine",
    )
    return found

Each wrapper knows in which order the functions of its kind take an operator's attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.type import TupleType, Type
from tvm.target import Target

from ..layout_shapes import axes_extents
from .base import FCompute, FSchedule

TopiCompute: TypeAlias = Callable[..., Any]
Wrapper: TypeAlias = Callable[[TopiCompute], FCompute]


def wrap_topi_schedule(topi_schedule: Callable[..., te.Schedule]) -> FSchedule:
    """A schedule of output tensors alone."""

    def schedule(attrs: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
        with target:
            return topi_schedule(outs)

    return schedule


def wrap_topi_compute(topi_compute: TopiCompute) -> FCompute:
    """A function of the inputs alone."""
    return _by_position()(topi_compute)


def naive_schedule(_: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
    """The plain loops."""
    del target
    return te.create_schedule([out.op for out in outs])


def get_conv2d_in_channels(data_shape: Sequence[Any], data_layout: str) -> Any:
    """The channels of a convolution's data in any layout, blocks counted."""
    return axes_extents(tuple(data_shape), data_layout, "conv2d")["C"]


def get_conv2d_out_channels(kernel_shape: Sequence[Any], kernel_layout: str) -> Any:
    """The output channels of a convolution's weights in any layout, blocks counted."""
    return axes_extents(tuple(kernel_shape), kernel_layout, "conv2d")["O"]


def is_depthwise_conv2d(
    data_shape: Sequence[Any],
    data_layout: str,
    kernel_shape: Sequence[Any],
    kernel_layout: str,
    groups: int,
) -> bool:
    """Whether each channel is convolved for itself, with one weight."""
    channels = get_conv2d_in_channels(data_shape, data_layout)
    out_channels = get_conv2d_out_channels(kernel_shape, kernel_layout)
    return bool(channels == out_channels == groups)


def copy_if_identical(tensor_a: te.Tensor, tensor_b: te.Tensor) -> te.Tensor:
    """The second tensor, or a copy of it if it is the first: kernels take each argument once."""
    return topi.identity(tensor_b) if tensor_a.same_as(tensor_b) else tensor_b


def _by_position(*names: str) -> Wrapper:
    """The inputs, then these attributes."""

    def wrap(topi_compute: TopiCompute) -> FCompute:
        def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
            values = [_attribute(attrs, name, out_type) for name in names]
            return _listed(topi_compute(*inputs, *values))

        return compute

    return wrap


def _by_name(*names: str) -> Wrapper:
    """The inputs, then these attributes by their names."""

    def wrap(topi_compute: TopiCompute) -> FCompute:
        def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
            values = {name: _attribute(attrs, name, out_type) for name in names}
            return _listed(topi_compute(*inputs, **values))

        return compute

    return wrap


def _attribute(attrs: Any, name: str, out_type: Any) -> Any:
    """The value of an attribute; a dtype that is left open is the result's."""
    value = getattr(attrs, name)
    if name in ("out_dtype", "dtype") and not value:
        first: Any = out_type.fields[0] if isinstance(out_type, TupleType) else out_type
        return first.dtype
    return value


def _listed(found: Any) -> list[te.Tensor]:
    return [found] if isinstance(found, te.Tensor) else list(found)


_STEPS = ("strides", "padding", "dilation")
wrap_compute_softmax = _by_position("axis")
wrap_compute_deformable_conv2d = _by_position(*_STEPS, "deformable_groups", "groups", "out_dtype")
wrap_compute_conv1d = _by_position(*_STEPS, "out_dtype")
wrap_compute_group_conv1d = _by_position(*_STEPS, "groups", "out_dtype")
wrap_compute_batch_norm = _by_position("axis", "epsilon", "center", "scale")
wrap_compute_sparse_dense = _by_position("sparse_lhs")
wrap_compute_sparse_add = _by_position()
wrap_compute_sparse_conv2d = _by_position("layout", "kernel_size")
wrap_compute_sort = _by_name("axis", "is_ascend")
wrap_compute_argsort = _by_name("axis", "is_ascend", "dtype")
wrap_compute_searchsorted = _by_position("right", "dtype")
wrap_compute_multibox_prior = _by_position("sizes", "ratios", "steps", "offsets", "clip")
wrap_compute_multibox_transform_loc = _by_position("clip", "threshold", "variances")
wrap_compute_get_valid_counts = _by_position("id_index", "score_index")
wrap_compute_nms = _by_position(
    "force_suppress", "top_k", "coord_start", "score_index", "id_index", "return_indices",
    "invalid_to_bottom",
)  # fmt: skip
wrap_compute_all_class_nms = _by_position("output_format")
wrap_compute_regular_nms = _by_name(
    "max_detections_per_class", "max_detections", "num_classes", "iou_threshold", "score_threshold"
)
wrap_compute_roi_align = _by_name("pooled_size", "spatial_scale", "sample_ratio", "mode")
wrap_compute_dft = _by_position("inverse")
wrap_compute_trilu = _by_position("upper")
wrap_compute_proposal = _by_position(
    "scales", "ratios", "feature_stride", "threshold", "rpn_pre_nms_top_n", "rpn_post_nms_top_n",
    "rpn_min_size", "iou_loss",
)  # fmt: skip
wrap_compute_scatter_elements = _by_position("axis", "reduction")
wrap_compute_scatter_nd = _by_position("mode")
wrap_compute_bitserial_conv2d = _by_position(
    "strides", "padding", "activation_bits", "weight_bits", "pack_dtype", "out_dtype", "unipolar"
)
wrap_compute_bitserial_dense = _by_position(
    "data_bits", "weight_bits", "pack_dtype", "out_dtype", "unipolar"
)
wrap_compute_correlation = _by_position(
    "kernel_size", "max_displacement", "stride1", "stride2", "padding", "is_multiply"
)
wrap_compute_threefry_generate = _by_position("out_shape")
wrap_compute_threefry_split = _by_position()
wrap_compute_uniform = _by_position("out_shape", "out_dtype")
wrap_compute_multinomial = _by_position("num_samples")
wrap_compute_scanop = _by_position("axis", "dtype", "exclusive")
wrap_compute_invert_permutation = _by_position()


def wrap_compute_sliding_window() -> FCompute:
    """The windows of a tensor."""
    return _by_position("axis", "window_shape", "strides")(topi.sliding_window)


def wrap_compute_conv2d(
    topi_compute: TopiCompute,
    *,
    need_data_layout: bool = False,
    need_kernel_layout: bool = False,
    need_out_layout: bool = False,
    has_groups: bool = False,
    need_auto_scheduler_layout: bool = False,
    need_meta_schedule_layout: bool = False,
) -> FCompute:
    """A convolution over two axes, of (data, kernel, strides, padding, dilation[, groups][, layouts], out_dtype).

    Parameters
    ----------
    topi_compute : callable
        Computes it.
    need_data_layout, need_kernel_layout, need_out_layout, has_groups : bool
        Which of the further attributes it takes, before the dtype.
    need_auto_scheduler_layout, need_meta_schedule_layout : bool
        Whether it takes the layout that a tuner chose, after the dtype.
    """
    flags = {
        "groups": has_groups,
        "data_layout": need_data_layout,
        "kernel_layout": need_kernel_layout,
        "out_layout": need_out_layout,
    }
    names = (*_STEPS, *[name for name, is_taken in flags.items() if is_taken], "out_dtype")
    return _tuned(topi_compute, names, need_auto_scheduler_layout, need_meta_schedule_layout)


def wrap_compute_conv3d(
    topi_compute: TopiCompute,
    need_layout: bool = False,
    need_auto_scheduler_layout: bool = False,
    need_meta_schedule_layout: bool = False,
) -> FCompute:
    """A convolution over three axes, of (data, kernel, strides, padding, dilation, groups[, layout], out_dtype)."""
    names = (*_STEPS, "groups", *(("data_layout",) if need_layout else ()), "out_dtype")
    return _tuned(topi_compute, names, need_auto_scheduler_layout, need_meta_schedule_layout)


def _tuned(
    topi_compute: TopiCompute, names: Sequence[str], by_scheduler: bool, by_meta_schedule: bool
) -> FCompute:
    """The inputs and attributes, then the layout that a tuner chose: none was chosen."""
    if by_scheduler or by_meta_schedule:
        return _by_position(*names)(lambda *args: topi_compute(*args, ""))
    return _by_position(*names)(topi_compute)


def wrap_compute_conv2d_transpose(
    topi_compute: TopiCompute, has_groups: bool = False, add_layout: bool = False
) -> FCompute:
    """A transposed convolution over two axes, of (data, kernel, strides, padding, out_dtype, output_padding[, groups][, layout])."""
    names = ["strides", "padding", "out_dtype", "output_padding"]
    names += ["groups"] * has_groups + ["data_layout"] * add_layout
    return _by_position(*names)(topi_compute)


def wrap_compute_conv3d_transpose(topi_compute: TopiCompute, has_groups: bool = False) -> FCompute:
    """The same over three axes."""
    return wrap_compute_conv2d_transpose(topi_compute, has_groups)


def wrap_compute_conv1d_transpose(topi_compute: TopiCompute, has_groups: bool = False) -> FCompute:
    """The same over one axis."""
    return wrap_compute_conv2d_transpose(topi_compute, has_groups)


def wrap_compute_dilation2d(topi_compute: TopiCompute, need_data_layout: bool = False) -> FCompute:
    """A dilation, of (data, kernel, strides, padding, dilations[, layout], out_dtype)."""
    layout = ("data_layout",) if need_data_layout else ()
    return _by_position("strides", "padding", "dilations", *layout, "out_dtype")(topi_compute)


def wrap_compute_matmul(
    topi_compute: TopiCompute,
    need_auto_scheduler_layout: bool = False,
    need_meta_schedule_layout: bool = False,
) -> FCompute:
    """A product, of (a, b, bias, out_dtype, transpose_a, transpose_b)."""
    names = ("out_dtype", "transpose_a", "transpose_b")
    without_bias = _without(topi_compute)
    return _tuned(without_bias, names, need_auto_scheduler_layout, need_meta_schedule_layout)


def wrap_compute_dense(
    topi_compute: TopiCompute,
    need_auto_scheduler_layout: bool = False,
    need_meta_schedule_layout: bool = False,
) -> FCompute:
    """A dense layer, of (data, weight, bias, out_dtype)."""
    without_bias = _without(topi_compute)
    return _tuned(
        without_bias, ("out_dtype",), need_auto_scheduler_layout, need_meta_schedule_layout
    )


def _without(topi_compute: TopiCompute) -> TopiCompute:
    """The function with None for its third argument, the bias."""
    return lambda a, b, *rest: topi_compute(a, b, None, *rest)


def wrap_compute_batch_matmul(
    topi_compute: TopiCompute,
    *,
    need_auto_scheduler_layout: bool = False,
    need_meta_schedule_layout: bool = False,
    need_out_dtype: bool = False,
) -> FCompute:
    """Products of batches, of (a, b, shape, out_dtype, transpose_a, transpose_b)."""

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        dtype = out_type.dtype if need_out_dtype else None
        rest = [""] * (need_auto_scheduler_layout or need_meta_schedule_layout)
        flags = (attrs.transpose_a, attrs.transpose_b)
        return _listed(topi_compute(*inputs, out_type.shape, dtype, *flags, *rest))

    return compute


def wrap_compute_topk(topi_compute: TopiCompute) -> FCompute:
    """The largest elements, of (data, k, axis, ret_type, is_ascend, dtype); k may be a tensor."""

    def compute(attrs: Any, inputs: Sequence[te.Tensor], _: Type) -> list[te.Tensor]:
        k = inputs[1] if len(inputs) > 1 else attrs.k
        rest = (attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype)
        return _listed(topi_compute(inputs[0], k, *rest))

    return compute


def wrap_compute_stft(topi_compute: TopiCompute) -> FCompute:
    """A short-time Fourier transform, of (data, n_fft, hop_length, win_length, window, ..)."""

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        data, window = inputs
        lengths = (attrs.n_fft, attrs.hop_length, attrs.win_length)
        flags = (attrs.normalized, attrs.onesided)
        return _listed(topi_compute(data, *lengths, window, *flags, out_type.shape))

    return compute


def wrap_compute_sparse_fill_empty_rows(topi_compute: TopiCompute) -> FCompute:
    """Rows of a sparse tensor, of the inputs and the shapes of the first three results."""
    return _with_shapes(topi_compute, 3)


def wrap_compute_sparse_reshape(topi_compute: TopiCompute) -> FCompute:
    """Indices of a sparse tensor, of the inputs and the shapes of both results."""
    return _with_shapes(topi_compute, 2)


def _with_shapes(topi_compute: TopiCompute, count: int) -> FCompute:
    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        shapes = [field.shape for field in out_type.fields[:count]]
        return _listed(topi_compute(*inputs, *shapes))

    return compute


def wrap_compute_argwhere(topi_compute: TopiCompute) -> FCompute:
    """Where a condition holds, of (shape, condition)."""

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        return _listed(topi_compute(out_type.shape, *inputs))

    return compute


def wrap_compute_concat(topi_compute: TopiCompute) -> FCompute:
    """Tensors one behind the other, of (tensors, axis)."""
    return lambda attrs, inputs, out_type: _listed(topi_compute(inputs, attrs.axis))


def wrap_compute_unique(topi_compute: TopiCompute) -> FCompute:
    """The distinct elements, of (data, is_sorted, return_counts)."""
    return _by_position("sorted", "return_counts")(topi_compute)


def wrap_compute_einsum(topi_compute: TopiCompute) -> FCompute:
    """A sum of products, of the equation and the tensors."""
    return lambda attrs, inputs, out_type: _listed(topi_compute(attrs.equation, *inputs))


def wrap_compute_conv2d_backward_weight(topi_compute: TopiCompute) -> FCompute:
    """A convolution's gradient, of (grad, data, kernel_size, padding, strides, dilation, groups, out_dtype, layouts)."""

    def compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        steps = (attrs.kernel_size, attrs.padding, attrs.strides, attrs.dilation, attrs.groups)
        layouts = (attrs.grad_layout, attrs.data_layout, attrs.kernel_layout)
        return _listed(topi_compute(*inputs, *steps, out_type.dtype, layouts))

    return compute


def wrap_compute_layout_transform(
    topi_compute: TopiCompute, schedule_rule: str = "None"
) -> FCompute:
    """A transform between layouts, of (data, src_layout, dst_layout, schedule_rule)."""
    names = ("src_layout", "dst_layout")
    return _by_position(*names)(lambda *args: topi_compute(*args, schedule_rule))
