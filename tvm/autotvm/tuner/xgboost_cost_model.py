"""A cost model of gradient-boosted trees; needs the package ``xgboost``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from tvm.autotvm import feature
from tvm.autotvm.env import AutotvmGlobalScope, reset_global_scope
from tvm.autotvm.tuner.metric import cover_curve, max_curve, recall_curve
from tvm.autotvm.tuner.model_based_tuner import CostModel, FeatureCache
from tvm.autotvm.utils import cpu_count, get_rank
from tvm.contrib.popen_pool import PopenPoolExecutor
from tvm.error import TVMError, install_hint
from tvm.support.files import append_lines

logger = logging.getLogger("autotvm")

Array = np.ndarray[Any, Any]

FEATURE_TYPES = ("itervar", "knob", "curve")
LOSS_TYPES = ("reg", "rank", "rank-binary")
_OBJECTIVES = {"reg": "reg:squarederror", "rank": "rank:pairwise", "rank-binary": "rank:pairwise"}
_ROUNDS = 8000  # at most: training stops when the order of the best does not get better
_STOPPING_ROUNDS = 20
# how much of what a model knows of other tasks is taken over
_DISCOUNT = 0.9
# when so many features are there, the next ones are worth processes of their own
_WORTH_A_POOL = 128


def imported_xgboost(who: str = "the XGBoost cost model") -> Any:
    """The package, which knows our callbacks; ``who`` requires it."""
    try:
        import xgboost
    except ImportError as error:
        raise TVMError(
            f"{who} requires the package xgboost", hint=install_hint("xgboost")
        ) from error
    xgboost.callback.TrainingCallback.register(XGBoostCallback)
    return xgboost


class XGBoostCostModel(CostModel):
    """Boosted trees over features of configurations.

    Parameters
    ----------
    task : Task
        The task.
    feature_type : str
        "itervar", "knob" or "curve".
    loss_type : str
        "reg", "rank" or "rank-binary".
    num_threads : int, optional
        Of the training.
    log_interval : int
        After so many rounds a line is logged; 0 for none.
    upper_model : XGBoostCostModel, optional
        The model that this one is the base of; they share features and processes.
    """

    def __init__(
        self,
        task: Any,
        feature_type: str,
        loss_type: str = "reg",
        num_threads: int | None = None,
        log_interval: int = 25,
        upper_model: XGBoostCostModel | None = None,
    ) -> None:
        imported_xgboost()
        if feature_type not in FEATURE_TYPES:
            raise RuntimeError(
                f"Invalid feature type {feature_type}, should be one of {', '.join(FEATURE_TYPES)}"
            )
        if loss_type not in LOSS_TYPES:
            raise RuntimeError(
                f"Invalid loss type {loss_type}, should be one of {', '.join(LOSS_TYPES)}"
            )
        self.task = task
        self.target = task.target
        self.space = task.config_space
        self.fea_type = feature_type
        self.loss_type = loss_type
        self.num_threads = num_threads
        self.log_interval = log_interval
        self.xgb_params: dict[str, Any] = {
            "max_depth": 3, "gamma": 0.0001, "min_child_weight": 1, "subsample": 1.0, "eta": 0.3,
            "lambda": 1.0, "alpha": 0, "objective": _OBJECTIVES[loss_type], "verbosity": 0,
            "base_score": 0.5,
        }  # fmt: skip
        if num_threads:
            self.xgb_params["nthread"] = num_threads
        self.bst: Any = None
        self.base_model: XGBoostCostModel | None = None
        self.upper_model = upper_model
        self.feature_cache: FeatureCache = (
            upper_model.feature_cache if upper_model else FeatureCache()
        )
        self._pool: PopenPoolExecutor | None = None

    def close_pool(self) -> None:
        """End the processes that extract features."""
        self._pool = None

    # ---- learning

    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None:
        started = time.perf_counter()
        features = self._features_of(xs)
        margin = None
        if self.base_model is not None:
            margin = _DISCOUNT * self.base_model.predict(xs, output_margin=True)
        error = self._train(features, np.asarray(ys, dtype="float64"), margin, plan_size)
        logger.debug(
            "XGB train: %.2f\tobs: %d\terror: %d\tn_cache: %d",
            time.perf_counter() - started, len(xs), error, self.feature_cache.size(self.fea_type),
        )  # fmt: skip

    def fit_log(self, records: Iterable[Any], plan_size: int, min_seed_records: int = 500) -> bool:
        started = time.perf_counter()
        # the rows of loops and knobs say the same only of one template
        usable = [
            (inp, res)
            for inp, res in records
            if self.fea_type == "curve" or inp.task.name == self.task.name
        ]
        if len(usable) < min_seed_records:
            logger.debug("XGB: %d records are too few to learn from", len(usable))
            return False
        fastest: dict[Any, float] = {}
        speeds = []
        for inp, res in usable:
            speed = 1.0 / float(np.mean(res.costs)) if res.error_no == 0 else 0.0
            fastest[inp.task.workload] = max(speed, fastest.get(inp.task.workload, 0.0))
            speeds.append(speed)
        rows, labels = [], []
        for (inp, _), speed in zip(usable, speeds, strict=True):
            row = _extract(inp.task, inp.target, inp.config, self.fea_type)
            if row is not None:
                rows.append(row)
                labels.append(speed / max(fastest[inp.task.workload], 1e-30))
        if not rows:
            return False
        self._train(_stacked(rows), np.array(labels), None, plan_size)
        logger.debug("XGB base model: %.2f\tobs: %d", time.perf_counter() - started, len(rows))
        return True

    def _train(self, x: Array, speeds: Array, margin: Array | None, plan_size: int) -> int:
        """Train the trees; how many of the points are failures."""
        xgb = imported_xgboost()
        y = speeds / max(float(speeds.max()), 1e-8)
        is_failure = y <= 1e-6
        if self.loss_type == "rank-binary":
            y = np.where(y > 0.5, 2.0, np.where(is_failure, 0.0, 1.0))
        order = np.random.permutation(len(x))
        data = xgb.DMatrix(x[order], y[order], nthread=self.num_threads)
        if margin is not None:
            data.set_base_margin(margin[order])
        watch = CustomCallback(
            stopping_rounds=_STOPPING_ROUNDS,
            metric=f"tr-a-recall@{plan_size}",
            fevals=[xgb_average_recalln_curve_score(plan_size)],
            loss_type=self.loss_type,
            evals=[(data, "tr")],
            maximize=True,
            verbose_eval=self.log_interval,
        )
        self.bst = xgb.train(self.xgb_params, data, num_boost_round=_ROUNDS, callbacks=[watch])
        self.bst.set_param({"nthread": 1})  # predictions are of few points at a time
        return int(is_failure.sum())

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> Array:
        features = self._features_of(xs, int(self.bst.num_features()))
        margin = None
        if self.base_model is not None:
            margin = _DISCOUNT * self.base_model.predict(xs, output_margin=True)
        kind = "margin" if output_margin else "value"
        scores: Array = self.bst.inplace_predict(features, predict_type=kind, base_margin=margin)
        return scores

    def load_basemodel(self, base_model: CostModel) -> None:
        assert isinstance(base_model, XGBoostCostModel)
        self.base_model = base_model
        self.feature_cache = base_model.feature_cache

    def spawn_base_model(self) -> XGBoostCostModel:
        return XGBoostCostModel(
            self.task, self.fea_type, self.loss_type, self.num_threads, self.log_interval, self
        )

    # ---- features

    def _features_of(self, xs: Sequence[int], width: int | None = None) -> Array:
        """A row for each point, of that many features or as many as any has."""
        known = self.feature_cache.get(self.fea_type)
        wanted = [index for index in dict.fromkeys(int(x) for x in xs) if index not in known]
        # the upper model has the processes
        rows = (self.upper_model or self)._extracted(wanted)
        known.update(zip(wanted, rows, strict=True))
        rows = [known[int(index)] for index in xs]
        return _stacked(rows, width)

    def _extracted(self, indices: Sequence[int]) -> list[Array | None]:
        configs = [self.space.get(index) for index in indices]
        known = self.feature_cache.size(self.fea_type)
        is_quick = self.fea_type == "knob" or known + len(configs) < _WORTH_A_POOL
        if is_quick or not configs:
            return [_extract(self.task, self.target, c, self.fea_type) for c in configs]
        if self._pool is None:
            self._pool = PopenPoolExecutor(
                cpu_count(),
                initializer=reset_global_scope,
                initargs=(AutotvmGlobalScope.current,),
            )
        light = self.task.without_space()
        share = -(-len(configs) // (2 * cpu_count())) or 1
        parts = [configs[first : first + share] for first in range(0, len(configs), share)]
        futures = [
            self._pool.submit(_extract_all, light, self.target, part, self.fea_type)
            for part in parts
        ]
        return [row for future in futures for row in future.result()]


def _extract_all(
    task: Any, target: Any, configs: Sequence[Any], feature_type: str
) -> list[Array | None]:
    return [_extract(task, target, config, feature_type) for config in configs]


def _extract(task: Any, target: Any, config: Any, feature_type: str) -> Array | None:
    """The features of a configuration; None if the template does not take it."""
    if feature_type == "knob":
        return np.asarray(config.get_flatten_feature(), dtype="float32")
    try:
        with target:
            sch, args = task.instantiate(config)
            if feature_type == "curve":
                row = feature.get_buffer_curve_sample_flatten(sch, args, sample_n=20)
            else:
                row = feature.get_itervar_feature_flatten(sch, args, take_log=True)
    except Exception as error:  # such a candidate fails when it is measured, too
        logger.debug("no features of %s: %s", config, error)
        return None
    others = list(config.get_other_option().values())
    numbers = [float(v) if isinstance(v, (bool, int, float)) else 0.0 for v in others]
    return np.concatenate([np.array(numbers), row]).astype("float32")


def _stacked(rows: Sequence[Array | None], width: int | None = None) -> Array:
    """Rows of one width, filled up with zeros; zeros alone for candidates without features."""
    width = width or max([len(row) for row in rows if row is not None], default=1)
    stacked = np.zeros((len(rows), width), dtype="float32")
    for place, row in enumerate(rows):
        if row is not None:
            stacked[place, : len(row)] = row[:width]
    return stacked


class XGBoostCallback:
    """What is called around each round of training."""

    def before_training(self, model: Any) -> Any:
        """Before the first round; the model."""
        return model

    def after_training(self, model: Any) -> Any:
        """After the last round; the model."""
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Before a round; whether to stop."""
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """After a round; whether to stop."""
        raise NotImplementedError()


