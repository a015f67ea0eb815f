"""Which parts are worth an estimate, which cover a function at the least cost, and which then unite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.transform.collage_candidates import Part, PartFinder
from tvm.relay.traverse import operands

_DATAFLOW = (Call, Tuple, TupleGetItem, Var, Constant)


def worthwhile(parts: Sequence[Part]) -> list[Part]:
    """The largest parts of each target, and what is left of them where others have a piece.

    Work in one part is taken to cost no more than in two of the same target.
    """
    of_target: dict[int, list[Part]] = {}
    for part in parts:
        of_target.setdefault(id(part.target), []).append(part)
    kept = {id(p): p for group in of_target.values() for p in _largest(group)}
    latest = list(kept.values())
    while latest:
        pairs = [(a, b) for a in kept.values() for b in latest if _overlap(a, b)]
        wanted = [one for a, b in pairs for one in ((a, b), (b, a))]
        latest = []
        for part, other in wanted:
            rest = part.inside.keys() - other.inside.keys()
            within = [p for p in of_target[id(part.target)] if p.inside.keys() <= rest]
            for found in _largest(within):
                if id(found) not in kept:
                    kept[id(found)] = found
                    latest.append(found)
    return [part for part in parts if id(part) in kept]


def _largest(parts: Sequence[Part]) -> list[Part]:
    """Those that are in no other."""
    return [a for a in parts if not any([a.inside.keys() < b.inside.keys() for b in parts])]


def _overlap(a: Part, b: Part) -> bool:
    return a.inside.keys() != b.inside.keys() and not a.inside.keys().isdisjoint(b.inside)


def cheapest_cover(
    steps: Sequence[RelayExpr], parts: Iterable[Part], costs: Mapping[int, float]
) -> list[Part]:
    """The parts that together have every step once, at the least cost.

    Parameters
    ----------
    steps : the expressions, operands first.
    costs : by the identity of the part.
    """
    number = {id(node): i for i, node in enumerate(steps)}
    by_first: dict[int, list[tuple[int, Part]]] = {}
    for part in parts:
        positions = [number[i] for i in part.inside if i in number]
        mask = sum([1 << place for place in positions])
        by_first.setdefault(min(positions), []).append((mask, part))
    everything = (1 << len(steps)) - 1
    # covered steps -> the least cost so far, the part that was added last and what it was added to
    best: dict[int, tuple[float, Part | None, int]] = {0: (0.0, None, 0)}
    waiting = {0: [0]}  # by the first step that is not covered
    for first in range(len(steps)):
        for covered in waiting.pop(first, ()):
            cost = best[covered][0]
            for mask, part in by_first.get(first, ()):
                if covered & mask:
                    continue
                total, now = cost + costs[id(part)], covered | mask
                if now not in best:
                    rest = ~now & everything
                    following = (rest & -rest).bit_length() - 1 if rest else len(steps)
                    waiting.setdefault(following, []).append(now)
                if now not in best or total < best[now][0]:
                    best[now] = (total, part, covered)
    chosen: list[Part] = []
    state = everything
    while state:
        _, last, state = best[state]
        assert last is not None
        chosen.append(last)
    return chosen[::-1]


def united(parts: Sequence[Part], finder: PartFinder) -> list[Part]:
    """The parts, those of one target that touch as one, which may have several results.

    What goes through something else on its way from one to the other keeps them separate.
    """
    if not all([isinstance(node, _DATAFLOW) for node in finder.order]):
        return list(parts)
    left, result = list(parts), list[Part]()
    while left:
        part = left.pop(0)
        for other in left:
            if (both := _union(part, other, finder)) is not None:
                left[left.index(other)] = both
                break
        else:
            result.append(part)
    return result


def _union(a: Part, b: Part, finder: PartFinder) -> Part | None:
    if a.target is not b.target or not (_touches(a, b) or _touches(b, a)):
        return None
    inside = {**a.inside, **b.inside}
    if _is_left_and_entered(inside, finder):
        return None
    outputs = [
        node
        for node in finder.order
        if id(node) in inside
        and (node is finder.body or any([u not in inside for u in finder.users[id(node)]]))
    ]
    composites = {**a.composites, **b.composites}
    kind = max(a.kind, b.kind)
    return replace(
        a, outputs=tuple(outputs), inside=inside, kind=kind, composites=composites, height={}
    )


def _touches(below: Part, above: Part) -> bool:
    """Whether one takes a result of the other."""
    results = {id(output) for output in below.outputs}
    return any([id(o) in results for node in above.inside.values() for o in operands(node)])


def _is_left_and_entered(inside: Mapping[int, RelayExpr], finder: PartFinder) -> bool:
    """Whether something outside takes a result from inside, and something inside one of that."""
    after: set[int] = set()
    for node in finder.order:
        follows = any([id(o) in inside or id(o) in after for o in operands(node)])
        if id(node) in inside:
            if any([id(o) in after for o in operands(node)]):
                return True
        elif follows:
            after.add(id(node))
    return False
