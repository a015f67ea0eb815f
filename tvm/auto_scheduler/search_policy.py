"""Searches: sketches of a program, random programs of them, and those that a cost model likes.

policy = auto_scheduler.SketchPolicy(task, auto_scheduler.XGBModel())
task.tune(tuning_options, search_policy=policy)
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import TVMError
from tvm.runtime.object import Object
from tvm.support.later import names_from_above

from .cost_model import CostModel, RandomModel
from .evolution import evolve, initial_population
from .gpu import GPU_RULES
from .gpu_threads import bind_threads
from .init_population import (
    add_parallel,
    add_unroll,
    add_vectors,
    change_compute_location,
)
from .loop_state import State, as_object
from .measure_record import load_records
from .measure_types import MeasureErrorNo, MeasureInput, MeasureResult
from .mutation import CPU_MUTATIONS, GPU_MUTATIONS
from .sketch import stage_analysis as analysis
from .sketch.derive import derive_sketches
from .sketch.rules import CPU_RULES, Condition, CustomRule, SketchRule
from .sketch_params import search_params
from .state_object import StateObject
from .steps import PragmaStep, SplitStep, Step

logger = logging.getLogger("auto_scheduler")

# `rank_first_candidates`, by the operator library's cost model
_name_from_above = names_from_above(__name__)


class SearchCallback(Object):
    """What is called once, before a search begins."""

    def prepare(self, policy: SearchPolicy) -> None:
        """Change a search.

        Parameters
        ----------
        policy : SearchPolicy
            The search.
        """


class PreloadMeasuredStates(SearchCallback):
    """Candidates of a log are not measured again, and the fast ones are starting points.

    Parameters
    ----------
    filename : str
        The log, which need not exist.
    """

    def __init__(self, filename: Any) -> None:
        self.filename = filename

    def prepare(self, policy: SearchPolicy) -> None:
        policy.preload(self.filename)


class PreloadCustomSketchRule(SearchCallback):
    """A rule of a program, asked before all others.

    Parameters
    ----------
    meet_condition_func : function
        ``f(policy, state, stage_id)`` gives ``PASS``, ``APPLY`` or ``APPLY_AND_SKIP_REST``.
    apply_func : function
        ``f(policy, state, stage_id)`` gives a list of pairs: a state, the stage to go on with.
    rule_name : str
        For people.
    """

    PASS = int(Condition.SKIP)
    APPLY = int(Condition.APPLY)
    APPLY_AND_SKIP_REST = int(Condition.APPLY_AND_SKIP_REST)

    def __init__(
        self,
        meet_condition_func: Callable[..., Any],
        apply_func: Callable[..., Any],
        rule_name: str = "CustomSketchRule",
    ) -> None:
        self.rule = CustomRule(meet_condition_func, apply_func, rule_name)

    def prepare(self, policy: SearchPolicy) -> None:
        policy.add_rule(self.rule)


class SearchPolicy(Object):
    """The base of searches: what was measured so far.

    Attributes
    ----------
    search_task : SearchTask
        The task.
    measured : dict of str to float
        Seconds of the programs that were measured, by their text.
    """

    def __init__(self, task: Any, init_search_callbacks: Sequence[SearchCallback] | None) -> None:
        self.search_task = task
        self.verbose = 1
        self.measured: dict[str, float] = {}
        self.fastest: list[tuple[float, StateObject]] = []
        self._callbacks = list(init_search_callbacks or ())

    def set_verbose(self, verbose: int) -> None:
        """How much is told.

        Parameters
        ----------
        verbose : int
            0 is silent.
        """
        self.verbose = int(verbose)

    def run_callbacks(self) -> None:
        """Call what is to be called before a search, once."""
        waiting, self._callbacks = self._callbacks, []
        for callback in waiting:
            callback.prepare(self)

    def add_rule(self, rule: SketchRule) -> None:
        """Ask a rule before all others."""
        raise TVMError(f"{type(self).__name__} has no rules of sketches that could be added to")

    def preload(self, filename: Any) -> int:
        """Take over what a log has of the task; the number of records."""
        task = self.search_task
        try:
            records = list(load_records(filename))
        except FileNotFoundError:
            logger.warning("No such log to take measured candidates from: %s", filename)
            return 0
        mine = [
            (MeasureInput(task, task.compute_dag.full_state(inp.state)), res)
            for inp, res in records
            if inp.task.workload_key == task.workload_key
            and inp.task.target.kind.name == task.target.kind.name
        ]
        if mine:
            self.take_over([inp for inp, _ in mine], [res for _, res in mine])
        return len(mine)

    def take_over(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Note measured programs."""
        dag = self.search_task.compute_dag
        for inp, res in zip(inputs, results, strict=True):
            state = dag.infer_bound_from_state(inp.state).state_object
            self.measured[str(state)] = res.seconds
            if res.error_no == MeasureErrorNo.NO_ERROR:
                self.fastest.append((res.seconds, state))
        self.fastest.sort(key=lambda pair: pair[0])
        del self.fastest[256:]

    def next_inputs(self, count: int) -> list[MeasureInput]:
        """The next candidates, none of which was measured."""
        raise NotImplementedError

    def unmeasured_choice(self) -> StateObject:
        """A program where none is to be measured."""
        start: StateObject = self.search_task.compute_dag.init_state
        return start

    def learn(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Take notice of a round's outcomes."""
        self.take_over(inputs, results)

    def continue_search_one_round(
        self, num_measure: int, measurer: Any
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Choose candidates, measure them, learn from them.

        Parameters
        ----------
        num_measure : int
            How many.
        measurer : ProgramMeasurer
            Measures them.
        """
        self.run_callbacks()
        inputs = self.next_inputs(num_measure)
        if not inputs:
            return [], []
        results = measurer.measure(self.search_task, self, inputs)
        measured = inputs[: len(results)]
        self.learn(measured, results)
        return measured, results


class EmptyPolicy(SearchPolicy):
    """Measures the program as it was written: an example, and a baseline.

    Parameters
    ----------
    task : SearchTask
        The task.
    init_search_callbacks : list of SearchCallback, optional
        Called before the search begins.
    """

    def __init__(
        self, task: Any, init_search_callbacks: Sequence[SearchCallback] | None = None
    ) -> None:
        super().__init__(task, init_search_callbacks)

    def next_inputs(self, count: int) -> list[MeasureInput]:
        state = self.search_task.compute_dag.init_state
        return [MeasureInput(self.search_task, state) for _ in range(count)]


class SketchPolicy(SearchPolicy):
    """Sketches that rules derive, filled in by chance, evolved by a cost model.

    Parameters
    ----------
    task : SearchTask
        The task.
    program_cost_model : CostModel
        Ranks programs.
    params : dict, optional
        The numbers of the search; see ``DEFAULT_PARAMS``.
    seed : int, optional
        Of random choices.
    verbose : int
        0 is silent.
    init_search_callbacks : list of SearchCallback, optional
        Called before the search begins.
    """

    def __init__(
        self,
        task: Any,
        program_cost_model: CostModel | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Sequence[SearchCallback] | None = None,
    ) -> None:
        super().__init__(task, init_search_callbacks)
        self.program_cost_model = (
            RandomModel() if program_cost_model is None else program_cost_model
        )
        self.params = search_params(params)
        self.rng = random.Random(seed)
        self.verbose = verbose
        on_gpu = analysis.is_gpu(task.target)
        self.rules: list[SketchRule] = list(GPU_RULES if on_gpu else CPU_RULES)
        self.mutations = GPU_MUTATIONS if on_gpu else CPU_MUTATIONS
        self.init_rules: Sequence[Callable[..., StateObject]] = (
            (bind_threads, add_unroll)
            if on_gpu
            else (change_compute_location, add_parallel, add_unroll, add_vectors)
        )
        kind = "gpu" if on_gpu else "cpu"
        self.tiling_structure: str = self.params[f"{kind}_multi_level_tiling_structure"]
        self._sketches: list[StateObject] | None = None
        self._first: list[StateObject] | None = None

    def add_rule(self, rule: SketchRule) -> None:
        self.rules.insert(0, rule)

    @property
    def sketches(self) -> list[StateObject]:
        """The sketches, derived once."""
        if self._sketches is None:
            self._sketches = derive_sketches(self)
        return self._sketches

    def generate_sketches(self, print_for_debug: bool = False) -> list[State]:
        """The sketches of the task.

        Parameters
        ----------
        print_for_debug : bool
            Whether they are printed.
        """
        self.run_callbacks()
        states = [State(sketch, self.search_task.compute_dag) for sketch in self.sketches]
        if print_for_debug:
            for number, state in enumerate(states):
                print("=" * 20, number, "=" * 20, state, sep="\n")
        return states

    def sample_initial_population(self) -> list[State]:
        """Random programs of the sketches."""
        self.run_callbacks()
        size = max(
            self.params["sample_init_min_population"],
            self.params["evolutionary_search_population"],
        )
        states = initial_population(self, self.sketches, size)
        return [State(state, self.search_task.compute_dag) for state in states]

    def evolutionary_search(
        self, init_populations: Sequence[State | StateObject], out_size: int
    ) -> list[State]:
        """The programs with the highest scores that come from others.

        Parameters
        ----------
        init_populations : list of State
            The others.
        out_size : int
            How many are wanted.
        """
        first = [as_object(state) for state in init_populations]
        generations = self.params["evolutionary_search_num_iters"]
        found = evolve(self, first, out_size, generations)
        return [State(state, self.search_task.compute_dag) for state in found]

    def predict(self, states: Sequence[StateObject]) -> Sequence[float]:
        """The scores of programs."""
        dag = self.search_task.compute_dag
        wrapped = [State(state, dag) for state in states]
        scores: Sequence[float] = self.program_cost_model.predict(self.search_task, wrapped)
        return scores

    def is_exchangeable(self, mine: Step, other: Step) -> bool:
        """Whether one of two steps can take the place of the other: sizes, and unrolling."""
        if isinstance(mine, SplitStep) and isinstance(other, SplitStep):
            return (mine.iter_id, mine.extent) == (other.iter_id, other.extent)
        return isinstance(mine, PragmaStep) and isinstance(other, PragmaStep)

    def next_inputs(self, count: int) -> list[MeasureInput]:
        chosen: dict[str, StateObject] = {}
        if self._first is None:
            self._first = _name_from_above("rank_first_candidates")(self, self.sketches)
            self._choose(chosen, self._first, max(count // 4, 1))
        population = initial_population(
            self, self.sketches, self.params["sample_init_min_population"]
        )
        share = self.params["sample_init_use_measured_ratio"]
        most = int(self.params["evolutionary_search_population"] * share)
        measured = [state for _, state in self.fastest[:most]]
        randoms = max(round(count * self.params["eps_greedy"]), 1) if count > 1 else 0
        if isinstance(self.program_cost_model, RandomModel):
            best = population
        else:
            generations = self.params["evolutionary_search_num_iters"]
            best = evolve(self, [*measured, *population], 2 * count, generations)
        self._choose(chosen, best, count - randoms)
        self.rng.shuffle(population)
        self._choose(chosen, population, count)
        if len(chosen) < count:
            more = initial_population(self, self.sketches, 2 * count)
            self._choose(chosen, more, count)
        return [MeasureInput(self.search_task, state) for state in chosen.values()]

    def unmeasured_choice(self) -> StateObject:
        inputs = self.next_inputs(1)
        return inputs[0].state if inputs else super().unmeasured_choice()

    def _choose(
        self, chosen: dict[str, StateObject], states: Sequence[StateObject], count: int
    ) -> None:
        """Add states that were not measured, up to a number."""
        for state in states:
            if len(chosen) >= count:
                return
            text = str(state)
            if text not in self.measured:
                chosen.setdefault(text, state)

    def learn(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        self.take_over(inputs, results)
        self.program_cost_model.update(inputs, results)
