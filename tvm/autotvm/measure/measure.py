"""How to measure: a builder and a runner together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.autotvm.measure.build_methods import LocalBuilder
from tvm.autotvm.measure.interface import (
    Builder,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    Runner,
)
from tvm.autotvm.measure.run_methods import LocalRunner

__all__ = [
    "Builder",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "Runner",
    "create_measure_batch",
    "measure_option",
]


def measure_option(builder: Any, runner: Any) -> dict[str, Any]:
    """How to measure: the builder and the runner.

    Parameters
    ----------
    builder : Builder or "local"
        Compiles the candidates.
    runner : Runner or "local"
        Runs them.

    Examples
    --------
    >>> autotvm.measure_option(
    ...     builder=autotvm.LocalBuilder(),
    ...     runner=autotvm.LocalRunner(number=10, repeat=1, min_repeat_ms=100),
    ... )
    """
    return {
        "builder": _checked("builder", builder, Builder, LocalBuilder),
        "runner": _checked("runner", runner, Runner, LocalRunner),
    }


def _checked(name: str, value: Any, kind: type, local: type) -> Any:
    if isinstance(value, str) and value == "local":
        return local()
    if isinstance(value, str):
        raise ValueError(f"Invalid {name}: {value}; 'local' or a {kind.__name__} is required")
    if not isinstance(value, kind):
        raise ValueError(
            f"measure_option needs a {kind.__name__} as its {name}, "
            f"got {type(value).__name__}: autotvm.{local.__name__}()"
        )
    return value


def create_measure_batch(
    task: Any, option: Mapping[str, Any]
) -> Callable[..., list[MeasureResult]]:
    """The function that measures candidates of a task.

    Parameters
    ----------
    task : Task
        The task.
    option : dict
        From :func:`measure_option`.

    Returns
    -------
    function
        Takes a list of MeasureInput and returns a list of MeasureResult; its attribute ``n_parallel``
        tells how many candidates are built at a time.
    """
    builder, runner = option["builder"], option["runner"]
    runner.set_task(task)
    builder.set_task(task, runner.get_build_kwargs())

    def measure_batch(measure_inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        return list(runner.run(measure_inputs, builder.build(measure_inputs)))

    measure_batch.n_parallel = builder.n_parallel  # type: ignore[attr-defined]
    return measure_batch
