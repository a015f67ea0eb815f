"""Iteration maps: what is detected, and that inverses invert."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tvm import tir
from tvm.arith import (
    Analyzer,
    IterMapLevel,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
    subspace_divide,
)

from .numbers import value_of

i, j, k = (tir.Var(name, "int32") for name in "ijk")


def domain(**extents: int) -> dict[tir.Var, tir.Range]:
    names = {"i": i, "j": j, "k": k}
    return {names[name]: tir.Range(0, extent) for name, extent in extents.items()}


DOMAIN = domain(i=8, j=16, k=4)
MAPS = [
    [i, j, k],
    [i * 16 + j, k],
    [(i * 16 + j) // 4, (i * 16 + j) % 4, k],
    [j // 4, i, j % 4, k],
    [(i * 4 + k) * 16 + j],
    [(i * 16 + j) // 32, (i * 16 + j) % 32 // 8, (i * 16 + j) % 8 * 4 + k],
    [i % 2 * 16 + j, i // 2 * 4 + k],
    [i + 3, j * 2, k],
]


@pytest.mark.parametrize("indices", MAPS)
def test_bijective_maps_are_detected_and_keep_their_value(indices: list[Any]) -> None:
    found = detect_iter_map(indices, DOMAIN, check_level=IterMapLevel.Bijective)
    assert not found.errors and len(found.indices) == len(indices)
    exprs = [normalize_iter_map_to_expr(total) for total in found.indices]
    for values in all_values():
        assert [value_of(e, values) for e in exprs] == [value_of(e, values) for e in indices]


def all_values() -> list[dict[tir.Var, int]]:
    spans = [range(r.extent.value) for r in DOMAIN.values()]
    points = itertools.product(*spans)
    return [dict(zip(DOMAIN, point, strict=True)) for point in points]


@pytest.mark.parametrize("indices", MAPS)
def test_inverses_give_the_iterators_back(indices: list[Any]) -> None:
    found = detect_iter_map(indices, DOMAIN, check_level="bijective")
    outputs = [tir.Var(f"o{n}", "int32") for n in range(len(indices))]
    inverse = inverse_affine_iter_map(found.indices, outputs)
    for values in all_values():
        images = [value_of(index, values) for index in indices]
        bound = dict(zip(outputs, images, strict=True))
        for var in DOMAIN:
            assert value_of(inverse[var], bound) == values[var]


def test_iterators_that_overlap_are_fused_but_by_no_bijective_map() -> None:
    found = detect_iter_map([i * 3 + j], DOMAIN)
    (total,) = found.indices
    assert int(total.args[0].extent) == 37  # type: ignore[call-overload]
    assert not detect_iter_map([i * 3 + j], DOMAIN, check_level="bijective").indices


@pytest.mark.parametrize(
    "indices",
    [
        [i // 2, i // 4],
        [i * j],
        [i // 3, i // 2 * 2],
        [(i + 1) // 2, (i + 2) // 2],
        [i, i],
        [j - i],
    ],
)
def test_other_maps_are_rejected_with_a_reason(indices: list[Any]) -> None:
    found = detect_iter_map(indices, DOMAIN)
    assert not found.indices and found.errors


def test_surjective_maps_may_leave_iterators_out() -> None:
    assert detect_iter_map([i // 2], DOMAIN).indices
    assert not detect_iter_map([i // 2], DOMAIN, check_level=IterMapLevel.Bijective).indices


def test_predicates_limit_fused_iterators() -> None:
    found = detect_iter_map([i * 16 + j], domain(i=8, j=16), predicate=i * 16 + j < 100)
    assert found.indices[0].args[0].extent.value == 100
    assert not detect_iter_map([i, j], domain(i=8, j=16), predicate=i * j < 100).indices


def test_simplification_uses_the_map() -> None:
    (found,) = iter_map_simplify([(i * 16 + j) // 16 * 16 + (i * 16 + j) % 16], DOMAIN)
    assert Analyzer().can_prove_equal(found, i * 16 + j)


def test_sums_are_sorted_by_scale() -> None:
    found = normalize_to_iter_sum(j + i * 16 + 5, DOMAIN)
    assert [split.scale.value for split in found.args] == [16, 1] and found.base.value == 5


def test_subspaces_are_divided() -> None:
    pairs = subspace_divide([i * 16 + j, k], DOMAIN, [j])
    (outer, inner), (outer_k, inner_k), _ = pairs
    same = Analyzer().can_prove_equal
    assert same(normalize_iter_map_to_expr(outer), i) and same(normalize_iter_map_to_expr(inner), j)
    assert same(normalize_iter_map_to_expr(outer_k), k) and not inner_k.args
    assert subspace_divide([i * 16 + j], DOMAIN, [i]) == []


def test_levels_have_names() -> None:
    assert IterMapLevel.from_str("surjective") is IterMapLevel.Surjective
    with pytest.raises(ValueError, match="did you mean 'surjective'"):
        IterMapLevel.from_str("surjectiv")


def test_splits_by_a_size_are_detected() -> None:
    n = tir.SizeVar("n", "int32")
    found = detect_iter_map([tir.floordiv(i, n), tir.floormod(i, n)], {i: tir.Range(0, n * 16)})
    assert len(found.indices) == 2 and not found.errors


def outcomes(indices: list[Any], iters: dict[tir.Var, tir.Range], **given: Any) -> Any:
    """The result, after it was compared with the indices at every point of the domain."""
    found = detect_iter_map(indices, iters, **given)
    assert not found.errors
    exprs = [normalize_iter_map_to_expr(total) for total in found.indices]
    spans = [range(r.min.value, r.min.value + r.extent.value) for r in iters.values()]
    for point in itertools.product(*spans):
        values = dict(zip(iters, point, strict=True))
        if value_of(given.get("predicate", tir.const(True, "bool")), values):
            assert [value_of(e, values) for e in exprs] == [value_of(e, values) for e in indices]
            assert not value_of(found.padding_predicate, values)
    return found


def pattern(total: Any) -> tuple[int, int, int]:
    """Extent, base and scale of a sum of one split."""
    (split,) = total.args
    return split.extent.value, total.base.value, split.scale.value


@pytest.mark.parametrize("index, iters, expected", [
    ((j + 80) // 32, {"j": 176}, (6, 2, 1)),
    ((j + 80) % 32, {"j": 176}, (32, 0, 1)),
    ((i * 14 + j) // 32, {"i": 5, "j": 14}, (3, 0, 1)),
    ((i * 14 + j) % 32, {"i": 5, "j": 14}, (32, 0, 1)),
    ((j + 3) // 4, {"j": 10}, (4, 0, 1)),
    (i // 3, {"i": 8}, (3, 0, 1)),
    ((i * 4 + 6) // 8, {"i": 9}, (5, 0, 1)),
    ((j - 5) // 4, {"j": 12}, (4, -2, 1)),
])  # fmt: skip
def test_divisions_that_do_not_come_out_even_pad(
    index: Any, iters: dict[str, int], expected: tuple[int, int, int]
) -> None:
    found = outcomes([index], domain(**iters))
    assert pattern(found.indices[0]) == expected
    bijective = detect_iter_map([index], domain(**iters), check_level="bijective")
    assert not bijective.indices and bijective.errors


def test_divisions_of_one_iterator_share_its_padding() -> None:
    found = outcomes([(j + 80) // 32, (j + 80) % 32 // 8, (j + 80) % 8], domain(j=170))
    assert [pattern(total) for total in found.indices] == [(6, 2, 1), (4, 0, 1), (8, 0, 1)]
    inside = found.padding_predicate
    assert value_of(inside, {j: -1}) and value_of(inside, {j: 170}) and not value_of(inside, {j: 9})


def test_offsets_that_come_out_even_need_no_padding() -> None:
    found = outcomes([(j + 64) // 32, (j + 64) % 32], domain(j=192), check_level="bijective")
    assert [pattern(total) for total in found.indices] == [(6, 2, 1), (32, 0, 1)]
    assert not value_of(found.padding_predicate, {})


def test_padding_inside_of_padding() -> None:
    outcomes([(i // 3 + 1) // 2], domain(i=8))
    outcomes([(i * 10 + j) // 4 // 3, (i * 10 + j) % 4], domain(i=3, j=10))


@pytest.mark.parametrize("predicate, expected", [
    (i * 16 + j < 50, (50, 0, 1)),
    (i * 16 + j <= 49, (50, 0, 1)),
    (tir.all(i * 16 + j >= 10, i * 16 + j < 50), (40, 10, 1)),
    (tir.all(i * 16 + j < 50, i * 16 + j < 70), (50, 0, 1)),
    (i < 3, (48, 0, 1)),
    (tir.all(i >= 2, i < 5), (48, 32, 1)),
])  # fmt: skip
def test_predicates_bound_iterators_and_sums(
    predicate: Any, expected: tuple[int, int, int]
) -> None:
    found = outcomes([i * 16 + j], domain(i=8, j=16), predicate=predicate)
    assert pattern(found.indices[0]) == expected


def test_predicates_bound_parts_of_larger_sums() -> None:
    total = (i * 16 + j) * 4 + k
    found = outcomes([total], DOMAIN, predicate=i * 16 + j < 50, check_level="bijective")
    assert pattern(found.indices[0]) == (200, 0, 1)
    both = tir.all(i * 16 + j < 50, i < 5)
    assert pattern(outcomes([total], DOMAIN, predicate=both).indices[0]) == (200, 0, 1)


def test_predicates_on_sums_that_no_index_has_are_rejected() -> None:
    found = detect_iter_map([i, j], domain(i=8, j=16), predicate=i * 16 + j < 50)
    assert not found.indices and "no index fuses" in found.errors[0]


def test_iterators_of_one_value_stay_if_wanted() -> None:
    one = domain(i=1, j=16)
    assert detect_iter_map([i, j], one).indices[0].args == ()
    (kept, _) = detect_iter_map([i, j], one, simplify_trivial_iterators=False).indices
    assert kept.args[0].source.source is i


def test_subspaces_take_predicates_of_one_side() -> None:
    *_, predicates = subspace_divide([i * 16 + j], domain(i=8, j=16), [j], i < 5)
    assert str(predicates[0]) == "i < 5" and value_of(predicates[1], {})
    assert subspace_divide([i * 16 + j], domain(i=8, j=16), [j], i * 16 + j < 50) == []
