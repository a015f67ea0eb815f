"""Functions, loops, writes in place and shapes as values, for random relax programs."""

# mypy: disable-error-code="untyped-decorator,valid-type,no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relax, tir
from tvm.relax import op
from tvm.script import tir as T

from .random_operands import Draw, Operand, has_axes, is_float, is_number
from .random_structure import is_plain, struct_info_with_symbols


def _doubling(rank: int, dtype: str) -> tir.PrimFunc:
    """A loop program that doubles a vector or a matrix where it lies."""

    @T.prim_func(private=True)
    def vector(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), dtype)
        for i in range(n):
            with T.block("double"):
                v = T.axis.spatial(n, i)
                A[v] = A[v] + A[v]

    @T.prim_func(private=True)
    def matrix(a: T.handle):
        n, m = T.int64(), T.int64()
        A = T.match_buffer(a, (n, m), dtype)
        for i, j in T.grid(n, m):
            with T.block("double"):
                v, w = T.axis.remap("SS", [i, j])
                A[v, w] = A[v, w] + A[v, w]

    return vector if rank == 1 else matrix


def inplace(g: Any) -> Operand | None:
    """A loop program that writes over a tensor that nothing else reads."""
    x = g.pick(lambda t: is_number(t) and t.array.ndim in (1, 2))
    if x is None:
        return None
    dtype = str(x.array.dtype)
    gvar = g.builder.add_func(_doubling(x.array.ndim, dtype), "double")
    own = g.builder.emit(op.negative(x.expr))
    made = op.call_tir_inplace(gvar, own, 0, x.expr.struct_info)
    return Operand(made, -x.array - x.array, x.is_exact)


def function_of_tuple(g: Any) -> Operand | None:
    """A function of a tensor and a tuple, which returns a tuple."""
    x, y = [g.pick(lambda t: is_number(t) and is_plain(t)) for _ in range(2)]
    if x is None or y is None:
        return None
    own: dict[Any, tir.Var] = {}
    infos = [struct_info_with_symbols(t, own) for t in (x, y)]
    first = relax.Var("first", infos[0])
    pair = relax.Var("pair", relax.TupleStructInfo([infos[1], infos[0]]))
    inner = relax.BlockBuilder()
    with inner.function("inner", [first, pair]):
        with inner.dataflow():
            one = inner.emit(op.negative(relax.TupleGetItem(pair, 0)))
            two = inner.emit(op.add(first, relax.TupleGetItem(pair, 1)))
            out = inner.emit_output(relax.Tuple([two, one]))
        inner.emit_func_output(out)
    gvar = g.builder.add_func(inner.get()["inner"].without_attr("global_symbol"), "pairs")
    whole = g.builder.emit(relax.Call(gvar, [x.expr, relax.Tuple([y.expr, x.expr])]))
    which = g.rng.randrange(2)
    found = (Operand(None, x.array + x.array, x.is_exact), Operand(None, -y.array, y.is_exact))[
        which
    ]
    return Operand(relax.TupleGetItem(whole, which), found.array, found.is_exact)


def loop(g: Any) -> Operand | None:
    """A function that calls itself until a counter has run down."""
    x = g.pick(lambda t: is_float(t) and is_plain(t))
    if x is None:
        return None
    info = struct_info_with_symbols(x, {})
    count, value = relax.Var("count", relax.TensorStructInfo([], "int64")), relax.Var("value", info)
    shell = relax.Function([count, value], relax.SeqExpr([], value), info)
    gvar = g.builder.add_func(relax.BlockBuilder().normalize(shell), "loop")
    is_over = relax.Var("is_over", relax.TensorStructInfo([], "bool"))
    less = relax.Var("less", count.struct_info)
    twice = relax.Var("twice", info)
    again = relax.Var("again", info)
    steps = relax.BindingBlock([
        relax.VarBinding(less, op.subtract(count, relax.const(1, "int64"))),
        relax.VarBinding(twice, op.add(value, value)),
        relax.VarBinding(again, relax.Call(gvar, [less, twice], sinfo_args=[])),
    ])  # fmt: skip
    result = relax.Var("result", info)
    choice = relax.If(is_over, relax.SeqExpr([], value), relax.SeqExpr([steps], again))
    body = relax.BindingBlock([
        relax.VarBinding(is_over, op.less_equal(count, relax.const(0, "int64"))),
        relax.VarBinding(result, choice),
    ])  # fmt: skip
    func = relax.Function([count, value], relax.SeqExpr([body], result), info)
    g.builder.update_func(gvar, relax.BlockBuilder(g.builder.get()).normalize(func))
    rounds = g.rng.randint(0, 3)
    made = relax.Call(gvar, [relax.const(rounds, "int64"), x.expr])
    return Operand(made, x.array * x.array.dtype.type(2**rounds), x.is_exact)


def shape_value(g: Any) -> Operand | None:
    """A tensor whose shape is another tensor's, as a value."""
    x = g.pick(lambda t: is_number(t) and has_axes(t))
    if x is None:
        return None
    shape = g.builder.emit(op.shape_of(x.expr))
    if g.rng.random() < 0.5:
        names = [tir.Var(f"s{len(g.symbols) + i}", "int64") for i in range(x.array.ndim)]
        g.symbols.extend(zip(names, x.array.shape, strict=True))
        shape = g.builder.match_cast(shape, relax.ShapeStructInfo(names))
    dims = shape.struct_info.values
    info = relax.TensorStructInfo(dims, str(x.array.dtype)) if dims else None
    if g.rng.random() < 0.5:
        made = g.builder.emit(op.ones(shape, str(x.array.dtype)))
        found = Operand(made, np.ones_like(x.array), True)
    else:
        flat = g.builder.emit(op.reshape(x.expr, (-1,))) if x.array.size else x.expr
        found = Operand(g.builder.emit(op.reshape(flat, shape)), x.array, x.is_exact)
    # operators know the extents of tensors whose shapes are written out
    return (
        found
        if info is None
        else Operand(g.builder.match_cast(found.expr, info), found.array, found.is_exact)
    )


def check_of_tuple(g: Any) -> Operand | None:
    """A check of a tuple that names extents of its fields anew."""
    x = g.pick(lambda t: has_axes(t) and t.expr.struct_info.dimensions is not None)
    y = g.pick(lambda _: True)
    if x is None:
        return None
    dims: list[Any] = list(x.expr.struct_info.dimensions)
    var = tir.Var(f"t{len(g.symbols)}", "int64")
    g.symbols.append((var, x.array.shape[0]))
    dims[0] = var
    fields = [relax.TensorStructInfo(dims, str(x.array.dtype)), y.expr.struct_info]
    whole = g.builder.emit(relax.Tuple([x.expr, y.expr]))
    checked = g.builder.match_cast(whole, relax.TupleStructInfo(fields))
    return Operand(relax.TupleGetItem(checked, 0), x.array, x.is_exact)


FUNCTIONS: list[Draw] = [
    inplace, inplace, function_of_tuple, loop, shape_value, check_of_tuple,
]  # fmt: skip
