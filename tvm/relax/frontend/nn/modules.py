"""Layers of models, with the names of parameters that PyTorch gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.relax import op as _op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import PrimValue, Var
from tvm.relax.struct_info import ObjectStructInfo, ShapeExpr, TensorStructInfo

from . import op
from .core import Effect, Module, ModuleList, Parameter, Tensor, get_default_dtype
from .io_effect import IOEffect


class ReLU(Module):
    """The elements above zero, else zero."""

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = op.relu(x)
        return found


class SiLU(Module):
    """``x * sigmoid(x)``."""

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = op.silu(x)
        return found


class GELU(Module):
    """``x * Phi(x)``."""

    def forward(self, x: Tensor) -> Tensor:
        return op.gelu(x)


class Identity(Module):
    """The tensor itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Linear(Module):
    """``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int or str
        The extents; texts name symbolic variables.
    bias : bool
        Whether there is a bias.
    dtype : str, optional
        Of the parameters.
    out_dtype : str, optional
        Of the product; by default that of its factors.
    """

    def __init__(
        self, in_features: int | str | PrimExpr, out_features: int | str | PrimExpr, bias: bool = True,
        dtype: str | None = None, out_dtype: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.out_dtype = out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = (
            Parameter((out_features,), dtype if out_dtype is None else out_dtype) if bias else None
        )

    def forward(self, x: Tensor) -> Tensor:
        # x: [*B, in_features]
        # w: [in_features, out_features]
        w = op.permute_dims(self.weight)
        x = op.matmul(x, w, out_dtype=self.out_dtype)
        return x if self.bias is None else x + self.bias

    def to(self, dtype: str | None = None) -> None:
        self.weight.to(dtype=dtype)
        if self.bias is not None and self.out_dtype is None:
            self.bias.to(dtype=dtype)


def _extents(value: Any, count: int) -> list[int]:
    return list(value) if isinstance(value, Sequence) else [value] * count


class _Convolution(Module):
    """What convolutions share: their options, a weight and a bias."""

    rank: int
    layout: str  # unless another one is given

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, dtype: str | None = None,
        data_layout: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = kernel_size
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.data_layout = data_layout = data_layout or self.layout
        window, inputs = _extents(kernel_size, self.rank), in_channels // groups
        is_last = data_layout.endswith("C") and self.rank > 1
        shape = [out_channels, *window, inputs] if is_last else [out_channels, inputs, *window]
        self.weight = Parameter(shape, dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def options(self) -> dict[str, Any]:
        return {
            "weight": self.weight, "bias": self.bias, "stride": self.stride,
            "padding": self.padding, "dilation": self.dilation, "groups": self.groups,
        }  # fmt: skip


class Conv1D(_Convolution):
    """Convolution of (batch, channels, width)."""

    rank, layout = 1, "NCW"

    def forward(self, x: Tensor) -> Tensor:
        return op.conv1d(x, **self.options())


class Conv2D(_Convolution):
    """Convolution of images, NCHW or NHWC."""

    rank, layout = 2, "NCHW"

    def forward(self, x: Tensor) -> Tensor:
        return op.conv2d(x, **self.options(), data_layout=self.data_layout)


class Conv3D(_Convolution):
    """Convolution of volumes, NCDHW or NDHWC."""

    rank, layout = 3, "NCDHW"

    def forward(self, x: Tensor) -> Tensor:
        return op.conv3d(x, **self.options(), data_layout=self.data_layout)


class ConvTranspose1D(Module):
    """Transposed convolution of (batch, channels, width)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
        output_padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = True,
        dtype: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.output_padding, self.dilation, self.groups = output_padding, dilation, groups
        self.weight = Parameter((in_channels, out_channels // groups, kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return op.conv1d_transpose(
            x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.dilation,
            self.groups,
        )  # fmt: skip


class LayerNorm(Module):
    """The last axes less their mean, over their deviation.

    Parameters
    ----------
    normalized_shape : int or tuple of int
        The extents of these axes.
    eps : float
        What is added to the variance.
    elementwise_affine : bool
        Whether there are a weight and a bias.
    dtype : str, optional
        Of the parameters.
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        dtype: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = normalized_shape
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = _extents(normalized_shape, 1)
        self.weight = Parameter(shape, dtype) if elementwise_affine else None
        self.bias = Parameter(shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """The tensor over its root mean square along axes, times a weight."""

    def __init__(
        self, hidden_size: int, axes: int | list[int], epsilon: float = 1e-5, bias: bool = True,
        dtype: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.epsilon = epsilon
        self.axes = axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        out = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return out if self.bias is None else op.add(out, self.bias)


class GroupNorm(Module):
    """Groups of channels less their mean, over their deviation."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        dtype: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x: Tensor, channel_axis: int = 1, axes: list[int] | None = None) -> Tensor:
        return op.group_norm(
            x,
            self.num_groups,
            self.weight,
            self.bias,
            self.eps,
            channel_axis=channel_axis,
            axes=axes,
        )


class KVCache(Effect):
    """The keys or values of all positions so far.

    Parameters
    ----------
    init_seq_len : int
        How many positions there is room for at first.
    unit_shape : list of int
        The shape of one position's.
    dtype : str, optional
        The data type.
    """

    cache: Any

    def __init__(
        self, init_seq_len: int, unit_shape: Sequence[int], dtype: str | None = None
    ) -> None:
        self.init_seq_len = init_seq_len
        self.unit_shape = [int(extent) for extent in unit_shape]
        self.dtype = get_default_dtype() if dtype is None else dtype
        self.cache = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Any]:
        shape = ShapeExpr([self.init_seq_len, *self.unit_shape])
        args = [_op.zeros(shape, self.dtype), shape, PrimValue(0)]
        call = _op.call_pure_packed(
            "vm.builtin.attention_kv_cache_create", *args, sinfo_args=[ObjectStructInfo()]
        )
        return [builder.emit(call, name_hint)]

    def create(self, name_hint: str) -> list[Var]:
        if self.cache is None:
            self.cache = Var(name_hint, ObjectStructInfo())
        return [self.cache]

    def set_state(self, state_vars: list[Var]) -> None:
        (self.cache,) = state_vars

    def finalize(self) -> list[Var]:
        result, self.cache = self.cache, None
        return [result]

    def to(self, dtype: str | None = None) -> None:
        if dtype is not None:
            self.dtype = dtype

    def view(self, seq_len: Any) -> Tensor:
        """What the cache has, of so many positions.

        Parameters
        ----------
        seq_len : int or PrimExpr
        """
        shape = [seq_len, *self.unit_shape]
        call = _op.call_pure_packed(
            "vm.builtin.attention_kv_cache_view", self.cache, ShapeExpr(shape),
            sinfo_args=[TensorStructInfo(shape, self.dtype)],
        )  # fmt: skip
        return Tensor(_expr=_current().emit(call))

    def append(self, new_element: Tensor) -> None:
        """Add positions.

        Parameters
        ----------
        new_element : Tensor
            Of shape ``(positions, *unit_shape)``.
        """
        if new_element.dtype != self.dtype:
            raise TypeError(f"the cache's dtype is {self.dtype}, got {new_element.dtype}")
        call = _op.call_inplace_packed(
            "vm.builtin.attention_kv_cache_append", self.cache, new_element._expr, inplace_indices=[0],
            sinfo_args=[ObjectStructInfo()],
        )  # fmt: skip
        self.cache = _current().emit(call)


def _current() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise RuntimeError("a cache is used within a method that is exported")
    return builder


class Embedding(Module):
    """The rows of a table at indices.

    Parameters
    ----------
    num : int or str
        How many rows there are.
    dim : int
        Their length.
    dtype : str, optional
        Of the table.
    """

    def __init__(
        self, num: int | str | PrimExpr, dim: int | str | PrimExpr, dtype: str | None = None
    ) -> None:
        super().__init__()
        self.num = num
        self.dim = dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        flat = op.take(self.weight, op.reshape(x, [-1]), axis=0)
        return op.reshape(flat, [*x.shape, self.weight.shape[1]])


class TimestepEmbedding(Module):
    """Two linear layers on embeddings of positions."""

    def __init__(
        self, in_channels: int, time_embed_dim: int, act_fn: str = "silu", out_dim: int | None = None,
        post_act_fn: str | None = None, cond_proj_dim: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if act_fn != "silu" or post_act_fn is not None:
            raise ValueError(
                f"TimestepEmbedding knows the activation silu, got {act_fn}, {post_act_fn}"
            )
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = Linear(cond_proj_dim, in_channels, bias=False) if cond_proj_dim else None
        self.act = SiLU()
        self.linear_2 = Linear(time_embed_dim, out_dim or time_embed_dim)

    def forward(self, sample: Tensor, condition: Tensor | None = None) -> Tensor:
        if condition is not None:
            if self.cond_proj is None:
                raise ValueError("a condition needs cond_proj_dim")
            sample = sample + self.cond_proj(condition)
        found: Tensor = self.linear_2(self.act(self.linear_1(sample)))
        return found


class Timesteps(Module):
    """Sines and cosines of positions."""

    def __init__(
        self, num_channels: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1
    ) -> None:
        super().__init__()
        self.num_channels = num_channels
        self.flip_sin_to_cos = flip_sin_to_cos
        self.downscale_freq_shift = downscale_freq_shift

    def forward(self, x: Tensor) -> Tensor:
        return op.get_timestep_embedding(
            x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift
        )


class Attention(Module):
    """Attention by heads of projected states, to themselves or to others."""

    def __init__(
        self, query_dim: int, cross_attention_dim: int | None = None, heads: int = 8, dim_head: int = 64,
        bias: bool = False, norm_num_groups: int | None = None, out_bias: bool = True,
        scale_qk: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.query_dim = query_dim
        self.cross_attention_dim = cross_attention_dim or query_dim
        self.heads, self.dim_head = heads, dim_head
        self.bias, self.norm_num_groups, self.out_bias, self.scale_qk = (
            bias,
            norm_num_groups,
            out_bias,
            scale_qk,
        )
        self.inner_dim = dim_head * heads
        self.to_q = Linear(query_dim, self.inner_dim, bias=bias)
        self.to_k = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.to_v = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.group_norm = (
            None if norm_num_groups is None
            else GroupNorm(num_channels=query_dim, num_groups=norm_num_groups, affine=True)
        )  # fmt: skip
        self.to_out = ModuleList([Linear(self.inner_dim, query_dim, bias=out_bias)])

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor | None = None,
        attention_mask: Tensor | None = None, **cross_attention_kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if attention_mask is not None or cross_attention_kwargs:
            raise ValueError("Attention takes neither a mask nor other options")
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        query = self.to_q(hidden_states)
        others = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        key, value = self.to_k(others), self.to_v(others)
        shape = [hidden_states.shape[0], -1, self.heads, self.dim_head]
        query, key, value = [op.reshape(x, shape) for x in (query, key, value)]
        mixed = op.scaled_dot_product_attention(query, key, value, is_causal=False)
        mixed = op.reshape(mixed, [hidden_states.shape[0], -1, self.inner_dim])
        found: Tensor = self.to_out[0](mixed)
        return found


__all__ = [
    "Attention", "Conv1D", "Conv2D", "Conv3D", "ConvTranspose1D", "Embedding",
    "GELU", "GroupNorm", "IOEffect", "Identity", "KVCache", "LayerNorm", "Linear", "RMSNorm", "ReLU",
    "SiLU", "TimestepEmbedding", "Timesteps",
]  # fmt: skip
