"""Patterns that several compilers take: each with names for its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relax.dpl import (
    DFPattern,
    GlobalVarPattern,
    TuplePattern,
    is_const,
    is_op,
    is_tuple_get_item,
    wildcard,
)
from tvm.relax.expr import Constant
from tvm.relax.op.manipulate import reshape
from tvm.relax.op.nn import attention

Parts = dict[str, DFPattern]


def _wildcards(*names: str) -> Parts:
    return {name: wildcard() for name in names}


def _finished(
    out: DFPattern, parts: Parts, with_bias: bool, activation: str | None
) -> tuple[DFPattern, Parts]:
    """An operator with its bias and activation."""
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.add")(out, parts["bias"])
    return (out if activation is None else is_op(activation)(out)), parts


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None
) -> tuple[DFPattern, Parts]:
    """An operator of two operands ``lhs`` and ``rhs``, a ``bias`` and an activation.

    Parameters
    ----------
    op_name : str
    with_bias : bool
    activation : str, optional
        The name of the activation's operator.

    Returns
    -------
    (DFPattern, dict of str to DFPattern)
        The pattern, and its parts by name; ``root`` is the operator.
    """
    parts = _wildcards("lhs", "rhs")
    parts["root"] = is_op(op_name)(parts["lhs"], parts["rhs"])
    return _finished(parts["root"], parts, with_bias, activation)


def make_residual_block_pattern(
    node_output: DFPattern | tuple[DFPattern, Mapping[str, DFPattern]],
    binary_op: str = "relax.add",
    activation: str | None = None,
) -> tuple[DFPattern, Parts]:
    """A pattern to whose result ``residual`` is added, or joined by another binary operator."""
    out, parts = node_output if isinstance(node_output, tuple) else (node_output, {})
    residual, op = wildcard(), is_op(binary_op)
    joined: DFPattern = op(out, residual) | op(residual, out)
    if activation is not None:
        joined = is_op(activation)(joined)
    return joined, {**parts, "residual": residual}


def make_conv2d_pattern(
    with_bias: bool = False, activation: str | None = None
) -> tuple[DFPattern, Parts]:
    """A convolution of ``input`` and ``weight``, a ``bias`` and an activation."""
    parts = _wildcards("input", "weight")
    parts["root"] = is_op("relax.nn.conv2d")(parts["input"], parts["weight"])
    return _finished(parts["root"], parts, with_bias, activation)


def make_matmul_pattern(
    with_bias: bool = False, activation: str | None = None, transposed_rhs: bool = False
) -> tuple[DFPattern, Parts]:
    """A product of ``lhs`` and ``rhs``, or ``rhs`` transposed, a ``bias`` and an activation."""
    parts = _product(transposed_rhs)
    return _finished(parts["root"], parts, with_bias, activation)


def _product(transposed_rhs: bool) -> Parts:
    parts = _wildcards("lhs", "rhs")
    rhs: DFPattern = is_op("relax.permute_dims")(parts["rhs"]) if transposed_rhs else parts["rhs"]
    parts["root"] = is_op("relax.matmul")(parts["lhs"], rhs)
    return parts


def make_attention_pattern(
    with_bias: bool = False, var_len: bool = False
) -> tuple[DFPattern, Parts]:
    """Attention of ``query``, ``key`` and ``value``, with a ``bias`` or of sequences of other lengths."""
    names = ["query", "key", "value"]
    if with_bias:
        op, names = "relax.nn.attention_bias", [*names, "bias"]
    elif var_len:
        op = "relax.nn.attention_var_len"
        names += ["seqstart_q", "max_seqlen_q", "seqstart_k", "max_seqlen_k"]
    else:
        op = "relax.nn.attention"
    parts = _wildcards(*names)
    return is_op(op)(*parts.values()), parts


def make_stacked_attention_pattern(
    start_op: str, with_bias: bool = False, layout: str = "BS3NH"
) -> tuple[DFPattern, Parts]:
    """Attention of one tensor that is taken apart.

    Parameters
    ----------
    start_op : str
        How: ``"split"`` or ``"strided_slice"``.
    with_bias : bool
    layout : str
        Of the tensor: ``"BS3NH"``, whose parts are reshaped, or ``"SBN3H"``, whose axes are permuted.
    """
    stacked = wildcard()
    parts: Parts = {"stacked_qkv": stacked}
    names = ("query", "key", "value")
    if start_op == "split":
        whole = is_op("relax.split")(stacked)
        pieces: list[DFPattern] = [is_tuple_get_item(whole, i) for i in range(3)]
    elif start_op == "strided_slice":
        op = is_op("relax.strided_slice")
        pieces = [op(stacked, varg_default_wildcard=True) for _ in names]
    else:
        raise NotImplementedError(f"start_op must be split or strided_slice, got {start_op!r}")
    if layout == "BS3NH":
        shapes = _wildcards(*[f"{name}_reshape" for name in names])
        parts.update(shapes)
        reshape = is_op("relax.reshape")
        pieces = [reshape(p, s) for p, s in zip(pieces, shapes.values(), strict=True)]
    elif layout == "SBN3H":
        pieces = [is_op("relax.permute_dims")(p) for p in pieces]
    else:
        raise NotImplementedError(f"layout must be BS3NH or SBN3H, got {layout!r}")
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.nn.attention_bias")(*pieces, parts["bias"])
    else:
        out = is_op("relax.nn.attention")(*pieces)
    return (is_op("relax.permute_dims")(out) if layout == "SBN3H" else out), parts


def make_layer_norm_pattern() -> tuple[DFPattern, Parts]:
    """A layer norm."""
    return is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard()), {}


def make_rms_norm_pattern() -> tuple[DFPattern, Parts]:
    """A loop program ``gv`` of ``inp`` and a weight; that it is an RMS norm must be checked."""
    inp, gv = wildcard(), GlobalVarPattern()
    out = is_op("relax.call_tir")(gv, TuplePattern([inp, wildcard()]))
    return out, {"gv": gv, "inp": inp, "rms_norm": out}


def make_matmul_dequantize_pattern(transposed_rhs: bool = False) -> tuple[DFPattern, Parts]:
    """A product that is dequantised by constants ``scale`` and ``zp``."""
    parts = {**_product(transposed_rhs), "scale": is_const(), "zp": is_const()}
    return is_op("relax.dequantize")(parts["root"], parts["scale"], parts["zp"]), parts


def make_matmul_multiply_pattern(transposed_rhs: bool = False) -> tuple[DFPattern, Parts]:
    """A product times the product of scales ``scaleA`` and ``scaleB`` of one element, cast."""
    parts = {**_product(transposed_rhs), **_wildcards("scaleA", "scaleB")}
    scales = [parts[name].has_shape((1,)) for name in ("scaleA", "scaleB")]
    multiply = is_op("relax.multiply")
    return is_op("relax.astype")(multiply(parts["root"], multiply(*scales))), parts


def make_attention_rewrite_pattern(
    qkv_layout: str, out_layout: str, with_bias: bool, with_cast: bool, with_kv_repeat: bool = False
) -> tuple[DFPattern, Callable[[RelayExpr, Mapping[DFPattern, RelayExpr]], RelayExpr]]:
    """Attention written out as products and a softmax, and what rewrites it to one operator.

    Parameters
    ----------
    qkv_layout : str
        Of query, key and value: ``"BSNH"``, or ``"BSH"`` for one head.
    out_layout : str
        Of the result.
    with_bias : bool
        Whether something is added before the softmax.
    with_cast : bool
        Whether the softmax is computed in another data type.
    with_kv_repeat : bool
        Whether keys and values are repeated for groups of heads.

    Returns
    -------
    (DFPattern, callable)
        For `tvm.relax.dpl.rewrite_call`.
    """
    for layout in (qkv_layout, out_layout):
        if layout not in ("BSNH", "BSH"):
            raise NotImplementedError(f"a layout must be BSNH or BSH, got {layout!r}")
    return _WrittenOutAttention(
        qkv_layout, out_layout, with_bias, with_cast, with_kv_repeat
    ).as_rule()


class _WrittenOutAttention:
    """The parts of attention that is written out."""

    def __init__(
        self, qkv: str, out: str, with_bias: bool, with_cast: bool, with_repeat: bool
    ) -> None:
        self.qkv, self.out, self.with_repeat = qkv, out, with_repeat
        self.inputs = [wildcard() for _ in range(3)]
        self.shapes = [wildcard() for _ in range(4)]
        self.scale = is_const()
        self.bias = wildcard() if with_bias else None
        self.with_cast = with_cast
        self.repeats: list[DFPattern] = []

    def as_rule(self) -> tuple[DFPattern, Callable[..., RelayExpr]]:
        query, key, value = [self._input(i) for i in range(3)]
        transposed = is_op("relax.permute_dims")(key).has_attr({"axes": [0, 2, 1]})
        score: DFPattern = is_op("relax.matmul")(query, transposed)
        multiplied = is_op("relax.multiply")(score, self.scale)
        self.divided = is_op("relax.divide")(score, self.scale)
        score = multiplied | self.divided
        if self.bias is not None:
            score = is_op("relax.add")(score, self.bias)
        if self.with_cast:
            score = is_op("relax.astype")(score)
        score = is_op("relax.nn.softmax")(score)
        if self.with_cast:
            score = is_op("relax.astype")(score)
        out: DFPattern = is_op("relax.matmul")(score, value)
        if self.out == "BSNH":
            out = is_op("relax.reshape")(out, self.shapes[3])
            out = is_op("relax.permute_dims")(out).has_attr({"axes": [0, 2, 1, 3]})
        return out, self.rewrite

    def _input(self, number: int) -> DFPattern:
        """(B, S, N, H) -> (B * N, S, H)"""
        found: DFPattern = self.inputs[number]
        if self.with_repeat and number > 0:
            repeat = is_op("relax.repeat")(found).has_attr({"axis": 2})
            self.repeats.append(repeat)
            found = repeat
        if self.qkv == "BSH":
            return found
        found = is_op("relax.permute_dims")(found).has_attr({"axes": [0, 2, 1, 3]})
        return is_op("relax.reshape")(found, self.shapes[number])

    def rewrite(self, expr: RelayExpr, matches: Mapping[DFPattern, RelayExpr]) -> RelayExpr:
        scale = self._scale(matches)
        if scale is None:
            return expr
        args: list[Any] = [matches[p] for p in self.inputs]
        if self.with_repeat:  # the operator takes as many heads of all
            args[1:] = [matches[p] for p in self.repeats]
        if self.qkv == "BSH":
            shapes = [a.struct_info.dimensions for a in args]
            args = [reshape(a, (d[0], d[1], 1, d[2])) for a, d in zip(args, shapes, strict=True)]
        bias: Any = None if self.bias is None else matches[self.bias]
        if bias is not None and len(bias.struct_info.dimensions) == 3:
            batch, _, heads, _ = matches[self.inputs[0]].struct_info.dimensions
            _, rows, columns = bias.struct_info.dimensions
            bias = reshape(bias, (batch, heads, rows, columns))
        query, key, value = args
        out: RelayExpr = attention(query, key, value, bias, scale)
        return reshape(out, expr.struct_info.dimensions) if self.out == "BSH" else out

    def _scale(self, matches: Mapping[DFPattern, RelayExpr]) -> float | None:
        constant = matches[self.scale]
        if not isinstance(constant, Constant) or constant.data.numpy().size != 1:
            return None
        value = float(constant.data.numpy().reshape(()))
        return 1.0 / value if self.divided in matches else value