class CustomCallback(XGBoostCallback):
    """Stops the training when a measure does not get better.

    Parameters
    ----------
    stopping_rounds : int
        For so many rounds.
    metric : str
        Which measure: the name of a data set, a dash and the name of one of ``fevals``.
    fevals : list of function
        Measures of predictions.
    loss_type : str
        The loss of the model.
    evals : list of (DMatrix, str)
        The data sets and their names.
    log_file : str, optional
        Where a line for each round is appended.
    maximize : bool
        Whether more is better.
    verbose_eval : bool or int
        After so many rounds a line is logged.
    skip_every : int
        Only every so many rounds the measures are taken.
    """

    logger: ClassVar[logging.Logger] = logger

    def __init__(
        self,
        stopping_rounds: int,
        metric: str,
        fevals: Sequence[Callable[..., tuple[str, float]]],
        loss_type: str = "reg",
        evals: Sequence[tuple[Any, str]] = (),
        log_file: str | None = None,
        maximize: bool = False,
        verbose_eval: bool | int = True,
        skip_every: int = 2,
    ) -> None:
        self.stopping_rounds = stopping_rounds
        self.metric = metric
        self.fevals = fevals
        self.loss_type = loss_type
        self.evals = evals
        self.log_file = log_file
        self.maximize = maximize
        self.verbose_eval = verbose_eval
        self.skip_every = max(skip_every, 1)
        self.best_score: float | None = None
        self.best_iteration = 0

    def predictions(self, model: Any, data: Any) -> Any:
        """What the measures are taken of."""
        return model.predict(data)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        if epoch % self.skip_every:
            return False
        found = {
            f"{name}-{measure}": value
            for data, name in self.evals
            for measure, value in [
                feval(self.predictions(model, data), data) for feval in self.fevals
            ]
        }
        line = "\t".join([f"{name}: {value:.6f}" for name, value in found.items()])
        if self.log_file is not None:
            append_lines(self.log_file, f"[{epoch}]\t{line}\n")
        if self.verbose_eval and epoch % int(self.verbose_eval) == 0:
            self.logger.debug("XGB iter: %3d\t%s", epoch, line)
        if self.metric not in found:
            raise ValueError(f"the metric {self.metric!r} is none of {', '.join(found)}")
        score = found[self.metric] if self.maximize else -found[self.metric]
        if self.best_score is None or score > self.best_score:
            self.best_score, self.best_iteration = score, epoch
        return epoch - self.best_iteration >= self.stopping_rounds


