"""Cost models: scores of programs, the higher the faster."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm._ffi.registry import register_func
from tvm.runtime.object import Object

from ..measure_types import MeasureInput, MeasureResult

# what predict gives for programs that are not to be measured
INVALID_SCORE = -1e10


class CostModel(Object):
    """The base of cost models."""

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements.

        Parameters
        ----------
        inputs : list of MeasureInput
            Candidates.
        results : list of MeasureResult
            Their outcomes.
        """
        raise NotImplementedError

    def predict(self, search_task: Any, states: Sequence[Any]) -> Any:
        """A score for each state.

        Parameters
        ----------
        search_task : SearchTask
            The task.
        states : list of State or StateObject
            Programs of it.

        Returns
        -------
        list of float
            The higher the faster.
        """
        raise NotImplementedError


class RandomModel(CostModel):
    """Scores by chance."""

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Nothing is learned."""

    def predict(self, search_task: Any, states: Sequence[Any]) -> Any:
        return [float(score) for score in np.random.uniform(0, 1, (len(states),))]


@register_func("auto_scheduler.cost_model.random_fill_float")
def random_fill_float(size: int, return_ptr: Any) -> None:
    """Fill an array of floats with random numbers.

    Parameters
    ----------
    size : int
        How many.
    return_ptr : pointer or array
        Where they go.
    """
    if isinstance(return_ptr, np.ndarray):
        target: Any = return_ptr
    else:
        address = getattr(return_ptr, "value", return_ptr)
        target = np.ctypeslib.as_array(
            ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), shape=(size,)
        )
    target[:size] = np.random.uniform(0, 1, (size,))


class PythonBasedModel(CostModel):
    """The base of cost models of programs."""

    def predict_stages(self, task: Any, states: Sequence[Any]) -> Any:
        """The scores of states, and of their stages.

        Parameters
        ----------
        task : SearchTask
            The task.
        states : list of State or StateObject
            Programs of it.
        """
        raise NotImplementedError
