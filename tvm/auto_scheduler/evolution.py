"""Evolutionary search: programs are changed, and those that the cost model likes are changed again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .init_population import random_program, replayed
from .state_object import StateObject
from .steps import StepError

_LOWEST = -1e8  # scores below are of programs that are not to be measured


def initial_population(
    policy: Any, sketches: Sequence[StateObject], size: int
) -> list[StateObject]:
    """Random programs of sketches, each once.

    Parameters
    ----------
    policy : SketchPolicy
        The search.
    sketches : list of StateObject
        What to fill in.
    size : int
        How many; fewer, if there are not as many different ones.
    """
    found: dict[str, StateObject] = {}
    failures = 0
    while len(found) < size and failures < 4 * size:
        state = _try_random_program(policy, policy.rng.choice(sketches))
        if state is None or (text := str(state)) in found:
            failures += 1
        else:
            found[text] = state
    return list(found.values())


def _try_random_program(policy: Any, sketch: StateObject) -> StateObject | None:
    try:
        return random_program(policy, sketch)
    except StepError:  # a random place does not suit another one
        return None


def evolve(
    policy: Any, population: Sequence[StateObject], count: int, generations: int
) -> list[StateObject]:
    """The programs with the highest scores, of several generations.

    Parameters
    ----------
    policy : SketchPolicy
        The search, with its cost model.
    population : list of StateObject
        The first generation.
    count : int
        How many are wanted.
    generations : int
        How often they are changed.
    """
    best: dict[str, tuple[float, StateObject]] = {}
    size = policy.params["evolutionary_search_population"]
    current = list(population)
    for generation in range(generations + 1):
        if not current:
            break
        texts = [str(state) for state in current]
        scores = [float(score) for score in policy.predict(current)]
        for text, state, score in zip(texts, current, scores, strict=True):
            if score > _LOWEST and text not in policy.measured:
                best[text] = (score, state)
        if len(best) > 2 * count:
            ranked = sorted(best.items(), key=lambda item: -item[1][0])[:count]
            best = dict(ranked)
        if generation < generations:
            current = _next_generation(policy, current, scores, size)
    ranked_states = sorted(best.values(), key=lambda item: -item[0])
    return [state for _, state in ranked_states[:count]]


def _next_generation(
    policy: Any, current: Sequence[StateObject], scores: Sequence[float], size: int
) -> list[StateObject]:
    """Changed and unchanged programs, the better the more often."""
    lowest = min(scores)
    weights = list(itertools.accumulate([score - lowest + 1e-6 for score in scores]))
    rules = [rule for rule, _ in policy.mutations]
    odds = [probability for _, probability in policy.mutations]
    new: list[StateObject] = []
    for parent in policy.rng.choices(current, cum_weights=weights, k=size):
        changed = None
        if policy.rng.random() < policy.params["evolutionary_search_mutation_prob"]:
            (rule,) = policy.rng.choices(rules, odds)
            changed = rule(policy, parent)
        elif len(current) > 1:
            changed = crossed(policy, parent, policy.rng.choice(current))
        new.append(parent if changed is None else changed)
    return new


def crossed(policy: Any, a: StateObject, b: StateObject) -> StateObject | None:
    """A program of two: for each stage the tile sizes and unrolling of one of them.

    None if they do not come from one sketch.
    """
    kinds = [(type(step), step.stage_id) for step in a.transform_steps]
    if kinds != [(type(step), step.stage_id) for step in b.transform_steps]:
        return None
    chosen: dict[int, bool] = {}
    steps = []
    for mine, other in zip(a.transform_steps, b.transform_steps, strict=True):
        takes_other = chosen.setdefault(mine.stage_id, policy.rng.random() < 0.5)
        steps.append(other if takes_other and policy.is_exchangeable(mine, other) else mine)
    return replayed(policy, steps)
