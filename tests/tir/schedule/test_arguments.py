"""Wrong arguments of primitives are told in one sentence, by the name of the parameter."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

from tests.tir.schedule.programs import matmul_relu
from tvm import tir
from tvm.tir.schedule import BlockRV, LoopRV

# what parameters without a default get, by their names
RIGHT: dict[str, Any] = {
    "factors": [None, 2], "ann_key": "key", "ann_val": 1, "storage_scope": "global", "index_map": lambda *i: i,
    "buffer": ("write", 0), "thread_axis": "threadIdx.x", "axis": 0, "factor": 2, "offset": 0, "n": 2,
    "axis_separators": [1], "padding": [2, 2, 2], "candidates": [1, 2], "probs": [0.5, 0.5], "partition_pos": 0,
    "tensor_intrin": "none", "new_order": [0, 1, 2], "name": "C", "dtype": "float16", "buf_type": "read",
    "buf_index_array": [0], "cse_thresh": 0, "innerpart_factor": 1, "factor_axis": 0,
    "gen_new_ranges": lambda *i: [],
}  # fmt: skip


def schedule() -> tir.Schedule:
    return tir.Schedule(matmul_relu, debug_mask="all")


def primitives() -> list[str]:
    methods = inspect.getmembers(tir.Schedule, inspect.isfunction)
    return [name for name, f in methods if not name.startswith("_") and hasattr(f, "__wrapped__")]


def call(name: str, wrong: str, value: Any) -> None:
    """Call a primitive with right arguments but for one."""
    sch = schedule()
    args: list[Any] = []
    block = sch.get_block("C")
    for param in list(inspect.signature(getattr(tir.Schedule, name)).parameters.values())[1:]:
        if param.kind is inspect.Parameter.KEYWORD_ONLY:
            break
        if param.name == wrong:
            args.append(value)
        elif param.default is not inspect.Parameter.empty:
            break
        elif "block" in param.name and "loop" not in param.name:
            args.append(block)
        elif "index" in param.name and param.name != "index_map":
            args.append(0)
        else:
            args.append(RIGHT.get(param.name, sch.get_loops(block)[0]))
    getattr(sch, name)(*args)


@pytest.mark.parametrize("name", primitives())
def test_the_first_argument_is_checked(name: str) -> None:
    first = list(inspect.signature(getattr(tir.Schedule, name)).parameters)[1]
    with pytest.raises(TypeError, match=f"{name} requires {first}"):
        call(name, first, object())


@pytest.mark.parametrize(
    ("name", "wrong", "value"),
    [
        ("split", "factors", ["a"]), ("split", "factors", 4), ("bind", "thread_axis", -1),
        ("cache_read", "storage_scope", None), ("cache_index", "cse_thresh", None),
        ("reorder_block_iter_var", "new_order", None), ("pad_einsum", "padding", "x"),
        ("sample_categorical", "probs", None), ("loop_partition", "factors", None),
        ("reindex_cache_read", "index_map", None), ("annotate", "ann_key", []),
        ("rfactor", "factor_axis", 1.5), ("storage_align", "factor", "8"),
    ],
)  # fmt: skip
def test_each_argument_is_checked(name: str, wrong: str, value: Any) -> None:
    with pytest.raises(TypeError, match=re.escape(f"{name} requires {wrong}") + ".*, got a "):
        call(name, wrong, value)


def test_numbers_of_numpy_and_constants_are_integers() -> None:
    sch = schedule()
    outer, _ = sch.split(sch.get_loops("C")[0], [np.int64(4), None])
    halves = sch.split(outer, [None, tir.IntImm("int32", 2)])
    assert [int(sch.get(loop).extent) for loop in halves] == [2, 2]
    sch.storage_align("C", np.int32(0), 0, tir.IntImm("int32", 8), 4)


def test_arguments_that_are_missing() -> None:
    sch = schedule()
    with pytest.raises(
        TypeError, match=r"split\(\) missing 1 required positional argument: 'factors'"
    ):
        sch.split(sch.get_loops("C")[0])  # type: ignore[call-arg]


def test_a_partition_needs_a_factor() -> None:
    sch = schedule()
    with pytest.raises(ValueError, match="requires at least one factor, got none"):
        sch.loop_partition(sch.get_loops("C")[0], [])


def test_what_a_primitive_removed_is_no_argument() -> None:
    sch = schedule()
    loops = sch.get_loops("C")
    sch.fuse(*loops[:2])
    with pytest.raises(ValueError, match="LoopRV is no longer part of the program"):
        sch.split(loops[0], [None, 2])


@pytest.mark.parametrize("stranger", [BlockRV(), LoopRV()])
def test_what_another_schedule_found_is_no_argument(stranger: Any) -> None:
    with pytest.raises((IndexError, TypeError), match="Cannot find corresponding|requires"):
        schedule().get_loops(stranger)
