"""Rotary position embeddings: pairs of elements are turned by angles that grow with the position.

y[d] = cos(s / theta ** (2 d / D)) * x[d] + sin(...) * (-x[d + D / 2] or x[d - D / 2])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.relax.frontend.nn import op
from tvm.relax.frontend.nn.core import Tensor
from tvm.support.later import names_from_above

__getattr__ = names_from_above(__name__)

# cosine and sine, and what the variables in them stand for
Frequencies = tuple[PrimExpr, PrimExpr, dict[tir.Var, PrimExpr]]


def _inverse_frequency(d: Any, d_range: int, theta: Any) -> PrimExpr:
    """theta ** (2 d / D), the positions of a full turn over 2 pi."""
    exponent = (d * 2 % d_range).astype("float32") / tir.const(d_range, "float32")
    base = theta if isinstance(theta, PrimExpr) else tir.const(theta, "float32")
    result: PrimExpr = tir.power(base, exponent)
    return result


def _turned(angle: PrimExpr, dtype: str, factor: float = 1.0) -> Frequencies:
    var = tir.Var("freq", "float32")
    cosine, sine = tir.cos(var), tir.sin(var)
    if factor != 1.0:
        cosine, sine = [x * tir.const(factor, "float32") for x in (cosine, sine)]
    return cosine.astype(dtype), sine.astype(dtype), {var: angle}


def rope_freq_default(s: Any, d: Any, d_range: int, theta: float, dtype: str) -> Frequencies:
    """Cosine and sine of the angle of a position and an element.

    Parameters
    ----------
    s : PrimExpr
        The position, of float32.
    d : PrimExpr
        The element, of ``d_range``.
    theta : float
        The base of the angles.
    dtype : str
        Of the result.
    """
    return _turned(s / _inverse_frequency(d, d_range, theta), dtype)


def rope_freq_llama3(
    s: Any,
    d: Any,
    d_range: int,
    theta: float,
    dtype: str,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: float,
) -> Frequencies:
    """As `rope_freq_default`, slow angles slowed down by a factor and those between blended.

    Parameters
    ----------
    factor : float
        How much longer than trained sequences are.
    low_freq_factor, high_freq_factor : float
        Turns over the trained length below which angles are slow, and above which fast.
    original_max_position_embeddings : float
        The trained length.
    """
    frequency = tir.const(1, "float32") / _inverse_frequency(d, d_range, theta)
    turns = frequency * tir.const(original_max_position_embeddings / (2 * math.pi), "float32")
    width = high_freq_factor - low_freq_factor
    zero, one = [tir.const(x, "float32") for x in (0.0, 1.0)]
    blend = (turns - tir.const(low_freq_factor, "float32")) / tir.const(width, "float32")
    smooth = tir.max(zero, tir.min(one, blend))
    scaled = frequency * ((one - smooth) / tir.const(factor, "float32") + smooth)
    return _turned(s * scaled, dtype)


def rope_freq_longrope(
    s: Any,
    d: Any,
    d_range: int,
    theta: float,
    dtype: str,
    max_position_embeddings: int,
    original_max_position_embeddings: int,
    ext_factors: Any = None,
) -> Frequencies:
    """As `rope_freq_default`, each pair of elements slowed down by a factor of its own.

    Parameters
    ----------
    max_position_embeddings, original_max_position_embeddings : int
        How long sequences are, and how long those trained with were.
    ext_factors : tir.Buffer, optional
        A factor for each pair of elements.
    """
    longer = max_position_embeddings / original_max_position_embeddings
    growth = math.log(longer) / math.log(original_max_position_embeddings) if longer > 1 else 0.0
    slowness = _inverse_frequency(d, d_range, theta)
    if ext_factors is not None:
        slowness = slowness * ext_factors[d % (d_range // 2)]
    return _turned(s / slowness, dtype, math.sqrt(1 + growth))


_SCALINGS: dict[str, tuple[Callable[..., Frequencies], tuple[str, ...]]] = {
    "llama3": (
        rope_freq_llama3,
        ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    ),
    "longrope": (
        rope_freq_longrope,
        ("max_position_embeddings", "original_max_position_embeddings"),
    ),
}


def switch_rope_freq_func(rope_scaling: Mapping[str, Any] | None) -> Callable[..., Frequencies]:
    """The function of angles that a model's configuration asks for.

    Parameters
    ----------
    rope_scaling : dict
        Its ``rope_type`` is ``"default"``, ``"llama3"`` or ``"longrope"``; the rest are options.
    """
    kind = (rope_scaling or {}).get("rope_type", "default")
    if rope_scaling is None or kind == "default":
        return rope_freq_default
    if kind not in _SCALINGS:
        raise ValueError(
            f"rope_type is one of default, {', '.join(_SCALINGS)}, got {kind!r} in {rope_scaling}"
        )
    function, names = _SCALINGS[kind]
    return partial(function, **{name: rope_scaling[name] for name in names})


def _rotary(d: Any, dims: int, here: Any, other: Callable[[Any], Any], found: Frequencies) -> Any:
    """An element turned: `other` gives the element at another index of the same vector."""
    cosine, sine, values = found
    partner = tir.if_then_else(d < dims // 2, -other(d + dims // 2), other(d - dims // 2))
    turned = cosine * here + sine * partner
    for var, value in values.items():
        turned = tir.Let(var, value, turned)
    return turned


def llama_rope(
    qkv: Tensor,
    total_seq_len: Any,
    theta: float,
    scale: float,
    num_q_heads: int,
    num_kv_heads: int,
    rope_scaling: Mapping[str, Any],
    rotary_dim: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, the first two with rotary embeddings of the last positions.

    Parameters
    ----------
    qkv : Tensor
        (batch, sequence, num_q_heads + 2 * num_kv_heads, head_dim)
    total_seq_len : int or tir.Var
        Positions so far, those of qkv included.
    theta, scale : float
        The base of the angles, and a factor of positions.
    rope_scaling : dict
        As of `switch_rope_freq_func`.
    rotary_dim : int, optional
        The elements that are turned, by default all.
    """
    batch, length, _, depth = qkv.shape
    dims, dtype = rotary_dim or int(depth), str(qkv.dtype)
    frequencies = switch_rope_freq_func(rope_scaling)

    def compute(heads: int, first: int, is_turned: bool) -> Callable[..., Any]:
        def function(x: Any, total: Any) -> Any:
            def element(b: Any, s: Any, h: Any, d: Any) -> Any:
                here = x[b, s, h + first, d]
                if not is_turned:
                    return here
                position = (s + total - length).astype("float32") * tir.const(scale, "float32")
                found = frequencies(position, d, dims, theta, dtype)
                turned = _rotary(d, dims, here, lambda i: x[b, s, h + first, i], found)
                return turned if dims == int(depth) else tir.if_then_else(d < dims, turned, here)

            return te.compute((batch, length, heads, depth), element, name="rope")

        return function

    kinds = ((num_q_heads, 0, True), (num_kv_heads, num_q_heads, True))
    parts = [*kinds, (num_kv_heads, num_q_heads + num_kv_heads, False)]
    query, key, value = [
        op.tensor_expr_op(compute(*part), "llama_rope", [qkv, total_seq_len]) for part in parts
    ]
    return query, key, value