def _curve_score(name: str, curve: Callable[[Array], float]) -> Callable[..., tuple[str, float]]:
    """A measure of the order that predictions put labels in."""

    def feval(preds: Any, labels: Any) -> tuple[str, float]:
        true = np.asarray(labels.get_label())
        return name, float(curve(true[np.argsort(-np.asarray(preds))]))

    return feval


def _at(curve: Array, place: int) -> float:
    return float(curve[min(place, len(curve) - 1)])


def xgb_max_curve_score(N: int) -> Callable[..., tuple[str, float]]:
    """The best of the N points predicted to be best, over the best of all."""
    return _curve_score(f"Smax@{N}", lambda t: _at(max_curve(t), N) / max(float(t.max()), 1e-30))


def xgb_recalln_curve_score(N: int) -> Callable[..., tuple[str, float]]:
    """How much of the N best is among the N points predicted to be best."""
    return _curve_score(f"recall@{N}", lambda t: _at(recall_curve(get_rank(t)), N))


def xgb_average_recalln_curve_score(N: int) -> Callable[..., tuple[str, float]]:
    """The mean of :func:`xgb_recalln_curve_score` for 1 to N."""
    return _curve_score(f"a-recall@{N}", lambda t: float(np.sum(recall_curve(get_rank(t))[:N]) / N))


def xgb_recallk_curve_score(N: int, topk: int) -> Callable[..., tuple[str, float]]:
    """How much of the topk best is among the N points predicted to be best."""
    return _curve_score(f"recall@{topk}", lambda t: _at(recall_curve(get_rank(t), topk), N))


def xgb_cover_curve_score(N: int) -> Callable[..., tuple[str, float]]:
    """:func:`cover_curve` at N."""
    return _curve_score(f"cover@{N}", lambda t: _at(cover_curve(get_rank(t)), N))


def xgb_null_score(_: Any) -> Callable[..., tuple[str, float]]:
    """A measure that says nothing."""
    return _curve_score("null", lambda t: 0.0)
