"""Deriving sketches: rules visit the stages from the last to the first."""

from __future__ import annotations

from typing import Any

from ..state_object import StateObject
from ..steps import RfactorStep, SplitStep, Step
from .rules import Condition


def derive_sketches(policy: Any) -> list[StateObject]:
    """All structures that the rules of a policy give for its task.

    Parameters
    ----------
    policy : SketchPolicy
        The search.
    """
    start = policy.search_task.compute_dag.init_state
    current = [(start, len(start.stages) - 1)]
    found: list[StateObject] = []
    while current:
        following = []
        for state, stage_id in current:
            if stage_id < 0:
                found.append(_with_open_rfactors(state))
                continue
            for rule in policy.rules:
                condition = rule.condition(policy, state, stage_id)
                if condition == Condition.SKIP:
                    continue
                following.extend(rule.apply(policy, state, stage_id))
                if condition == Condition.APPLY_AND_SKIP_REST:
                    break
        current = following
    return found


def _with_open_rfactors(state: StateObject) -> StateObject:
    """The state with lengths yet to be sampled for the splits before partial results."""
    steps: list[Step] = list(state.transform_steps)
    for place, step in enumerate(steps[1:]):
        source = steps[place]
        if isinstance(step, RfactorStep) and isinstance(source, SplitStep):
            steps[place] = source.with_lengths((None,) * len(source.lengths))
    if steps == list(state.transform_steps):
        return state
    return state.with_steps(tuple(steps), concrete=False)
