"""Several tasks share trials: which one is tuned next.

    tuner = auto_scheduler.TaskScheduler(tasks, task_weights)
    tuner.tune(auto_scheduler.TuningOptions(num_measure_trials=1000, measure_callbacks=[...]))

The gradient strategy tunes where the objective, the sum of weighted latencies, falls fastest: by what the
last rounds of a task have gained, and by how fast tasks of the same kind are.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.support.files import append_lines

from .cost_model import RandomModel, XGBModel
from .measure_record import RecordReader
from .measure_types import MeasureErrorNo
from .measurer import ProgramMeasurer
from .search_policy import PreloadMeasuredStates, SearchPolicy, SketchPolicy
from .tuning import TuningOptions

logger = logging.getLogger("auto_scheduler")

_UNMEASURED = 1e10  # the cost of a task of which nothing has run


def make_search_policies(
    search_policy: Any,
    search_policy_params: Mapping[str, Any] | None,
    tasks: Sequence[Any],
    num_measures_per_round: int,
    verbose: int,
    load_model_file: Any = None,
    load_log_file: Any = None,
    adaptive_training: bool = False,
) -> list[SearchPolicy]:
    """A search for each task, which share a cost model.

    Parameters
    ----------
    search_policy : str or list of SearchPolicy
        ``"default"``, ``"sketch.xgb"`` or ``"sketch.random"``; or the searches.
    search_policy_params : dict, optional
        Numbers of the searches.
    tasks : list of SearchTask
        The tasks.
    num_measures_per_round : int
        How many candidates at a time.
    verbose : int
        0 is silent.
    load_model_file, load_log_file : str, optional
        What the model has learned before, or learns from; measured candidates.
    adaptive_training : bool
        As of :class:`XGBModel`.
    """
    if search_policy == "default":
        search_policy = "sketch.xgb"
    if not isinstance(search_policy, str):
        policies = list(search_policy)
        if len(policies) != len(tasks) or not all(
            [isinstance(policy, SearchPolicy) for policy in policies]
        ):
            raise TVMError(f"a search policy for each of the {len(tasks)} tasks is required")
        return policies
    kind, _, model_type = search_policy.partition(".")
    if kind != "sketch":
        raise ValueError(f"Invalid search policy: {search_policy}")
    if model_type == "xgb":
        model: Any = XGBModel(
            num_warmup_sample=len(tasks) * num_measures_per_round,
            model_file=load_model_file,
            adaptive_training=adaptive_training,
        )
        if load_model_file and _exists(load_model_file):
            model.load(load_model_file)
        elif load_log_file:
            model.update_from_file(load_log_file)
    elif model_type == "random":
        model = RandomModel()
    else:
        raise ValueError(f"Invalid search policy: {search_policy}")
    callbacks = [PreloadMeasuredStates(load_log_file)] if load_log_file else []
    return [
        SketchPolicy(
            task, model, params=search_policy_params, verbose=verbose,
            init_search_callbacks=callbacks,
        )
        for task in tasks
    ]  # fmt: skip


def _exists(path: Any) -> bool:
    try:
        with open(path, "rb"):
            return True
    except FileNotFoundError:
        return False


def derive_similarity_tag(dag: Any, log_base: float = 1.618) -> str:
    """A tag that similar tasks share: the tags of their computes and the order of their size.

    Parameters
    ----------
    dag : ComputeDAG
        The program.
    log_base : float
        Programs whose operations differ by less than this factor are alike.
    """
    tags = "".join([f"{op.attrs['auto_scheduler_task_scheduler_tag']}_" for op in dag.ops
                    if "auto_scheduler_task_scheduler_tag" in op.attrs])  # fmt: skip
    if tags:
        tags += str(int(math.log(dag.flop_ct + 1, log_base)))
    return tags


class TaskScheduler:
    """Tunes several tasks.

    Parameters
    ----------
    tasks : list of SearchTask
        The tasks.
    task_weights : list of float, optional
        How often each occurs; the objective is the sum of weighted latencies.
    objective_func : function, optional
        From the list of latencies to the number that is to be low.
    strategy : str
        ``"gradient"`` or ``"round-robin"``.
    load_model_file : str, optional
        The cost model to begin with.
    load_log_file : str, optional
        A log to go on with.
    alpha, beta, gamma : float
        Of the gradient: the weights of the last rounds and of similar tasks.
    backward_window_size : int
        How many rounds back gains are counted.
    callbacks : list of TaskSchedulerCallback, optional
        By default, with ``verbose=2``, a table of all tasks is printed.
    """

    def __init__(
        self,
        tasks: Sequence[Any],
        task_weights: Sequence[float] | None = None,
        objective_func: Callable[..., float] | None = None,
        strategy: str = "gradient",
        load_model_file: Any = None,
        load_log_file: Any = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Sequence[TaskSchedulerCallback] | None = None,
    ) -> None:
        self.tasks = list(tasks)
        if objective_func is None:
            weights = [1.0] * len(self.tasks) if task_weights is None else list(task_weights)
            objective_func = _weighted_sum(weights)
        if strategy not in ("gradient", "round-robin"):
            raise ValueError(f"Invalid strategy: {strategy}; gradient or round-robin is required")
        self.objective_func = objective_func
        self.strategy = strategy
        self.load_model_file = load_model_file
        self.load_log_file = load_log_file
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.backward_window_size = backward_window_size
        self.callbacks = None if callbacks is None else list(callbacks)
        count = len(self.tasks)
        self.task_cts = [0] * count  # rounds
        self.task_best_cts = [0] * count
        self.task_costs_history: list[list[float]] = [[] for _ in self.tasks]
        self.best_costs = _UNMEASURED * np.ones(count)
        self.cur_score = self._compute_score(self.best_costs)
        self.tune_option: TuningOptions | None = None
        self.measurer: Any = None
        self.search_policies: list[SearchPolicy] = []
        self.ct = self.best_ct = 0
        self.best_score = 1e20
        self.tic = 0.0
        self.num_measures_per_round = 0
        self.dead_tasks: set[int] = set()
        self.sequential_now_task_idx = 0
        self.sequential_now_task_begin_ct = 0
        self.task_tags = [derive_similarity_tag(task.compute_dag) for task in self.tasks]
        self.flop_cts = [task.compute_dag.flop_ct for task in self.tasks]
        self.group_task_ids: dict[str, list[int]] = {}
        for place, tag in enumerate(self.task_tags):
            if tag:
                self.group_task_ids.setdefault(tag, []).append(place)

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: Any = "default",
        search_policy_params: Mapping[str, Any] | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """Tune all tasks.

        Parameters
        ----------
        tune_option : TuningOptions
            How much is measured for all of them together, and how.
        search_policy : str or list of SearchPolicy
            As of :func:`make_search_policies`.
        search_policy_params : dict, optional
            Numbers of the searches.
        adaptive_training : bool
            As of :class:`XGBModel`.
        per_task_early_stopping : int, optional
            A task of which so many trials have brought nothing faster is left.
        """
        self.tune_option = tune_option
        limit = tune_option.early_stopping if tune_option.early_stopping >= 0 else 10**20
        self.measurer = ProgramMeasurer(
            tune_option.builder, tune_option.runner, tune_option.measure_callbacks,
            tune_option.verbose, deadline=tune_option.deadline(),
        )  # fmt: skip
        self.ct = self.best_ct = 0
        self.tic = time.time()
        self.num_measures_per_round = min(
            tune_option.num_measures_per_round,
            max(tune_option.num_measure_trials // max(len(self.tasks), 1), 1),
        )
        if tune_option.num_measures_per_round < 1:
            raise ValueError("num_measure_trials is too small for the number of tasks")
        known_log = self.load_log_file or tune_option.known_log
        self.search_policies = make_search_policies(
            search_policy, search_policy_params, self.tasks, self.num_measures_per_round,
            tune_option.verbose, self.load_model_file, known_log, adaptive_training,
        )  # fmt: skip
        if known_log:
            known = self._restore(known_log)
            self.ct = known if tune_option.resume is not None else 0
        if tune_option.verbose == 1:
            trials = tune_option.num_measure_trials or 1 << 31
            self.measurer.progress = tune_option.progress_bar(trials - self.ct, "tuning")
        try:
            self._tune_in_rounds(tune_option, limit, per_task_early_stopping or 10**20)
        finally:
            if self.measurer.progress is not None:
                self.measurer.progress.close()

    def _tune_in_rounds(self, tune_option: TuningOptions, limit: int, stop: int) -> None:
        """Rounds of the tasks until trials or time are up, or nothing gets faster."""
        self._warm_up(tune_option)
        self.best_ct, self.best_score = self.ct, self.cur_score
        while self._goes_on(tune_option):
            place = self._next_task()
            self._tune_task(place)
            self._adjust_similarity_group(place)
            if self.cur_score < self.best_score:
                self.best_score, self.best_ct = self.cur_score, self.ct
            elif self.ct - self.best_ct >= limit and self._all_begun():
                logger.info("stopped early: no task got faster in %d trials", limit)
                break
            rounds = self.task_cts[place] - self.task_best_cts[place]
            if rounds * self.num_measures_per_round >= stop:
                self.dead_tasks.add(place)

    def _goes_on(self, option: TuningOptions) -> bool:
        is_open = option.num_measure_trials > self.ct or (
            option.num_measure_trials < 1 and option.time_budget is not None
        )
        in_time = time.monotonic() < self.measurer.deadline
        return is_open and in_time and len(self.dead_tasks) < len(self.tasks)

    def _all_begun(self) -> bool:
        return all([cost < _UNMEASURED for cost in self.best_costs])

    def _warm_up(self, option: TuningOptions) -> None:
        """A round of each task that has none yet, so that there are gains to compare."""
        if self.strategy == "round-robin":
            return
        for place in range(len(self.tasks)):
            if not self.task_cts[place] and self._goes_on(option):
                self._tune_task(place)

    def _next_task(self) -> int:
        alive = [place for place in range(len(self.tasks)) if place not in self.dead_tasks]
        if self.strategy == "round-robin":
            return min(alive, key=lambda place: (self.task_cts[place], place))
        gradients = [self._gradient(place) for place in alive]
        if max(gradients) == min(gradients):
            return random.choice(alive)
        return alive[int(np.argmin(gradients))]

    def _gradient(self, place: int) -> float:
        """How much the objective changes with another round of a task."""
        delta = 1e-4
        costs = np.array(self.best_costs, dtype="float64")
        costs[place] -= delta
        slope = (self._compute_score(self.best_costs) - self._compute_score(costs)) / delta
        rounds, history = self.task_cts[place], self.task_costs_history[place]
        backward = 0.0
        window = self.backward_window_size
        if 0 <= rounds - 1 < len(history) and 0 <= rounds - 1 - window < len(history):
            backward = (history[rounds - 1] - history[rounds - 1 - window]) / window
        gain = (
            history[rounds - 1] / rounds if 0 < rounds <= len(history) else self.best_costs[place]
        )
        best = self.beta * self._similar_cost(place)
        forward = min(-gain, best - self.best_costs[place])
        return float(slope * (self.alpha * backward + (1 - self.alpha) * forward))

    def _similar_cost(self, place: int) -> float:
        """What the task would take at the speed of the fastest similar one."""
        group = self.group_task_ids.get(self.task_tags[place], [])
        speeds = [self.flop_cts[p] / self.best_costs[p] for p in group]
        if len(speeds) > 1 and max(speeds) > 0:
            return float(self.flop_cts[place] / max(speeds))
        return float(self.best_costs[place])

    def _tune_task(self, place: int) -> None:
        option = self.tune_option
        assert option is not None
        option.note_untuned(self.tasks[place])
        callbacks = self.callbacks
        if callbacks is None:
            callbacks = [PrintTableInfo()] if option.verbose > 1 else []
        for callback in callbacks:
            callback.pre_tune(self, place)
        if self.measurer.progress is not None:
            self.measurer.progress.describe(f"[Task {place + 1:2d}/{len(self.tasks):2d}]")
        left = option.num_measure_trials - self.ct if option.num_measure_trials > 0 else 1 << 30
        count = max(min(self.num_measures_per_round, left), 1)
        inputs, results = self.search_policies[place].continue_search_one_round(
            count, self.measurer
        )
        self.task_cts[place] += 1
        for res in results:
            if res.error_no == MeasureErrorNo.NO_ERROR and res.seconds < self.best_costs[place]:
                self.best_costs[place] = res.seconds
                self.task_best_cts[place] = self.task_cts[place]
        if not inputs:
            self.dead_tasks.add(place)  # all of its programs are measured
        self.task_costs_history[place].append(float(self.best_costs[place]))
        self.ct += len(inputs)
        self.cur_score = self._compute_score(self.best_costs)
        for callback in callbacks:
            callback.post_tune(self, place)

    def _adjust_similarity_group(self, place: int) -> None:
        """A task that stays far slower than similar ones leaves their group."""
        group = self.group_task_ids.get(self.task_tags[place], [])
        if len(group) <= 1:
            return
        best = max([self.flop_cts[p] / self.best_costs[p] for p in group])
        mine = self.flop_cts[place] / self.best_costs[place]
        most = max([self.task_cts[p] for p in group])
        if mine < best / self.beta and self.task_cts[place] > 5 + self.gamma * most:
            group.remove(place)
            self.task_tags[place] = ""

    def _compute_score(self, costs: Any) -> float:
        return float(self.objective_func(costs))

    def _restore(self, log_file: Any) -> int:
        """Go on from a log; how many records it has of the tasks."""
        by_key = {
            (task.workload_key, str(task.target)): place for place, task in enumerate(self.tasks)
        }
        counts = [0] * len(self.tasks)
        for inp, res in RecordReader(log_file):
            place = by_key.get((inp.task.workload_key, str(inp.task.target)))
            if place is None:
                continue
            counts[place] += 1
            if res.error_no == MeasureErrorNo.NO_ERROR:
                self.best_costs[place] = min(self.best_costs[place], res.seconds)
        for place, count in enumerate(counts):
            self.task_cts[place] = int(count / self.num_measures_per_round + 0.5)
            self.task_costs_history[place].append(float(self.best_costs[place]))
        self.cur_score = self._compute_score(self.best_costs)
        logger.info("TaskScheduler: Loaded %d measurement records from %s", sum(counts), log_file)
        return sum(counts)


def _weighted_sum(weights: Sequence[float]) -> Callable[[Any], float]:
    return lambda costs: sum([c * w for c, w in zip(costs, weights, strict=True)])


class TaskSchedulerCallback:
    """What is called around each round of a task."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Before a round.

        Parameters
        ----------
        task_scheduler : TaskScheduler
            The tasks.
        task_id : int
            Which one.
        """

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Behind a round.

        Parameters
        ----------
        task_scheduler, task_id :
            As of :meth:`pre_tune`.
        """


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a table of all tasks before each round."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        option = task_scheduler.tune_option
        if option is None or option.verbose < 1:
            return
        lines = [
            "|  ID  | Task Description | Latency (ms) | Speed (GFLOPS) | Trials |",
            "-" * 68,
        ]
        for place, task in enumerate(task_scheduler.tasks):
            cost = task_scheduler.best_costs[place]
            is_known = cost < _UNMEASURED
            latency = f"{1e3 * cost:.3f}" if is_known else "-"
            speed = f"{task.compute_dag.flop_ct / cost / 1e9:.2f}" if is_known else "-"
            trials = task_scheduler.task_cts[place] * task_scheduler.num_measures_per_round
            lines.append(
                f"| {place:4d} | {task.desc[:40]:>16s} | {latency:>12s} | {speed:>14s} | {trials:6d} |"
            )
        seconds = time.time() - task_scheduler.tic
        lines += [
            "-" * 68,
            f"Trials: {task_scheduler.ct}\tUsed time: {seconds:.0f} s\tNext ID: {task_id}",
        ]
        print("\n".join(lines), flush=True)


class LogEstimatedLatency(TaskSchedulerCallback):
    """Appends the objective to a file behind each round.

    Parameters
    ----------
    log_file : str
        Its name.
    """

    def __init__(self, log_file: Any) -> None:
        self.log_file = log_file

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        is_known = bool(np.all(task_scheduler.best_costs < _UNMEASURED))
        latency = f"{task_scheduler.cur_score * 1e3:.3f}" if is_known else "N/A"
        seconds = time.time() - task_scheduler.tic
        append_lines(
            self.log_file,
            f"ElapsedTime(s)\t{seconds:.0f}\tEstimatedLatency(ms)\t{latency}\t"
            f"Trials\t{task_scheduler.ct}\n",
        )
