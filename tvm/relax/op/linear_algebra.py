"""Products of matrices."""

from __future__ import annotations

from typing import Any

from tvm import te, tir, topi
from tvm.error import TypeCheckError
from tvm.relax.expr import Call

from .infer import (
    VOID,
    broadcast_dims,
    check_count,
    common_vdevice,
    dims_of,
    fail,
    is_one,
    items_of,
    made,
    prove_unequal,
    tensors,
    tuple_of_tensors,
)
from .manipulate import permute_dims
from .operator import DataType, Expr, Tensors, operator


def _product_dtype(call: Any, infos: Any) -> Any:
    kinds = [i.dtype for i in infos]
    if any([k.is_void for k in kinds]):
        return VOID
    if kinds[0] != kinds[1]:
        raise fail(call, f"requires tensors of one dtype, got {kinds[0]} and {kinds[1]}")
    return kinds[0]


def _infer_matmul(call: Any, bb: Any) -> Any:
    """A tensor of shape (batch, rows, columns), whose batch is what those of the operands
    broadcast to; vectors have no row or no column. Of dtype `out_dtype`, or that of the operands.
    """
    a, b = infos = tensors(call, 2)
    device = common_vdevice(call, infos)
    kind = _product_dtype(call, infos) if call.attrs.out_dtype.is_void else call.attrs.out_dtype
    if a.ndim == 0 or b.ndim == 0:
        raise fail(call, f"requires tensors of one dimension or more, got {a} and {b}")
    if a.ndim < 0 or b.ndim < 0:
        return made(None, kind, device)
    ndim = _product_rank(a.ndim, b.ndim)
    x, y = dims_of(a), dims_of(b)
    if x is None or y is None:
        return made(None, kind, device, ndim)
    inner = y[-2] if len(y) > 1 else y[0]
    if _differ(x[-1], inner):
        raise fail(call, f"requires {x[-1]} rows of the second matrix, got {inner}")
    batch = broadcast_dims(call, x[:-2], y[:-2])
    if batch is None:
        return made(None, kind, device, ndim)
    rows = [x[-2]] if len(x) > 1 else []
    columns = [y[-1]] if len(y) > 1 else []
    return made([*batch, *rows, *columns], kind, device)


def _differ(a: Any, b: Any) -> bool:
    return prove_unequal(a, b)


def _product_rank(a: int, b: int) -> int:
    if a == 1 and b == 1:
        return 0
    if a == 1 or b == 1:
        return max(a, b) - 1
    return max(a, b)


def matmul_compute(a: te.Tensor, b: te.Tensor, out_dtype: Any = None) -> te.Tensor:
    """The product of matrices, the leading axes broadcast, of tensors."""
    x, y = list(a.shape), list(b.shape)
    x = [tir.IntImm("int64", 1), *x] if len(x) == 1 else x
    y = [*y, tir.IntImm("int64", 1)] if len(y) == 1 else y
    is_row, is_column = len(a.shape) == 1, len(b.shape) == 1
    batch = max(len(x), len(y)) - 2
    shape: list[Any] = []
    for i in range(batch):
        i, j = len(x) - 2 - batch + i, len(y) - 2 - batch + i
        if i < 0 or j < 0:
            shape.append(y[j] if i < 0 else x[i])
        else:
            shape.append(y[j] if topi.utils.equal_const_int(x[i], 1) else x[i])
    shape += [] if is_row else [x[-2]]
    shape += [] if is_column else [y[-1]]
    kind = out_dtype or a.dtype

    def compute(*indices: Any) -> Any:
        k = te.reduce_axis((0, a.shape[-1]), name="k")
        rest = list(indices[batch:])
        row = None if is_row else rest.pop(0)
        column = None if is_column else rest.pop(0)

        def at(dims: Any, own: Any) -> list[Any]:
            lead = dims[:-2]
            start = batch - len(lead)
            picked = [
                0 if topi.utils.equal_const_int(d, 1) else indices[start + i]
                for i, d in enumerate(lead)
            ]
            return [*picked, *own]

        left = a(*at(x, [k] if is_row else [row, k]))
        right = b(*at(y, [k] if is_column else [k, column]))
        if kind != a.dtype:
            left, right = left.astype(kind), right.astype(kind)
        return te.sum(left * right, axis=k)

    return te.compute(shape, compute, name="matmul")


def _legalize_matmul(bb: Any, call: Call) -> Any:
    kind = None if call.attrs.out_dtype.is_void else call.attrs.out_dtype
    return bb.call_te(
        lambda a, b: matmul_compute(a, b, kind), *call.args, primfunc_name_hint="matmul"
    )


@operator("relax.matmul", "MatmulAttrs", infer=_infer_matmul, FLegalize=_legalize_matmul)
def matmul(x1: Expr, x2: Expr, out_dtype: DataType = None) -> Expr:
    """The product of matrices, whose leading axes are broadcast.

    Parameters
    ----------
    x1, x2 : relax.Expr
        The matrices.
    out_dtype : str, optional
        The data type of the result, in which products are summed.
    """


