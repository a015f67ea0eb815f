"""Schedules that keep copies of themselves."""

import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError
from tvm.te.schedule import Schedule

KEEP = {"te.keep_schedule_record": True}


def plus_one() -> tuple[te.Tensor, te.Tensor]:
    a = te.placeholder((64,), name="A")
    return a, te.compute((64,), lambda i: a[i] + 1.0, name="B")


def loops(schedule: Schedule, tensor: te.Tensor) -> list[str]:
    return [iv.var.name for iv in schedule[tensor].leaf_iter_vars]


def test_each_primitive_leaves_a_copy() -> None:
    a, b = plus_one()
    with tvm.transform.PassContext(config=KEEP):
        s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=8)
    s[b].vectorize(inner)
    cache = s.cache_read(a, "local", [b])
    s[cache].compute_at(s[b], outer)
    assert s.primitive_record == ["vanilla", "split", "vectorize", "cache_read", "compute_at"]
    assert [len(copy.stages) for copy in s.schedule_record] == [2, 2, 2, 3, 3]
    assert loops(s.schedule_record[0], b) == ["i"]
    assert loops(s.schedule_record[1], b) == loops(s, b) == ["i.outer", "i.inner"]
    # a copy is a schedule of its own
    s.schedule_record[0][b].split(b.op.axis[0], factor=2)
    assert len(s.schedule_record) == 5 and not s.schedule_record[0].schedule_record


def test_tiles_are_two_splits_and_a_reorder() -> None:
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[j, i], name="B")
    with tvm.transform.PassContext(config=KEEP):
        s = te.create_schedule(b.op)
    s[b].tile(*b.op.axis, 2, 2)
    assert s.primitive_record == ["vanilla", "split", "split", "reorder"]


def test_what_is_rejected_leaves_none() -> None:
    _, b = plus_one()
    with tvm.transform.PassContext(config=KEEP):
        s = te.create_schedule(b.op)
    with pytest.raises(ScheduleError):
        s[b].vectorize(te.reduce_axis((0, 4)))
    assert s.primitive_record == ["vanilla"]


def test_schedules_keep_no_copies_unless_asked() -> None:
    _, b = plus_one()
    s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    assert s.schedule_record == [] and s.primitive_record == []


def test_json_is_of_the_schedule_alone() -> None:
    _, b = plus_one()
    with tvm.transform.PassContext(config=KEEP):
        s = te.create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    loaded = tvm.ir.load_json(tvm.ir.save_json(s))
    assert loaded.primitive_record == [] and loops(loaded, loaded.outputs[0].output(0)) == ["i"]
