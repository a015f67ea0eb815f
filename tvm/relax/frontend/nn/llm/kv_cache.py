"""Paged caches of keys and values, created and used by the program of a language model.

cache = TIRPagedKVCache(max_batch_size=..., ..., num_hidden_layers=12, head_dim=64, target=target)
out = cache.attention_with_fused_qkv(layer, qkv, num_qo_heads=12)
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import tvm.relax.op as _op
from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import PrimValue, ShapeExpr
from tvm.relax.frontend.nn.core import Object, Tensor
from tvm.relax.struct_info import ObjectStructInfo, TensorStructInfo
from tvm.target import Target
from tvm.tir import PrimFunc

from .attention_kernels import attention_prefill, attention_prefill_ragged
from .decode_kernels import (
    attention_decode,
    compact_kv_copy,
    copy_single_page,
    debug_get_kv,
    merge_state_inplace,
    transpose_append,
)
from .rotary_kernel import llama_rope_with_position_map

_CREATE = "vm.builtin.paged_attention_kv_cache_create_reduced"
_ATTENTION = "vm.builtin.attention_kv_cache_attention_with_fused_qkv"
_QUERY_POSITIONS = "vm.builtin.attention_kv_cache_get_query_positions"


class RopeMode(enum.IntEnum):
    """Where rotary embeddings are applied: nowhere, before keys are stored, or in attention."""

    NONE = 0
    NORMAL = 1
    INLINE = 2


class PagedKVCache(Object):
    """A cache whose sequences grow page by page."""

    def attention_with_fused_qkv(
        self,
        layer_id: int,
        qkv: Tensor,
        num_qo_heads: int,
        attn_score_scaling_factor: float = 1.0,
    ) -> Tensor:
        """Add keys and values to a layer's, and attend to all of them.

        Parameters
        ----------
        layer_id : int
            The layer.
        qkv : Tensor
            (batch, sequence, heads of queries, keys and values, head_dim)
        num_qo_heads : int
            How many of the heads are queries.
        attn_score_scaling_factor : float
            A factor of the scores besides ``head_dim ** -0.5``.

        Returns
        -------
        result : Tensor
            (batch, sequence, num_qo_heads, head_dim)
        """
        batch, length, heads, depth = qkv.shape
        rows = batch * length
        flat = _op.reshape(qkv._expr, (rows, heads, depth))
        info = TensorStructInfo((rows, num_qo_heads, depth), qkv.dtype)
        args = [self._expr, PrimValue(layer_id), PrimValue(attn_score_scaling_factor), _emit(flat)]
        out = _emit(_op.call_dps_packed(_ATTENTION, args, out_sinfo=info))
        return Tensor(_expr=_emit(_op.reshape(out, (batch, length, num_qo_heads, depth))))

    def get_query_positions(self, total_length: Any) -> Tensor:
        """The positions of the tokens of this pass in their sequences.

        Parameters
        ----------
        total_length : int or PrimExpr
            How many tokens there are.

        Returns
        -------
        result : Tensor
            (total_length), of int32
        """
        info = TensorStructInfo((total_length,), "int32")
        call = _op.call_pure_packed(_QUERY_POSITIONS, self._expr, sinfo_args=[info])
        return Tensor(_expr=_emit(call))


class TIRPagedKVCache(PagedKVCache):
    """A paged cache whose kernels are loop programs of the module.

    Parameters
    ----------
    max_batch_size, max_total_seq_len, prefill_chunk_size, page_size : int or tir.Var
        Sequences, tokens in all, tokens of a pass, and tokens of a page.
    support_sliding_window : int or tir.Var
        Whether sequences may see their last tokens only.
    layer_partition : relax.ShapeExpr
        The first layer, and the one behind the last.
    num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim : int
        Of the model.
    rope_mode : RopeMode
        Where rotary embeddings are applied.
    rope_scale, rope_theta : float
        A factor of positions, and the base of the angles.
    rope_scaling : dict
        As of `position_embedding.switch_rope_freq_func`.
    rope_ext_factors : relax.Expr
        Factors of angles, or a `relax.PrimValue` for none.
    rotary_dim : int
        The elements that are turned.
    dtype : str
        Of keys, values and queries.
    target : Target
        A processor.
    name : str
        The variable that the cache is bound to.
    """

    def __init__(
        self,
        max_batch_size: Any,
        max_total_seq_len: Any,
        prefill_chunk_size: Any,
        page_size: Any,
        support_sliding_window: Any,
        layer_partition: Any,
        num_hidden_layers: int,
        num_attention_heads: int,
        num_key_value_heads: int,
        rope_mode: RopeMode,
        head_dim: int,
        rope_scale: float,
        rope_theta: float,
        rope_scaling: Mapping[str, Any],
        rope_ext_factors: RelayExpr,
        rotary_dim: int,
        dtype: str,
        target: Target,
        name: str = "paged_kv_cache",
    ) -> None:
        _require_processor(target)
        heads = num_key_value_heads, num_attention_heads, head_dim, dtype
        tree = _emit(_op.call_pure_packed("vm.builtin.null_value", sinfo_args=[ObjectStructInfo()]))
        kernels = {
            "kv_cache_transpose_append": transpose_append(num_key_value_heads, head_dim, dtype),
            "tir_attention_prefill_cpu": attention_prefill(*heads, False, rope_scaling),
            "tir_attention_decode_cpu": attention_decode(*heads, False, rope_scaling),
            "tir_attention_prefill_cpu_sliding_window": attention_prefill(
                *heads, True, rope_scaling
            ),
            "tir_attention_decode_cpu_sliding_window": attention_decode(*heads, True, rope_scaling),
            "tir_attention_prefill_ragged_cpu": attention_prefill_ragged(*heads, rope_scaling),
            "tir_attention_merge_state_cpu": merge_state_inplace(dtype),
            "tir_split_rotary": llama_rope_with_position_map(
                rope_theta, rope_scale, head_dim, num_attention_heads, num_key_value_heads, dtype,
                rope_scaling, rotary_dim,
            ),
            "kv_cache_copy_single_page_cpu": copy_single_page(num_key_value_heads, head_dim, dtype),
            "kv_cache_debug_get_kv": debug_get_kv(
                num_hidden_layers, num_key_value_heads, head_dim, dtype
            ),
            "kv_cache_compact_kv_copy_cpu": compact_kv_copy(num_key_value_heads, head_dim, dtype),
        }  # fmt: skip
        sizes = [max_batch_size, max_total_seq_len, prefill_chunk_size, page_size]
        numbers = [num_attention_heads, num_key_value_heads, head_dim, int(rope_mode)]
        has_factors = not isinstance(rope_ext_factors, PrimValue)
        args = [
            ShapeExpr([*sizes, support_sliding_window]),
            layer_partition,
            *[PrimValue(number) for number in numbers],
            PrimValue(float(rope_scale)),
            PrimValue(float(rope_theta)),
            _emit(_op.zeros((), dtype)),
            *[_builder().add_func(func, kernel) for kernel, func in kernels.items()],
            tree,
            tree,
            rope_ext_factors if has_factors else tree,
        ]
        call = _op.call_pure_packed(_CREATE, *args, sinfo_args=[ObjectStructInfo()])
        super().__init__(_expr=call, _name=name)


class FlashInferPagedKVCache(PagedKVCache):
    """A paged cache on FlashInfer's kernels, which are for CUDA only: always refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise OpNotImplemented(
            "FlashInferPagedKVCache needs FlashInfer's kernels for CUDA, which are not there",
            hint="TIRPagedKVCache(...), whose kernels are compiled with the module",
        )