def linear(data: Any, weight: Any, bias: Any = None, out_dtype: Any = None) -> Any:
    """data @ weight.T + bias

    Parameters
    ----------
    data : relax.Expr
        The data.
    weight : relax.Expr
        The weight, of shape (outputs, inputs).
    bias : relax.Expr, optional
        The bias.
    out_dtype : str, optional
        The data type of the product.
    """
    product = matmul(data, permute_dims(weight, axes=None), out_dtype=out_dtype)
    return product if bias is None else product + bias


def _infer_einsum(call: Any, bb: Any) -> Any:
    """A tensor of the operands' dtype, with an axis for each letter of the result."""
    check_count(call, 1)
    infos = tuple_of_tensors(call, 0)
    if not infos:
        raise fail(call, "requires tensors, got none")
    kinds = {i.dtype for i in infos if not i.dtype.is_void}
    if len(kinds) > 1:
        raise fail(call, f"requires tensors of one dtype, got {sorted(kinds)}")
    kind = VOID if any([i.dtype.is_void for i in infos]) else infos[0].dtype
    device = common_vdevice(call, infos)
    dims = [dims_of(i) for i in infos]
    if any([d is None for d in dims]):
        return made(None, kind, device)
    text = call.attrs.subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(infos):
        raise fail(call, f"requires {len(terms)} tensors for {text}, got {len(infos)}")
    try:
        shape = _einsum_shape(terms, output if arrow else None, dims)
    except (ValueError, KeyError, IndexError) as error:
        raise fail(call, f"requires shapes that fit {text}: {error}") from None
    return made(shape, kind, device)


def _einsum_shape(terms: list[str], output: str | None, dims: list[Any]) -> list[Any]:
    sizes: dict[str, Any] = {}
    extra: list[Any] = []
    for term, shape in zip(terms, dims, strict=True):
        before, dots, after = term.partition("...")
        count = len(shape) - len(before) - len(after)
        if count < 0 or (not dots and count):
            raise ValueError(f"{term} has another rank than {len(shape)}")
        own = list(shape[len(before) : len(shape) - len(after)]) if dots else []
        extra = _broadcast(extra, own)
        axes = [*zip(before, shape[: len(before)], strict=True)]
        axes += zip(after, shape[len(shape) - len(after) :], strict=True)
        for label, dim in axes:
            if label not in sizes or getattr(sizes[label], "value", None) == 1:
                sizes[label] = dim
            elif _differ(sizes[label], dim) and getattr(dim, "value", None) != 1:
                raise ValueError(f"{label} is {sizes[label]} and {dim}")
    if output is None:
        labels = "".join(terms).replace(".", "")
        output = "..." * bool(extra) + "".join(sorted({c for c in labels if labels.count(c) == 1}))
    before, dots, after = output.partition("...")
    return [*[sizes[c] for c in before], *(extra if dots else []), *[sizes[c] for c in after]]


def _broadcast(a: list[Any], b: list[Any]) -> list[Any]:
    """The dimensions that ``...`` stands for in both."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    aligned = long[len(long) - len(short) :]
    common = []
    for x, y in zip(aligned, short, strict=True):
        if not is_one(x) and not is_one(y) and _differ(x, y):
            raise ValueError(f"... is {x} and {y}")
        common.append(y if is_one(x) else x)
    return [*long[: len(long) - len(short)], *common]


def _legalize_einsum(bb: Any, call: Call) -> Any:
    value = call.args[0]
    return bb.call_te(topi.einsum, call.attrs.subscripts, *items_of(value))


@operator("relax.einsum", "EinsumAttrs", infer=_infer_einsum, FLegalize=_legalize_einsum)
def einsum(operands: Tensors, subscripts: str) -> Expr:
    """Einstein's sum over tensors.

    Parameters
    ----------
    operands : list of Expr, or Expr
        The tensors.
    subscripts : str
        Such as ``"ij,jk->ik"``.
    """


__all__ = ["TypeCheckError", "einsum", "linear", "matmul", "matmul_compute"]


def _infer_outer(call: Any, bb: Any) -> Any:
    """A matrix of the vectors' dtype, with a row for each element of the first one."""
    a, b = infos = tensors(call, 2)
    for info in infos:
        if info.ndim not in (-1, 1):
            raise fail(call, f"requires vectors, got {info}")
    kind, device = _product_dtype(call, infos), common_vdevice(call, infos)
    x, y = dims_of(a), dims_of(b)
    if x is None or y is None:
        return made(None, kind, device, 2)
    return made([x[0], y[0]], kind, device)


def _outer(a: Any, b: Any) -> Any:
    return topi.multiply(topi.expand_dims(a, 1), topi.expand_dims(b, 0))


@operator(
    "relax.outer", infer=_infer_outer,
    FLegalize=lambda bb, call: bb.call_te(_outer, *call.args, primfunc_name_hint="outer"),
)  # fmt: skip
def outer(x1: Expr, x2: Expr) -> Expr:
    """The products of all pairs of elements of two vectors.

    Parameters
    ----------
    x1, x2 : relax.Expr
        The vectors.
    """
