"""A cost model of gradient-boosted trees; needs the package ``xgboost``.

The score of a program is the sum of the scores of its stores. Trees see the stores one by one, and the
loss is that of the sums ("pack-sum"), weighted by throughput: fast programs are to be told apart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tvm.autotvm.tuner import xgboost_cost_model
from tvm.error import TVMError
from tvm.support.files import write_bytes

from ..feature import (
    get_per_store_features_from_measure_pairs,
    get_per_store_features_from_states,
)
from ..measure_record import RecordReader
from ..measure_types import MeasureInput, MeasureResult
from .cost_model import INVALID_SCORE, PythonBasedModel, RandomModel

logger = logging.getLogger("auto_scheduler")

Array = np.ndarray[Any, Any]

_ROUNDS = 300
_STOPPING_ROUNDS = 50
_METRIC = "tr-p-rmse"


_xgboost = partial(xgboost_cost_model.imported_xgboost, "XGBModel")


class XGBDMatrixContext:
    """What belongs to matrices of xgboost, which take no attributes."""

    def __init__(self) -> None:
        self.context_dict: dict[str, dict[int, Any]] = {}

    def get(self, key: str, matrix: Any, default: Any = None) -> Any:
        """A value of a matrix.

        Parameters
        ----------
        key : str
            Its name.
        matrix : xgboost.DMatrix
            The matrix.
        default :
            If there is none.
        """
        return self.context_dict.get(key, {}).get(matrix.handle.value, default)

    def set(self, key: str, matrix: Any, value: Any) -> None:
        """Keep a value of a matrix.

        Parameters
        ----------
        key, matrix :
            As of :meth:`get`.
        value :
            The value.
        """
        self.context_dict.setdefault(key, {})[matrix.handle.value] = value


dmatrix_context = XGBDMatrixContext()


class XGBModel(PythonBasedModel):
    """Boosted trees over the features of stores.

    Parameters
    ----------
    verbose_eval : int
        After so many rounds of training a line is logged.
    num_warmup_sample : int
        With fewer measurements the scores are random.
    seed : int, optional
        For training.
    model_file : str, optional
        Where the model is saved after each update.
    adaptive_training : bool
        Whether it is trained anew only when there are clearly more measurements.
    """

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int = 100,
        seed: int | None = None,
        model_file: str | None = None,
        adaptive_training: bool = False,
    ) -> None:
        _xgboost()
        self.xgb_params: dict[str, Any] = {
            "max_depth": 10, "gamma": 0.001, "min_child_weight": 0, "eta": 0.2,
            "nthread": 0, "verbosity": 0, "seed": seed or 43,
            "disable_default_eval_metric": 1,
        }  # fmt: skip
        self.bst: Any = None
        self.plan_size = 32
        self.num_warmup_sample = num_warmup_sample
        self.verbose_eval = verbose_eval
        self.model_file = model_file
        self.adaptive_training = adaptive_training
        self.inputs: list[MeasureInput] = []
        self.results: list[MeasureResult] = []
        self.last_train_length = 0
        self.inputs_feature_cache: list[Array] = []
        self._random = RandomModel()

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        if not inputs:
            return
        self.inputs.extend(inputs)
        self.results.extend(results)
        grown = len(self.results) - self.last_train_length
        if self.adaptive_training and grown < self.last_train_length / 5:
            return
        self.last_train_length = len(self.inputs)
        features, throughputs, ids = self._features()
        matrix = pack_sum_xgbmatrix(features, throughputs, ids, throughputs)
        xgb = _xgboost()
        self.bst = xgb.train(
            self.xgb_params,
            matrix,
            num_boost_round=_ROUNDS,
            obj=pack_sum_square_error,
            callbacks=[
                CustomCallback(
                    stopping_rounds=_STOPPING_ROUNDS,
                    metric=_METRIC,
                    fevals=[pack_sum_rmse, pack_sum_average_peak_score(self.plan_size)],
                    evals=[(matrix, "tr")],
                    maximize=False,
                    verbose_eval=self.verbose_eval,
                )
            ],
        )
        if self.model_file:
            self.save(self.model_file)

    def _features(self) -> tuple[Array, Array, Array]:
        """Of all measurements; those of before are kept."""
        known = len(self.inputs_feature_cache)
        features, throughputs, ids = get_per_store_features_from_measure_pairs(
            self.inputs, self.results, skip_first_n_feature_extraction=known
        )
        for place in range(known):
            features[place] = self.inputs_feature_cache[place]
        self.inputs_feature_cache = list(features)
        return features, throughputs, ids

    def predict(self, task: Any, states: Sequence[Any]) -> Any:
        """A score for each state.

        Parameters
        ----------
        task : SearchTask
            The task.
        states : list of State or StateObject
            Programs of it.
        """
        if self.bst is None or len(self.inputs) <= self.num_warmup_sample:
            return self._random.predict(task, states)
        features = get_per_store_features_from_states(states, task)
        matrix, packs = feature_to_pack_sum_xgbmatrix(features)
        scores = predict_throughput_pack_sum(self.bst.predict(matrix), packs)
        valid = np.array([bool(np.any(rows)) for rows in features])
        return [float(s) for s in np.where(valid, scores, INVALID_SCORE)]

    def predict_stages(self, task: Any, states: Sequence[Any]) -> Any:
        """The scores of states, then for each the number of its stores and their scores.

        Parameters
        ----------
        task, states :
            As of :meth:`predict`.
        """
        features = get_per_store_features_from_states(states, task)
        if self.bst is None or len(self.inputs) <= self.num_warmup_sample:
            each = [np.random.uniform(0, 1, len(rows)) for rows in features]
        else:
            matrix, packs = feature_to_pack_sum_xgbmatrix(features)
            raw = self.bst.predict(matrix)
            each = [raw[packs == place] for place in range(len(features))]
        totals = [float(np.sum(scores)) for scores in each]
        rest = [value for scores in each for value in (len(scores), *scores)]
        return [*totals, *[float(value) for value in rest]]

    def update_from_file(self, file_name: Any, n_lines: int | None = None) -> None:
        """Learn from a log.

        Parameters
        ----------
        file_name : str
            The log.
        n_lines : int, optional
            At most so many records.
        """
        inputs, results = RecordReader(file_name).read_lines(n_lines)
        logger.info("XGBModel: Loaded %s measurement records from %s", len(inputs), file_name)
        self.update(inputs, results)

    def save(self, file_name: Any) -> None:
        """Write the model into a file.

        Parameters
        ----------
        file_name : str
            Its name.
        """
        if self.bst is None:
            raise TVMError("XGBModel has learned nothing that could be saved")
        write_bytes(file_name, bytes(self.bst.save_raw("ubj")))

    def load(self, file_name: Any) -> None:
        """Read the model of a file; it then predicts without further measurements.

        Parameters
        ----------
        file_name : str
            Its name.
        """
        xgb = _xgboost()
        self.bst = xgb.Booster(self.xgb_params)
        self.bst.load_model(bytearray(Path(file_name).read_bytes()))
        self.num_warmup_sample = -1


def feature_to_pack_sum_xgbmatrix(xs: Any) -> tuple[Any, Array]:
    """A matrix of all stores, and the number of the program of each.

    Parameters
    ----------
    xs : list of numpy.ndarray
        The features of programs.
    """
    packs = np.repeat(np.arange(len(xs)), [len(rows) for rows in xs])
    return _xgboost().DMatrix(np.concatenate(list(xs))), packs


def pack_sum_xgbmatrix(xs: Any, ys: Any, gids: Any = None, weights: Any = None) -> Any:
    """A matrix for training.

    Parameters
    ----------
    xs : list of numpy.ndarray
        The features of programs.
    ys : list of float
        Their labels.
    gids : list of int, optional
        The tasks that they are of.
    weights : list of float, optional
        How much each counts.
    """
    if gids is not None:
        # programs of one task lie together
        order = np.argsort(np.asarray(gids), kind="stable")
        xs, ys = [xs[place] for place in order], np.asarray(ys)[order]
        weights = None if weights is None else np.asarray(weights)[order]
        gids = np.asarray(gids)[order]
    packs = np.repeat(np.arange(len(xs)), [len(rows) for rows in xs])
    labels = np.asarray(ys, dtype="float32")[packs]
    matrix = _xgboost().DMatrix(np.concatenate(list(xs)), labels)
    dmatrix_context.set("pack_ids", matrix, packs)
    if weights is not None:
        matrix.set_weight(np.maximum(np.asarray(weights), 1e-6)[packs])
    if gids is not None:
        dmatrix_context.set("group_sizes", matrix, np.bincount(gids))
    return matrix


def predict_throughput_pack_sum(raw_preds: Array, pack_ids: Array) -> Array:
    """The scores of programs from those of stores.

    Parameters
    ----------
    raw_preds : numpy.ndarray
        Of stores.
    pack_ids : numpy.ndarray
        The programs that they are of.
    """
    return np.bincount(pack_ids, weights=raw_preds)


def pack_sum_square_error(preds: Array, dtrain: Any) -> tuple[Array, Array]:
    """The gradient and the curvature of the weighted square error of sums.

    Parameters
    ----------
    preds : numpy.ndarray
        Scores of stores.
    dtrain : xgboost.DMatrix
        From :func:`pack_sum_xgbmatrix`.
    """
    packs = dmatrix_context.get("pack_ids", dtrain)
    error = np.bincount(packs, weights=preds)[packs] - dtrain.get_label()
    weight = dtrain.get_weight()
    if not len(weight):
        return error, np.ones_like(error)
    return error * weight, weight


def pack_sum_rmse(raw_preds: Array, labels: Any) -> tuple[str, float]:
    """The root of the mean square error of sums.

    Parameters
    ----------
    raw_preds : numpy.ndarray
        Scores of stores.
    labels : xgboost.DMatrix
        From :func:`pack_sum_xgbmatrix`.
    """
    packs = dmatrix_context.get("pack_ids", labels)
    scores = predict_throughput_pack_sum(raw_preds, packs)[packs]
    return "p-rmse", float(np.sqrt(np.mean(np.square(scores - labels.get_label()))))


def pack_sum_average_peak_score(N: int) -> Callable[[Array, Any], tuple[str, float]]:
    """How good the best of the first, second, ... ``N`` programs by score are, on average.

    Parameters
    ----------
    N : int
        Of how many programs.
    """

    def feval(preds: Array, labels: Any) -> tuple[str, float]:
        packs = dmatrix_context.get("pack_ids", labels)
        sizes = dmatrix_context.get("group_sizes", labels, [int(packs.max()) + 1])
        first = np.unique(packs, return_index=True)[1]
        truth, scores = labels.get_label()[first], predict_throughput_pack_sum(preds, packs)
        found, start = [], 0
        for size in sizes:
            mine = slice(start, start + size)
            start += size
            best = truth[mine].max(initial=0.0)
            if best > 0:
                order = np.argsort(-scores[mine])[:N]
                found.append(float(np.mean(np.maximum.accumulate(truth[mine][order]) / best)))
        return f"a-peak@{N}", float(np.mean(found)) if found else 0.0

    return feval


class CustomCallback(xgboost_cost_model.CustomCallback):
    """Ends training when a metric of sums does not get better; parameters as of AutoTVM's.

    Metrics get the scores of stores before they are transformed.
    """

    logger = logger

    def __init__(
        self,
        stopping_rounds: int,
        metric: str,
        fevals: Sequence[Callable[..., Any]],
        evals: Sequence[tuple[Any, str]] = (),
        log_file: str | None = None,
        maximize: bool = False,
        verbose_eval: bool | int = True,
        skip_every: int = 2,
    ) -> None:
        super().__init__(
            stopping_rounds,
            metric,
            fevals,
            "reg",
            evals,
            log_file,
            maximize,
            verbose_eval,
            skip_every,
        )

    def predictions(self, model: Any, data: Any) -> Any:
        """The scores of stores."""
        return model.predict(data, output_margin=True)
