"""The analyzer: what lowering needs proven and simplified."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tvm
from tvm import tir
from tvm.arith import Analyzer, ConstIntBound, Extension, ModularSet, ProofStrength
from tvm.arith.analyzer import ConstraintScope
from tvm.ir import assert_structural_equal, structural_equal
from tvm.support import compiling, deep
from tvm.tir.expr import as_expr

INT = "int32"


def variables(names: str, dtype: str = INT) -> list[Any]:
    return [tir.Var(name, dtype) for name in names.split()]


def bound_over(**extents: int) -> tuple[Analyzer, list[Any]]:
    """An analyzer, and variables that run from 0 to the given extents."""
    analyzer = Analyzer()
    found = variables(" ".join(extents))
    for var, extent in zip(found, extents.values(), strict=True):
        analyzer.bind(var, tir.Range(0, extent))
    return analyzer, found


def assert_simplifies(analyzer: Analyzer, before: Any, after: Any) -> None:
    found = analyzer.simplify(before)
    wanted = as_expr(after, before.dtype)
    assert structural_equal(found, wanted, map_free_vars=False), f"{found} instead of {wanted}"


def test_parts_of_a_division_are_put_together() -> None:
    analyzer, (x, y, z) = Analyzer(), variables("x y z")
    assert_simplifies(analyzer, (x // 4) * 4 + x % 4, x)
    assert_simplifies(analyzer, (x // 4) % 4 * 4 + x % 4, x % 16)
    assert_simplifies(analyzer, (x // 12) * 12 + (x // 4) % 3 * 4 + x % 4, x)
    assert_simplifies(analyzer, y + (x // 8) * 8 + z + x % 8, y + z + x)
    assert_simplifies(analyzer, (x // 4) * 8 + x % 4 * 2, x * 2)


def test_fused_and_split_axes_collapse() -> None:
    analyzer, (i, j) = bound_over(i=24, j=16)
    fused = i * 16 + j
    assert_simplifies(analyzer, fused // 16, i)
    assert_simplifies(analyzer, fused % 16, j)
    assert_simplifies(analyzer, (fused // 4) // 4, i)
    assert_simplifies(analyzer, (fused // 4) % 4, j // 4)
    assert_simplifies(analyzer, fused // 32 * 32 + fused % 32, fused)
    assert_simplifies(analyzer, (i * 16 + j) // 64, i // 4)


def test_symbolic_extents_are_divided_out() -> None:
    analyzer, (i, j) = Analyzer(), variables("i j")
    m = tir.SizeVar("m", INT)
    analyzer.update(m, ConstIntBound(1, 1 << 31))
    analyzer.bind(j, tir.Range(0, m))
    assert_simplifies(analyzer, (i * m + j) // m, i)
    assert_simplifies(analyzer, (i * m + j) % m, j)


def test_split_without_tail_needs_no_guard() -> None:
    analyzer, (outer, inner) = bound_over(outer=8, inner=16)
    assert analyzer.can_prove(tir.likely(outer * 16 + inner < 128))
    assert not analyzer.can_prove(tir.likely(outer * 16 + inner < 127))


def test_split_with_tail_keeps_its_guard() -> None:
    analyzer = Analyzer()
    outer, inner = variables("outer inner")
    n = tir.SizeVar("n", INT)
    analyzer.bind(outer, tir.Range(0, (n + 15) // 16))
    analyzer.bind(inner, tir.Range(0, 16))
    assert not analyzer.can_prove(outer * 16 + inner < n)
    assert analyzer.can_prove(outer * 16 + inner < (n + 15) // 16 * 16)
    assert analyzer.can_prove(outer * 16 + inner <= n + 15)
    with analyzer.constraint_scope(tir.likely(outer * 16 + inner < n)):
        assert analyzer.can_prove(outer * 16 + inner < n)
        assert analyzer.can_prove(outer * 16 < n)
        assert analyzer.can_prove(n - 1 >= outer * 16 + inner)
    assert not analyzer.can_prove(outer * 16 + inner < n)


def test_padding_conditions_of_a_convolution() -> None:
    analyzer, (oh, kh) = bound_over(oh=56, kh=3)
    row = oh + kh
    condition = tir.all(row >= 1, row < 57)
    assert not analyzer.can_prove(condition)
    padded = tir.if_then_else(condition, tir.max(row - 1, 0), -1)
    assert_simplifies(
        analyzer,
        padded,
        tir.if_then_else(tir.And(tir.LE(tir.const(1), row), row < 57), row - 1, -1),
    )
    with analyzer.constraint_scope(kh.equal(1)):
        assert analyzer.can_prove(condition)


def test_ceil_divisions_agree() -> None:
    analyzer, n = Analyzer(), tir.SizeVar("n", INT)
    assert analyzer.can_prove_equal((n - 1) // 16 + 1, (n + 15) // 16)
    assert analyzer.can_prove((n + 15) // 16 * 16 >= n)
    assert analyzer.can_prove((n + 15) // 16 * 16 - n <= 15)
    assert_simplifies(analyzer, tir.min((n + 15) // 16 * 16, n), n)


def test_facts_of_several_terms_combine() -> None:
    analyzer, (a, b, c) = Analyzer(), variables("a b c")
    with analyzer.constraint_scope(a < b), analyzer.constraint_scope(b < c):
        assert analyzer.can_prove(a + 1 < c)
        assert not analyzer.can_prove(a + 2 < c)
        assert_simplifies(analyzer, tir.min(a, c), a)
    assert not analyzer.can_prove(a < c)


def test_conditions_hold_in_their_branch() -> None:
    analyzer, (x,) = Analyzer(), variables("x")
    chosen = tir.if_then_else(x < 4, tir.min(x, 10), tir.max(x, 2))
    assert_simplifies(analyzer, chosen, x)
    assert_simplifies(
        analyzer,
        tir.Select(x < 4, x // 4 + x % 4, x),
        analyzer.simplify(tir.Select(x < 4, x // 4 + x % 4, x)),
    )


def test_remainder_facts() -> None:
    analyzer, (n,) = Analyzer(), variables("n")
    with analyzer.constraint_scope((n % 16).equal(0)):
        assert_simplifies(analyzer, n % 4, 0)
        assert_simplifies(analyzer, (n + 3) // 4, n // 4)
    analyzer.update(n, ModularSet(8, 0))
    assert_simplifies(analyzer, (n + 5) % 8, 5)


def test_bindings_replace_variables() -> None:
    analyzer, (x, y) = Analyzer(), variables("x y")
    analyzer.bind(x, y + 1)
    assert_simplifies(analyzer, x - y, 1)
    analyzer.bind(x, tir.Range.from_min_extent(3, 1), True)
    assert_simplifies(analyzer, x + 0, 3)


def test_bounds() -> None:
    analyzer, (i, j) = bound_over(i=8, j=16)
    found = analyzer.const_int_bound(i * 16 + j - 3)
    assert (found.min_value, found.max_value) == (-3, 124)
    everything = analyzer.const_int_bound(tir.Var("k", "int64"))
    assert everything.max_value == ConstIntBound.POS_INF
    assert analyzer.const_int_bound(tir.SizeVar("s", "int64")).min_value == 0


def test_floats_obey_exact_laws_only() -> None:
    analyzer, (f, g) = Analyzer(), variables("f g", "float32")
    zero, one = tir.FloatImm("float32", 0.0), tir.FloatImm("float32", 1.0)
    negative_zero = tir.FloatImm("float32", -0.0)
    for kept in (
        tir.Sub(f, f), tir.Mul(f, zero), tir.Add(tir.Add(f, g), one), tir.EQ(f, f),
        tir.Add(f, zero), tir.Sub(f, negative_zero), tir.Sub(zero, f),
    ):  # fmt: skip
        assert analyzer.simplify(kept) is kept
    assert analyzer.simplify(tir.Add(f, negative_zero)) is f
    assert analyzer.simplify(tir.Sub(f, zero)) is f
    assert analyzer.simplify(tir.Mul(f, one)) is f
    negated = tir.Not(tir.LT(f, g))
    assert analyzer.simplify(negated) is negated


def test_narrow_integers_wrap_around() -> None:
    analyzer, (u, v) = Analyzer(), variables("u v", "uint8")
    kept = tir.LT(tir.Add(u, tir.IntImm("uint8", 1)), tir.Add(v, tir.IntImm("uint8", 1)))
    assert analyzer.simplify(kept) is kept
    assert_simplifies(analyzer, tir.Sub(u, u), 0)
    folded = analyzer.simplify(tir.Add(tir.IntImm("uint8", 250), tir.IntImm("uint8", 10)))
    assert folded.value == 4
    assert analyzer.const_int_bound(tir.Add(u, u)).max_value == 255


def test_widened_indices_are_seen_through() -> None:
    analyzer, (i, j) = bound_over(i=8, j=16)
    wide = tir.Cast("int64", i * 16 + j)
    assert analyzer.can_prove_equal(wide, tir.Cast("int64", i) * 16 + tir.Cast("int64", j))
    assert_simplifies(analyzer, wide // 16, tir.Cast("int64", i))


def test_vectors() -> None:
    analyzer, (i,) = bound_over(i=8)
    lanes = tir.Ramp(i * 16, 1, 16)
    sixteen = tir.Broadcast(16, 16)
    assert_simplifies(analyzer, tir.FloorDiv(lanes, sixteen), tir.Broadcast(i, 16))
    assert_simplifies(analyzer, tir.FloorMod(lanes, sixteen), tir.Ramp(0, 1, 16))
    assert_simplifies(analyzer, tir.Add(lanes, sixteen), tir.Ramp(i * 16 + 16, 1, 16))
    assert_simplifies(analyzer, tir.LT(lanes, tir.Broadcast(128, 16)), tir.const(True, "uint1x16"))


def test_unchanged_expressions_are_the_same_object() -> None:
    analyzer, (i, j) = bound_over(i=8, j=16)
    for expr in (i * 16 + j, i - 1, i * 4 + j // 4, tir.Select(i < 4, i, j)):
        assert analyzer.simplify(expr) is expr
    again = i * 16 + j
    assert analyzer.simplify(again) is again


@pytest.mark.parametrize("operation", [tir.Add, tir.Sub, tir.Min, tir.Mul, tir.FloorDiv])
def test_deep_chains(operation: Any) -> None:
    analyzer, (x, y) = Analyzer(), variables("x y")
    expr = x
    for number in range(50_000):
        expr = operation(expr, y if number % 2 else tir.IntImm(INT, 3))
    with compiling():
        deep(analyzer.simplify)(expr)
        deep(analyzer.const_int_bound)(expr)
        deep(analyzer.modular_set)(expr)


def test_deep_chains_of_distinct_terms() -> None:
    analyzer = Analyzer()
    expr: Any = tir.IntImm(INT, 0)
    for number in range(5_000):
        expr = tir.Add(expr, tir.Var(f"v{number}", INT))
    assert analyzer.can_prove_equal(expr, expr)
    analyzer.simplify(expr)


def test_opaque_calls_are_not_merged() -> None:
    analyzer = Analyzer()
    first, second = (tir.call_extern(INT, "rand") for _ in range(2))
    assert not analyzer.can_prove_equal(first, second)


def test_proofs_from_many_facts_end_soon() -> None:
    analyzer = Analyzer()
    variables = [tir.Var(f"x{i}", "int32") for i in range(8)]
    for i, a in enumerate(variables):
        for b in variables[i + 1 :]:
            analyzer.facts.assume(a * 3 - b * 2 <= 7)
    total = variables[0] * 5
    for var in variables[1:]:
        total = total + var * 3
    looked_at: list[object] = []
    bound = analyzer.linear.bound
    analyzer.linear.bound = lambda form: looked_at.append(form) or bound(form)  # type: ignore[method-assign,func-returns-value]
    assert not analyzer.can_prove(total <= 101)
    assert 0 < len(looked_at) < 3000


def test_the_range_of_a_loop_says_nothing_where_the_loop_does_not_run() -> None:
    analyzer = Analyzer()
    n, k = tir.SizeVar("n", "int32"), tir.Var("k", "int32")
    steps = (n % 4 + 2) // 4
    analyzer.bind(k, tir.Range.from_min_extent(n // 4, steps))
    assert not analyzer.can_prove(steps >= 1)
    assert analyzer.can_prove(k >= n // 4)


def test_a_constraint_holds_inside_its_scope_only() -> None:
    n = tir.Var("n", "int32")
    analyzer = Analyzer()
    scope = analyzer.constraint_scope(n > 4)
    assert isinstance(scope, ConstraintScope)
    assert not analyzer.can_prove(n > 3)
    with scope:
        assert analyzer.can_prove(n > 3)
    assert not analyzer.can_prove(n > 3)


def test_symbolic_ends_of_ranges_prove_what_the_rules_do_not() -> None:
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    n, m = tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32")
    analyzer = Analyzer()
    analyzer.bind(i, tir.Range(0, n))
    analyzer.bind(j, tir.Range(0, m))
    hard = ProofStrength.SYMBOLIC_BOUND
    assert not analyzer.can_prove(i * m + j < n * m)
    assert analyzer.can_prove(i * m + j < n * m, hard)
    assert analyzer.can_prove(tir.all(n * m > i * m + j, i * m + j >= 0), hard)
    assert not analyzer.can_prove(i * m + j < n * m - 1, hard)
    with pytest.raises(ValueError):
        analyzer.can_prove(i * m + j < n * m, 7)


def test_extensions_change_what_is_simplified() -> None:
    x, y, z = [tir.Var(name, "int32") for name in "xyz"]
    analyzer = Analyzer()
    for var in (x, y):
        analyzer.update(var, ConstIntBound(2, 1000))
    mixed, narrowed = tir.any(tir.all(x < 5, y < 7), z < 2), tir.all(tir.EQ(z, 5), z + x < 8)
    assert str(analyzer.simplify(mixed)) == "x < 5 and y < 7 or z < 2"
    assert not analyzer.can_prove(x + y <= x * y)
    analyzer.enabled_extensions = Extension.ComparisonOfProductAndSum
    assert analyzer.can_prove(x + y <= x * y) and not analyzer.can_prove(x + y < x * y)
    assert str(analyzer.simplify(x * y * 2 > x + y)) == "T.bool(True)"
    analyzer.enabled_extensions = Extension.ConvertBooleanToAndOfOrs
    assert str(analyzer.simplify(mixed)) == "(x < 5 or z < 2) and (y < 7 or z < 2)"
    analyzer.enabled_extensions |= Extension.ApplyConstraintsToBooleanBranches
    assert str(analyzer.simplify(narrowed)) == "z == 5 and x < 3"
    with pytest.raises(ValueError):
        analyzer.enabled_extensions = 64


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "nearbyint"])
def test_roundings_of_constants_are_numbers(name: str) -> None:
    place = tir.Var("place", "float32")
    rounded = getattr(tir, name)(place + 0.25).astype("int32")
    known = tir.stmt_functor.substitute(rounded, {place: tir.const(2.5, "float32")})
    assert Analyzer().simplify(known).value == (3 if name in ("ceil", "round", "nearbyint") else 2)


def test_conditions_of_selects_join_whatever_their_lanes() -> None:
    x, i, all_lanes = tir.Var("x", "float32x2"), tir.Var("i", "int32"), tir.Var("c", "bool")
    zeros = tir.Broadcast(tir.const(0.0, "float32"), 2)
    each = tir.Ramp(i, 1, 2) < tir.Broadcast(tir.const(3, "int32"), 2)
    for outer, inner in ((each, all_lanes), (all_lanes, each)):
        joined = Analyzer().simplify(tir.Select(outer, tir.Select(inner, x, zeros), zeros))
        assert type(joined.condition) is tir.And and joined.condition.dtype == "uint1x2"


# ---- the classic forms of what the rules leave


def assert_same(found: Any, wanted: Any) -> None:
    assert structural_equal(found, wanted, map_free_vars=False), f"{found} instead of {wanted}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda x, y: x + 1 <= 100, lambda x, y: x <= 99),
        (lambda x, y: x * 2 > 7, lambda x, y: tir.LT(3, x)),
        (lambda x, y: x * -2 <= 5, lambda x, y: tir.LE(-2, x)),
        (lambda x, y: tir.floordiv(x, 4) <= 2, lambda x, y: x <= 11),
        (lambda x, y: tir.truncdiv(x, 4) >= 0, lambda x, y: tir.LE(-3, x)),
        (lambda x, y: x <= y + 3, lambda x, y: x <= y + 3),
    ],
)
def test_comparisons_stay_strict_or_not(before: Any, after: Any) -> None:
    x, y = tir.Var("x"), tir.Var("y")
    assert_same(Analyzer().rewrite_simplify(before(x, y)), after(x, y))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda x, y, z: y + (x + 5), lambda x, y, z: y + x + 5),
        (lambda x, y, z: tir.min(z, y + x) - x, lambda x, y, z: tir.min(z - x, y)),
        (lambda x, y, z: tir.floordiv(y + x * z, z), lambda x, y, z: tir.floordiv(y, z) + x),
        (lambda x, y, z: tir.max(y, tir.max(x, y)), lambda x, y, z: tir.max(x, y)),
    ],
)
def test_operands_keep_the_order_of_the_program(before: Any, after: Any) -> None:
    x, y, z = tir.Var("x"), tir.Var("y"), tir.SizeVar("z")
    assert_same(Analyzer().rewrite_simplify(before(x, y, z)), after(x, y, z))


def test_rules_alone_leave_negative_addends() -> None:
    x = tir.Var("x")
    assert_same(Analyzer().rewrite_simplify(x + 3 - 10), tir.Add(x, tir.const(-7)))
    assert_same(Analyzer().rewrite_simplify(x - (x + x)), tir.Sub(tir.const(0), x))
    assert_same(Analyzer().simplify(x + 3 - 10), tir.Sub(x, tir.const(7)))


def test_vscale_is_at_least_one() -> None:
    x, lanes = tir.Var("x"), tir.vscale() * 4
    analyzer = Analyzer()
    assert analyzer.simplify(tir.min(x, x + lanes)) is x
    assert analyzer.can_prove(lanes >= 4)
    assert analyzer.can_prove(tir.floormod(64, tir.vscale()) <= tir.vscale())
    assert analyzer.can_prove(tir.floordiv(lanes + 114, lanes) * lanes >= 115)
    assert not analyzer.can_prove(lanes >= 8)
    assert not analyzer.can_prove(tir.floormod(x, tir.vscale()) == 0)
    with analyzer.constraint_scope(tir.all(x >= 0, x < lanes)):
        assert_same(analyzer.simplify(tir.floordiv(x, lanes)), tir.const(0))


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("clz", (tir.const(1, "int64"),), 63),
        ("clz", (tir.const(-1),), 0),
        ("popcount", (tir.const(-1),), 32),
        ("shift_left", (1, 40), 0),
        ("shift_right", (-5, 40), -1),
    ],
)
def test_functions_of_constant_bits_are_constants(name: str, args: Any, value: int) -> None:
    call = tir.call_intrin("int32", f"tir.{name}", *args)
    assert_same(Analyzer().simplify(call), tir.const(value))


def test_alternatives_of_equal_last_values_are_joined() -> None:
    x, y, z = tir.Var("x"), tir.Var("y"), tir.Var("z")
    nested = tir.if_then_else(x < 5, tir.if_then_else(y < 5, z, 0), 0)
    both = tir.if_then_else(tir.And(x < 5, y < 5), z, 0)
    assert_same(Analyzer().simplify(nested), both)


def test_products_below_sums_of_their_factors() -> None:
    x, y = tir.Var("x"), tir.Var("y")
    analyzer = Analyzer()
    analyzer.enabled_extensions = Extension.ComparisonOfProductAndSum
    with analyzer.constraint_scope(tir.all(x > 0, y > 0, x <= 8)):
        assert analyzer.can_prove(x * y < (x + y) * 8)
        assert not analyzer.can_prove(x * y < (x + y) * 7)


def test_declared_bounds_may_be_infinite() -> None:
    x = tir.Var("x")
    analyzer = Analyzer()
    assert analyzer.const_int_bound(x).max_value == 2**31 - 1
    analyzer.update(x, ConstIntBound(ConstIntBound.NEG_INF, 4))
    assert analyzer.const_int_bound(x).min_value == ConstIntBound.NEG_INF
    with analyzer.constraint_scope(x > -3):
        found = analyzer.const_int_bound(x)
    assert (found.min_value, found.max_value) == (-2, 4)


@pytest.mark.parametrize(
    ("expr", "bounds"),
    [
        (lambda x, y: tir.floormod(x, y), (-4, 6)),
        (lambda x, y: tir.Let(tir.Var("z"), x, x + 1), (1, 7)),
        (lambda x, y: (x - 9).astype("float32").astype("int32"), (-9, -3)),
        (lambda x, y: (x * 1000).astype("float16").astype("int32"), (-(2**31), 2**31 - 1)),
    ],
)
def test_bounds_through_remainders_lets_and_floats(expr: Any, bounds: tuple[int, int]) -> None:
    x, y = tir.Var("x"), tir.Var("y")
    analyzer = Analyzer()
    analyzer.update(x, ConstIntBound(0, 6))
    analyzer.update(y, ConstIntBound(-5, 9))
    found = analyzer.const_int_bound(expr(x, y))
    assert (found.min_value, found.max_value) == bounds


def test_unknown_dimensions_are_not_equal() -> None:
    a, b = tir.Any(), tir.Any()
    assert not Analyzer().can_prove_equal(a, b)
    assert Analyzer().can_prove_equal(a, a)


def test_vector_divided_by_constant_zero_is_rejected() -> None:
    ramp, zero = tir.Ramp(1, 1, 2), tir.Broadcast(0, 2)
    for division in (tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod):
        with pytest.raises(tvm.TVMError, match="divisor other than zero"):
            Analyzer().rewrite_simplify(division(ramp, zero))


def test_float_of_an_integer_plus_zero_is_itself() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "float32")
    zero = tir.Broadcast(tir.const(0.0, "float32"), 4)
    number = tir.Cast("float32x4", tir.Ramp(x, 1, 4))
    assert_structural_equal(Analyzer().rewrite_simplify(number + zero), number)
    unknown = tir.Broadcast(y, 4) + zero  # -0.0 + 0.0 is 0.0
    assert not tvm.ir.structural_equal(Analyzer().rewrite_simplify(unknown), tir.Broadcast(y, 4))


def test_stride_of_a_ramp_has_the_dtype_of_its_base() -> None:
    ramp = tir.Ramp(tir.const(0, "int64"), 1, 4)
    assert ramp.stride.dtype == "int64"


def test_modular_sets_of_shifts_masks_and_let() -> None:
    x, y = variables("x y")
    analyzer = Analyzer()
    expected = {
        tir.shift_right(x * 4 + 2, 1): (2, 1),
        tir.bitwise_and(x * 16 + 6, 7): (0, 6),
        tir.bitwise_and(x * 4 + 6, 7): (4, 2),
        tir.Let(y, x * 10, y + 1): (10, 1),
    }
    for expr, (coefficient, base) in expected.items():
        found = analyzer.modular_set(expr)
        assert (found.coeff, found.base) == (coefficient, base), expr


def _as_and_of_ors(condition: tir.PrimExpr) -> tir.PrimExpr:
    analyzer = Analyzer()
    analyzer.enabled_extensions = Extension.ConvertBooleanToAndOfOrs
    return analyzer.simplify(condition)


def test_clauses_of_conjunctions_simplify_each_other() -> None:
    i, j, k = [tir.Var(name, "int32") for name in "ijk"]
    zero, ten, twenty = i.equal(0), j.equal(10), k.equal(20)
    cases = [
        (tir.all(tir.any(zero, ten), tir.any(ten, zero)), tir.any(zero, ten)),
        (
            tir.all(tir.any(zero, ten, twenty), tir.any(zero, ten, k != 30)),
            tir.any(zero, ten, twenty),
        ),
        (tir.all(twenty, tir.any(zero, ten), k != 30), tir.all(tir.any(zero, ten), twenty)),
        (tir.any(i.equal(20), j.equal(0), i != 30), tir.any(j.equal(0), i != 30)),
        (tir.all(zero, tir.any(zero, ten)), zero),
        (tir.any(tir.all(zero, ten), tir.all(i != 0, ten)), ten),
    ]
    for condition, expected in cases:
        assert_structural_equal(_as_and_of_ors(condition), expected)


def test_conjunctions_keep_their_truth() -> None:
    rng = random.Random(3)
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")

    def condition(depth: int) -> tir.PrimExpr:
        if depth == 0:
            var, bound = rng.choice([i, j]), rng.randrange(4)
            return rng.choice([var < bound, var.equal(bound), var != bound, var >= bound])
        parts = [condition(depth - 1) for _ in range(2)]
        return tir.all(*parts) if rng.random() < 0.5 else tir.any(*parts)

    for _ in range(60):
        before = condition(3)
        after = _as_and_of_ors(before)
        for a in range(-1, 5):
            for b in range(-1, 5):
                values = {i: tir.IntImm("int32", a), j: tir.IntImm("int32", b)}
                truths = [
                    Analyzer().simplify(tir.stmt_functor.substitute(e, values))
                    for e in (before, after)
                ]
                assert bool(truths[0]) == bool(truths[1]), (before, after, a, b)