def _builder() -> BlockBuilder:
    found = BlockBuilder.current()
    if found is None:
        raise TVMError("a paged cache is made and used while a module is exported")
    return found


def _emit(expr: RelayExpr) -> RelayExpr:
    found: RelayExpr = _builder().emit(expr)
    return found


def _require_processor(target: Target) -> None:
    if "cpu" not in Target(target).keys:
        raise OpNotImplemented(
            f"the kernels of paged caches are for processors, got the target {target}",
            hint='Target("llvm")',
        )


# ---- the kernels by their classic names


def _kv_cache_transpose_append(num_key_value_heads: int, head_dim: int, dtype: str) -> PrimFunc:
    return transpose_append(num_key_value_heads, head_dim, dtype)


def _kv_cache_debug_get_kv(
    num_hidden_layers: int, num_key_value_heads: int, head_dim: int, dtype: str
) -> PrimFunc:
    return debug_get_kv(num_hidden_layers, num_key_value_heads, head_dim, dtype)


def _attention_prefill(
    h_kv: int, h_q: int, d: int, dtype: str, sliding_window: bool, rope_scaling: Any, target: Target
) -> PrimFunc:
    _require_processor(target)
    return attention_prefill(h_kv, h_q, d, dtype, sliding_window, rope_scaling)


def _attention_decode(
    num_kv_heads: int,
    num_qo_heads: int,
    head_dim: int,
    qkv_dtype: str,
    sliding_window: bool,
    rope_scaling: Any,
    target: Target,
) -> PrimFunc:
    _require_processor(target)
    heads = num_kv_heads, num_qo_heads, head_dim
    return attention_decode(*heads, qkv_dtype, sliding_window, rope_scaling)


def _attention_prefill_ragged(
    h_kv: int, h_q: int, d: int, dtype: str, rope_scaling: Any, target: Target
) -> PrimFunc:
    _require_processor(target)
    return attention_prefill_ragged(h_kv, h_q, d, dtype, rope_scaling)


def _merge_state_inplace(num_heads: int, head_dim: int, v_dtype: str, target: Target) -> PrimFunc:
    _require_processor(target)
    return merge_state_inplace(v_dtype)


def _copy_single_page(
    num_heads: int, page_size: int, head_dim: int, dtype: str, target: Target
) -> PrimFunc:
    _require_processor(target)
    return copy_single_page(num_heads, head_dim, dtype)


def _compact_kv_copy(num_heads: int, head_dim: int, dtype: str, target: Target) -> PrimFunc:
    _require_processor(target)
    return compact_kv_copy(num_heads, head_dim, dtype)
