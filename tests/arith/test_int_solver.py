from __future__ import annotations

import itertools
import random

import pytest

import tvm
from tvm import TVMError, arith, te, tir
from tvm.arith import Analyzer
from tvm.ir import structural_equal
from tvm.tir import Range
from tvm.tir.stmt_functor import substitute


def same(a: object, b: object) -> bool:
    """Whether two expressions are equal, whatever their form."""
    return Analyzer().can_prove_equal(a, b)


def test_a_unique_solution() -> None:
    x, y = te.var("x"), te.var("y")
    solution = arith.solve_linear_equations([tir.EQ(x + y, 20), tir.EQ(x - y, 10)], [x, y])
    assert list(solution.dst.variables) == []
    assert solution.src_to_dst[x].value == 15 and solution.src_to_dst[y].value == 5
    assert not solution.dst.relations


def test_variables_that_stay_free_are_new() -> None:
    x, y, z = te.var("x"), te.var("y"), te.var("z")
    problem = [tir.EQ(x + y + z, 15), tir.EQ(x + y, 10)]
    solution = arith.solve_linear_equations(problem, [x, y, z], {})
    [n0] = solution.dst.variables
    assert n0.name == "n0"
    assert structural_equal(solution.src_to_dst[x], n0 + 10)
    assert same(solution.src_to_dst[y], -n0)
    assert solution.src_to_dst[z].value == 5


def test_ranges_of_new_variables_are_inferred() -> None:
    x, y = te.var("x"), te.var("y")
    ranges = {x: Range.from_min_extent(-5, 10), y: Range.from_min_extent(0, 10)}
    solution = arith.solve_linear_equations([tir.EQ(x + y, 0)], [x, y], ranges)
    [n0] = solution.dst.variables
    assert structural_equal(solution.src_to_dst[x], n0)
    assert same(solution.src_to_dst[y], -n0) and same(solution.dst_to_src[n0], -y)
    assert (solution.dst.ranges[n0].min.value, solution.dst.ranges[n0].extent.value) == (-9, 10)
    [relation] = solution.dst.relations
    assert isinstance(relation, tir.LE)
    assert relation.a.value == -5 and relation.b is n0


@pytest.mark.parametrize("last", [5, 1])
def test_equations_without_solution(last: int) -> None:
    x, y = te.var("x"), te.var("y")
    problem = [tir.EQ(x + y, 0), tir.EQ(x - y, 0), tir.EQ(x * 2, last)]
    solution = arith.solve_linear_equations(problem, [x, y], {})
    assert list(solution.dst.variables) == []
    [relation] = solution.dst.relations
    assert relation.value == 0
    assert len(solution.src_to_dst) == 0 and len(solution.dst_to_src) == 0


