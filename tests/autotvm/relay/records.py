"""Small programs, and records of tuning made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm import autotvm, relay
from tvm.autotvm import ConfigEntity, MeasureInput, MeasureResult
from tvm.autotvm.task.task import Task

TARGET = "llvm -mcpu=x86-64-v3"

Record = tuple[MeasureInput, MeasureResult]


def weight(*shape: int) -> relay.Constant:
    return relay.const(np.random.default_rng(0).normal(size=shape).astype("float32"))


def conv_and_dense() -> relay.Function:
    """A convolution that Winograd's way suits, one that it does not, and a dense layer."""
    x = relay.var("x", shape=(1, 32, 14, 14))
    out = relay.nn.relu(relay.nn.conv2d(x, weight(32, 32, 3, 3), padding=1))
    out = relay.nn.conv2d(out, weight(16, 32, 3, 3), strides=2)
    out = relay.nn.dense(relay.reshape(out, (4, 144)), weight(64, 144))
    return relay.Function([x], out)


def record(
    task: Task, wanted: Callable[[ConfigEntity], bool] = lambda config: True, seconds: float = 1e-3
) -> Record:
    """A record of the last configuration of a task that is wanted."""
    space = task.config_space
    points = [i for i in reversed(range(space.range_length)) if space.is_index_valid(i)]
    config = next(c for c in map(space.get, points) if wanted(c))
    return MeasureInput(task.target, task, config), MeasureResult((seconds,), 0, 0.1, 0.0)


def with_knobs(task: Task, *entity: list[Any]) -> Record:
    """A record as a log has it, of these knobs alone."""
    config = {"index": 0, "code_hash": None, "entity": list(entity)}
    made = ConfigEntity.from_json_dict(config)
    return MeasureInput(task.target, task, made), MeasureResult((1e-3,), 0, 0.1, 0.0)


def tasks_of(func: relay.Function, **kwargs: Any) -> list[Task]:
    return autotvm.task.extract_from_program(func, {}, TARGET, **kwargs)
