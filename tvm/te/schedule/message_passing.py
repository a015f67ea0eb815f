"""Ranges passed down a stage's relations, and values, intervals and checks passed up."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.tir import op as tir_op
from tvm.tir.constants import is_zero
from tvm.tir.expr import IntImm, IterVar, Range
from tvm.tir.transform.common import variables_of

from .intervals import from_range, interval_of
from .relations import Ranges, Sets, Unchecked, Values
from .stage import Stage


def pass_down_domain(stage: Stage, ranges: Ranges, allow_missing: bool = False) -> None:
    """Find the ranges of all axes of a stage from those of its root axes."""
    threaded = _lead_to_threads(stage)
    for around in stage.threads:
        assert around.dom is not None
        ranges.learn(around, 0, around.dom.extent)
    for relation in stage.relations:
        if allow_missing and any(iv not in ranges for iv in relation.parents):
            continue
        relation.pass_down(ranges, threaded)
    for iv, attr in stage.iter_var_attrs.items():
        thread = attr.bind_thread
        if thread is None or (allow_missing and iv not in ranges):
            continue
        if thread.dom is not None and thread not in ranges:
            ranges.learn(thread, 0, thread.dom.extent)
        ranges.learn(thread, 0, ranges[iv].extent)


def _lead_to_threads(stage: Stage) -> dict[IterVar, bool]:
    """The axes whose splits, down the line, are bound to threads: those keep their extents."""
    found = {iv: True for iv, attr in stage.iter_var_attrs.items() if attr.bind_thread is not None}
    if found:
        for relation in reversed(stage.relations):
            if any(iv in found for iv in relation.children):
                found.update(dict.fromkeys(relation.parents, True))
    return found


def pass_up_index(stage: Stage, ranges: Mapping[IterVar, Range], values: Values) -> None:
    """Find the values of all axes of a stage from those of its loops."""
    for relation in reversed(stage.relations):
        relation.pass_up_values(ranges, values)


def pass_down_index(stage: Stage, ranges: Mapping[IterVar, Range], values: Values) -> None:
    """Find the values of a stage's loops from those of its root axes."""
    for relation in stage.relations:
        relation.pass_down_values(ranges, values)


def pass_up_domain(
    stage: Stage, ranges: Mapping[IterVar, Range], sets: Sets, analyzer: Analyzer
) -> None:
    """Find the intervals of all axes of a stage from those of its loops."""
    for relation in reversed(stage.relations):
        relation.pass_up_sets(ranges, sets, analyzer)


def descend_from(stage: Stage, roots: Collection[IterVar]) -> dict[IterVar, None]:
    """The axes that come, in part or wholly, from ``roots``; the roots included."""
    found = dict.fromkeys(roots)
    for relation in stage.relations:
        if any(iv in found for iv in relation.parents):
            found.update(dict.fromkeys(relation.children))
    return found


def bound_checks(
    stage: Stage,
    ranges: Ranges,
    values: Mapping[IterVar, PrimExpr],
    skip: Collection[IterVar] = (),
    root_domains: bool = True,
) -> list[tuple[IterVar, PrimExpr]]:
    """The conditions under which an iteration is one that the operation has, with their axes.

    Loops may run over more than an axis (tails of splits), and an inferred range may reach beyond
    the axis of the operation (``root_domains``); conditions that can be proven are left out.
    """
    analyzer = ranges.analyzer
    unchecked: Unchecked = {}
    below: dict[IterVar, None] = {}
    for relation in reversed(stage.relations):
        # rfactor knows the ranges of the reduction loops alone
        if all([iv in ranges for iv in relation.children]):
            relation.pass_up_checks(ranges, unchecked, analyzer)
            if relation.may_fall_below:
                below.update(dict.fromkeys(relation.parents))
    checks = []
    for iv in stage.all_iter_vars:
        if iv in unchecked and iv not in skip:
            domain = ranges[iv]
            value = values[iv]
            offset = value if is_zero(domain.min) else tir_op.subtract(value, domain.min)
            checks.append((iv, tir_op.less(offset, domain.extent)))
            if iv in below and not is_zero(domain.min):
                checks.append((iv, tir_op.greater_equal(offset, 0)))
    if root_domains:
        for iv in stage.op.root_iter_vars():
            if iv not in skip:
                conditions = _domain_checks(iv, ranges, values[iv])
                checks += [(iv, condition) for condition in conditions]
    return checks


def _domain_checks(iv: IterVar, ranges: Ranges, value: PrimExpr) -> list[PrimExpr]:
    domain, inferred, analyzer = iv.dom, ranges[iv], ranges.analyzer
    if domain is None or domain is inferred:
        return []
    checks = []
    if not _proves(tir_op.greater_equal(inferred.min, domain.min), analyzer):
        checks.append(tir_op.greater_equal(value, domain.min))
    end = tir_op.add(domain.min, domain.extent)
    reached = tir_op.add(inferred.min, inferred.extent)
    if not _proves(tir_op.less_equal(reached, end), analyzer) and not _stays_up_to(
        reached, end, ranges
    ):
        checks.append(tir_op.less(value, end))
    return checks


def _stays_up_to(value: PrimExpr, end: PrimExpr, ranges: Ranges) -> bool:
    """Whether a value in loops over open extents never exceeds an open end."""
    if type(end) is IntImm:
        return False
    used = variables_of(value)
    domains = {iv.var: from_range(domain) for iv, domain in ranges.items() if iv.var in used}
    high = interval_of(value, domains, ranges.analyzer).high
    return high is not None and _proves(tir_op.less_equal(high, end), ranges.analyzer)


def _proves(condition: PrimExpr, analyzer: Analyzer) -> bool:
    if isinstance(condition, IntImm):
        return bool(condition.value)
    return bool(analyzer.can_prove(condition))