def test_right_hand_sides_may_be_symbolic() -> None:
    x, n = te.var("x"), te.var("n")
    solution = arith.solve_linear_equations([tir.EQ(x * 4, n)], [x])
    assert same(solution.src_to_dst[x], n // 4)
    [relation] = solution.dst.relations
    assert structural_equal(relation, tir.EQ(n % 4, 0))


def test_equations_are_equivalent_to_their_solution() -> None:
    """Both systems have the same solutions in a box, and the maps are inverse to each other."""
    rng = random.Random(3)
    for _ in range(40):
        names = [te.var(name) for name in "xyz"]
        rows = [
            ([rng.randint(-3, 3) for _ in names], rng.randint(-4, 4))
            for _ in range(rng.randint(1, 3))
        ]
        problem = [
            tir.EQ(sum((v * c for c, v in zip(row, names, strict=True)), tir.const(0)), value)
            for row, value in rows
        ]
        ranges = {v: Range.from_min_extent(-3, 7) for v in names}
        found = arith.solve_linear_equations(problem, names, ranges)
        for point in itertools.product(range(-3, 4), repeat=3):
            holds = all(
                sum(c * p for c, p in zip(row, point, strict=True)) == value for row, value in rows
            )
            if holds:
                at = dict(zip(names, map(tir.const, point), strict=True))
                new = {v: number(e, at) for v, e in found.dst_to_src.items()}
                back = {v: tir.const(value) for v, value in new.items()}
                assert [number(found.src_to_dst[v], back) for v in names] == list(point)
                assert all(number(r, back) for r in found.dst.relations)
                assert all(is_inside(new[v], r, back) for v, r in found.dst.ranges.items())


def number(expr: tir.PrimExpr, values: dict) -> int:
    return int(Analyzer().simplify(substitute(expr, values)))


def is_inside(value: int, domain: Range, values: dict) -> bool:
    low = number(domain.min, values)
    return low <= value < low + number(domain.extent, values)


def test_bounds_that_meet_fix_a_variable() -> None:
    x, y = te.var("x"), te.var("y")
    problem = [tir.GE(x + y, 10), tir.GE(x - y, 2), tir.LE(x, 6)]
    solution = arith.solve_linear_inequalities(problem, [x, y])
    for var, value in ((x, 6), (y, 4)):
        assert solution.ranges[var].min.value == value and solution.ranges[var].extent.value == 1
    moved = arith.solve_linear_inequalities(problem, [x, y], deskew_range=True)
    assert not moved.dst.variables and not moved.dst.ranges and not moved.dst.relations
    assert moved.src_to_dst[x].value == 6 and moved.src_to_dst[y].value == 4


def test_ranges_in_terms_of_later_variables() -> None:
    x, y = te.var("x"), te.var("y")
    ranges = {x: Range(-100, 100), y: Range(0, 10)}
    problem = [tir.LE(x + y, 20), tir.GE(x - y, 10)]
    solution = arith.solve_linear_inequalities(problem, [x, y], ranges)
    assert (solution.ranges[y].min.value, solution.ranges[y].extent.value) == (0, 6)
    assert structural_equal(solution.ranges[x].min, y + 10)
    assert solution.ranges[x].extent.value == 11

    moved = arith.solve_linear_inequalities(problem, [x, y], ranges, deskew_range=True)
    x_new, y_new = moved.dst.variables
    [relation] = moved.dst.relations
    assert structural_equal(relation, Analyzer().simplify(y_new * 2 + x_new <= 10))
    assert [(r.min.value, r.extent.value) for r in map(moved.dst.ranges.get, (x_new, y_new))] == [
        (0, 11), (0, 6),
    ]  # fmt: skip
    assert same(moved.src_to_dst[x], x_new + (y_new + 10))
    assert same(moved.src_to_dst[y], y_new)
    assert same(moved.dst_to_src[x_new], x - y - 10) and same(moved.dst_to_src[y_new], y)


def test_what_is_not_linear_is_a_relation() -> None:
    x, y, z = te.var("x"), te.var("y"), te.var("z")
    problem = [tir.LE(x, 6), tir.GE(x, 6), tir.GE(x - z * y, 0), tir.LE(x - z * y, 0)]
    solution = arith.solve_linear_inequalities(problem, [x, y, z])
    assert solution.ranges[x].min.value == 6 and solution.ranges[x].extent.value == 1
    assert any(structural_equal(r, tir.EQ(x, z * y)) for r in solution.relations)
    moved = arith.solve_linear_inequalities(problem, [x, y, z], deskew_range=True)
    assert moved.src_to_dst[x].value == 6
    assert moved.src_to_dst[y] is y and moved.src_to_dst[z] is z


def test_inequalities_without_solution() -> None:
    x = te.var("x0")
    ranges = {x: Range.from_min_extent(-20, 41)}
    problem = [-x - 4 <= -5 * x + 2, x * 4 + 5 <= x * 5]
    moved = arith.solve_linear_inequalities(problem, [x], ranges, deskew_range=True)
    assert not moved.dst.variables and not moved.src_to_dst and not moved.dst_to_src
    assert [r.value for r in moved.dst.relations] == [0]
    solution = arith.solve_linear_inequalities(problem, [x], ranges)
    assert not solution.variables and not solution.ranges
    assert [r.value for r in solution.relations] == [0]


def test_inequalities_are_equivalent_to_their_solution() -> None:
    rng = random.Random(7)
    for _ in range(12):
        names = [te.var(name) for name in "xyz"]
        problem = [
            sum((v * rng.randint(-2, 2) for v in names), tir.const(0)) <= rng.randint(-3, 4)
            for _ in range(rng.randint(1, 3))
        ]
        problem = [tvm.tir.const(True, "bool") if isinstance(p, bool) else p for p in problem]
        ranges = {v: Range.from_min_extent(-2, 5) for v in names}
        found = arith.solve_linear_inequalities(problem, names, ranges)
        moved = arith.solve_linear_inequalities(problem, names, ranges, deskew_range=True)
        for point in itertools.product(range(-3, 4), repeat=3):
            at = dict(zip(names, map(tir.const, point), strict=True))
            holds = all(-2 <= p < 3 for p in point) and all(number(p, at) for p in problem)
            says = all(number(r, at) for r in found.relations)
            says = says and all(is_inside(int(at[v]), r, at) for v, r in found.ranges.items())
            assert says == holds
            if holds:
                new = {v: tir.const(number(e, at)) for v, e in moved.dst_to_src.items()}
                assert [number(moved.src_to_dst[v], new) for v in names] == list(point)
                assert all(number(r, new) for r in moved.dst.relations)
                assert all(is_inside(int(new[v]), r, new) for v, r in moved.dst.ranges.items())


def test_bounds_of_a_range() -> None:
    group = arith.IntGroupBounds.from_range(Range.from_min_extent(2, 7))
    assert (int(group.lower[0]), int(group.upper[0]), len(group.equal)) == (2, 8, 0)
    best = group.find_best_range()
    assert (int(best.min), int(best.extent)) == (2, 7)
    single = arith.IntGroupBounds.from_range(Range.from_min_extent(3, 1))
    assert [int(e) for e in single.equal] == [3] and not single.lower
    x = te.var("x")
    group = arith.int_solver.IntGroupBounds(2, [x * 2 + 1], [], [11, x * 2 + 8])
    best = group.find_best_range()
    assert same(best.min, x + 1) and int(best.extent) == 4
    assert arith.IntGroupBounds(1, [x], [], []).find_best_range() is None


def test_constraints_as_one_argument() -> None:
    x, y = te.var("x"), te.var("y")
    problem = arith.IntConstraints([x, y], {}, [tir.EQ(x + y, 4), tir.EQ(x - y, 2)])
    assert arith.solve_linear_equations(problem).src_to_dst[x].value == 3
    with pytest.raises(TVMError, match="say their variables"):
        arith.solve_linear_equations(problem, [x])


def test_without_unknowns_equations_stay() -> None:
    x, y = te.var("x"), te.var("y")
    equations = [tir.EQ(x + y, 20), tir.EQ(x - y, 10)]
    found = arith.solve_linear_equations(equations)
    assert not found.src_to_dst and not found.dst_to_src and not found.src.variables
    assert structural_equal(list(found.dst.relations), equations, map_free_vars=False)


def test_inequalities_become_conditions_of_one_variable_each() -> None:
    x, y = tvm.tir.Var("x", "int32"), tvm.tir.Var("y", "int32")
    ranges = {x: tvm.ir.Range(-9, 10), y: tvm.ir.Range(-9, 10)}
    relations = [x + y <= 5, 2 * x - y >= 3]
    found = tvm.arith._ffi_api.SolveInequalitiesAsCondition([x, y], ranges, relations)
    holds = tvm.te.all(tvm.tir.const(True, "bool"), *found)
    simplify = tvm.arith.Analyzer().simplify
    for a in range(-9, 10):
        for b in range(-9, 10):
            value = tvm.tir.stmt_functor.substitute(holds, {x: a, y: b})
            assert bool(simplify(value)) == (a + b <= 5 and 2 * a - b >= 3)
