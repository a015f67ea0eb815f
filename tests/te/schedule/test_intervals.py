import random

import pytest

from tvm import tir
from tvm.arith import Analyzer
from tvm.te.schedule.intervals import Interval, from_range, interval_of, to_range, union
from tvm.tir.stmt_functor import substitute

X, Y, N = tir.Var("x", "int32"), tir.Var("y", "int32"), tir.Var("n", "int32")


def _random_expression(rng: random.Random, depth: int) -> tir.expr.PrimExpr:
    if depth == 0:
        return rng.choice([X, Y, tir.const(rng.randint(-5, 5))])
    a, b = _random_expression(rng, depth - 1), _random_expression(rng, depth - 1)
    kind = rng.randrange(7)
    if kind == 0:
        return a * rng.randint(-3, 3)
    if kind in (1, 2):
        divisor = rng.randint(1, 5)
        return a // divisor if kind == 1 else a % divisor
    if kind == 3:
        return tir.op.minimum(a, b)
    if kind == 4:
        return tir.op.maximum(a, b)
    return a + b if kind == 5 else a - b


@pytest.mark.parametrize("seed", range(100))
def test_an_interval_holds_every_value(seed: int) -> None:
    rng = random.Random(seed)
    expr = _random_expression(rng, 3)
    bounds = {v: sorted([rng.randint(-6, 6), rng.randint(-6, 6)]) for v in (X, Y)}
    sets = {v: Interval(tir.const(low), tir.const(high)) for v, (low, high) in bounds.items()}
    analyzer = Analyzer()
    found = interval_of(expr, sets, analyzer)
    values = [
        int(analyzer.simplify(substitute(expr, {X: tir.const(x), Y: tir.const(y)})))
        for x in range(bounds[X][0], bounds[X][1] + 1)
        for y in range(bounds[Y][0], bounds[Y][1] + 1)
    ]
    low = None if found.low is None else int(analyzer.simplify(found.low))
    high = None if found.high is None else int(analyzer.simplify(found.high))
    assert (low is None or low <= min(values)) and (high is None or max(values) <= high)


def test_symbolic_ends_stay_symbolic() -> None:
    analyzer = Analyzer()
    found = interval_of(X + N * 4, {X: from_range(tir.Range(0, 4))}, analyzer)
    domain = to_range(found, tir.Range(0, 100), analyzer)
    assert domain.extent.value == 4 and not isinstance(domain.min, tir.IntImm)


def test_a_remainder_within_one_block_is_exact() -> None:
    found = interval_of(X % 8, {X: from_range(tir.Range(9, 12))}, Analyzer())
    assert (found.low.value, found.high.value) == (1, 3)


def test_loads_that_vary_are_unbounded() -> None:
    buffer = tir.decl_buffer((8,), "int32", name="table")
    sets = {X: from_range(tir.Range(0, 4))}
    assert not interval_of(buffer[X] + 1, sets, Analyzer()).is_bounded
    assert interval_of(buffer[N] + X, sets, Analyzer()).is_bounded


def test_union_of_neighbours() -> None:
    analyzer = Analyzer()
    both = union(Interval(N, N + 3), Interval(N + 1, N + 5), analyzer)
    assert to_range(both, tir.Range(0, 1), analyzer).extent.value == 6


def test_an_empty_loop_reads_nothing() -> None:
    analyzer = Analyzer()
    found = interval_of(X * 2, {X: from_range(tir.Range(0, 0))}, analyzer)
    assert to_range(found, tir.Range(0, 9), analyzer).extent.value == 0
