"""What random relax programs are made of beside operators: loop programs, tuples, checks, choices, functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relax, te, tir, topi
from tvm.relax import op

from .random_operands import Draw, Operand, has_axes, is_float, is_number


def _scaled(x: te.Tensor) -> te.Tensor:
    return te.compute(x.shape, lambda *i: x(*i) * tir.const(2, x.dtype) + tir.const(1, x.dtype))


def loop_program(g: Any) -> Operand | None:
    x = g.pick(is_number)
    if x is None:
        return None
    found = x.array * x.array.dtype.type(2) + x.array.dtype.type(1)
    return Operand(g.builder.call_te(_scaled, x.expr), found, x.is_exact)


def loop_program_of_two(g: Any) -> Operand | None:
    """A loop program with two results, one of which is taken."""
    x = g.pick(is_number)
    if x is None:
        return None
    pair = g.builder.emit_te(lambda t: [topi.negative(t), topi.multiply(t, t)], x.expr)
    which = g.rng.randrange(2)
    return Operand(
        relax.TupleGetItem(pair, which), [-x.array, x.array * x.array][which], x.is_exact
    )


def nested_tuple(g: Any) -> Operand | None:
    x, y, z = [g.pick(lambda _: True) for _ in range(3)]
    whole = g.builder.emit(relax.Tuple([x.expr, relax.Tuple([y.expr, z.expr])]))
    inner = g.builder.emit(relax.TupleGetItem(whole, 1))
    if g.rng.random() < 0.3:
        return Operand(relax.TupleGetItem(whole, 0), x.array, x.is_exact)
    which = g.rng.randrange(2)
    found = (y, z)[which]
    return Operand(relax.TupleGetItem(inner, which), found.array, found.is_exact)


def alias(g: Any) -> Operand | None:
    x = g.pick(lambda _: True)
    return Operand(x.expr, x.array, x.is_exact)


def check(g: Any) -> Operand | None:
    """A check that names extents anew."""
    x = g.pick(lambda t: has_axes(t) and t.expr.struct_info.dimensions is not None)
    if x is None:
        return None
    dims: list[Any] = list(x.expr.struct_info.dimensions)
    for axis in g.rng.sample(range(len(dims)), g.rng.randint(0, len(dims))):
        var = tir.Var(f"m{len(g.symbols)}", "int64")
        g.symbols.append((var, x.array.shape[axis]))
        dims[axis] = var
    info = relax.TensorStructInfo(dims, str(x.array.dtype))
    return Operand(g.builder.match_cast(x.expr, info), x.array, x.is_exact)


def _branch(g: Any, x: Operand, depth: int = 0) -> tuple[relax.SeqExpr, np.ndarray]:
    """A few operators of a tensor, and choices among them, as the body of a branch."""
    value, array = x.expr, x.array
    bindings = []
    for i in range(g.rng.randint(0, 3)):
        value, array = g.rng.choice(
            [
                (op.add(value, value), array + array),
                (op.negative(value), -array),
                (op.abs(value), np.abs(array)),
            ]
        )
        var = relax.Var(f"b{i}", x.expr.struct_info)
        bindings.append(relax.VarBinding(var, value))
        value = var
    if depth < 2 and g.rng.random() < 0.3:
        first, second = [_branch(g, Operand(value, array, x.is_exact), depth + 1) for _ in "ab"]
        flag = g.rng.random() < 0.5
        var = relax.Var("c", x.expr.struct_info)
        asked = relax.const(np.array(flag), "bool")
        bindings.append(relax.VarBinding(var, relax.If(asked, first[0], second[0])))
        value, array = var, (first if flag else second)[1]
    return relax.SeqExpr([relax.BindingBlock(bindings)] if bindings else [], value), array


def choice(g: Any) -> Operand | None:
    """A choice by what a tensor is."""
    if g.builder.current_block_is_dataflow():
        return None
    asked = g.pick(lambda t: is_number(t) and t.is_exact and t.array.size > 0)
    x = g.pick(is_number)
    if asked is None or x is None:
        return None
    y = g.pick(lambda t: t.array.dtype == x.array.dtype and _same_info(t, x))
    limit = asked.array.dtype.type(g.rng.randint(-2, 2))
    greatest = g.builder.emit(op.max(asked.expr))
    cond = g.builder.emit(op.greater(greatest, relax.const(limit, str(asked.array.dtype))))
    branches = [_branch(g, operand) for operand in (x, y)]
    made = relax.If(cond, branches[0][0], branches[1][0])
    found = branches[0 if asked.array.max() > limit else 1][1]
    return Operand(made, found, x.is_exact and y.is_exact)


def _same_info(a: Operand, b: Operand) -> bool:
    return bool(a.expr.struct_info == b.expr.struct_info)


def function_call(g: Any) -> Operand | None:
    """A call of a function of the module."""
    x = g.pick(lambda t: is_float(t) and is_plain(t))
    if x is None:
        return None
    info = struct_info_with_symbols(x, {})
    param = relax.Var("x", info)
    bindings, value = [], param
    for i in range(g.rng.randint(1, 3)):
        var = relax.Var(f"f{i}", info)
        bindings.append(relax.VarBinding(var, op.add(value, param)))
        value = var
    block = (relax.DataflowBlock if g.rng.random() < 0.5 else relax.BindingBlock)(bindings)
    func = relax.Function([param], relax.SeqExpr([block], value), info)
    gvar = g.builder.add_func(relax.BlockBuilder().normalize(func), "helper")
    return Operand(relax.Call(gvar, [x.expr]), x.array * (len(bindings) + 1), x.is_exact)


def struct_info_with_symbols(x: Operand, own: dict[Any, tir.Var]) -> relax.TensorStructInfo:
    """The struct info of a parameter for a tensor, with symbols of the function."""
    dims = [
        own.setdefault(dim, tir.Var(f"k{len(own)}", "int64")) if isinstance(dim, tir.Var) else dim
        for dim in x.expr.struct_info.dimensions
    ]
    return relax.TensorStructInfo(dims, str(x.array.dtype))


def is_plain(x: Operand) -> bool:
    """Whether extents are numbers and symbols."""
    dims = x.expr.struct_info.dimensions
    return dims is not None and all([isinstance(dim, (tir.IntImm, tir.Var)) for dim in dims])


STRUCTURE: list[Draw] = [
    loop_program, loop_program_of_two, nested_tuple, alias, check, choice, choice, choice,
    function_call,
]  # fmt: skip
