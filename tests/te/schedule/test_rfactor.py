import numpy as np
import pytest

from tvm import te
from tvm.error import ScheduleError

from ..outline import expect, lowered
from ..programs import check_matmul, matmul, run


def test_rfactor_combines_partial_results() -> None:
    a = te.placeholder((10,), name="A")
    k = te.reduce_axis((0, 10), name="k")
    b = te.compute((), lambda: te.sum(a[k], axis=k), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(k, factor=4)
    partial = s.rfactor(b, inner)
    assert partial.op.name == "B.rf" and [int(d) for d in partial.shape] == [4]
    assert lowered(s, [a, b]) == expect("""
        realize B.rf[4]
          for k.inner in serial(4)
            store B.rf
            for k.outer in serial(3)
              if likely
                store B.rf
          store B
          for k.inner.v in serial(4)
            store B
    """)
    x = np.arange(10, dtype="float32")
    assert run(s, [a, b], x)[0] == x.sum()


@pytest.mark.parametrize("position", [0, 1, 2, -1])
def test_factor_axis_is_where_the_partial_results_lie(position: int) -> None:
    a, b, c = matmul(4, 3, 10)
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(s[c].op.reduce_axis[0], factor=4)
    partial = s.rfactor(c, outer, position)
    assert int(partial.shape[position]) == 3
    check_matmul(s, a, b, c)


def test_rfactor_of_a_whole_axis() -> None:
    a, b, c = matmul(4, 3, 10)
    s = te.create_schedule(c.op)
    s.rfactor(c, c.op.reduce_axis[0])
    check_matmul(s, a, b, c)


def test_rfactor_after_a_split_of_the_rows() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=2)
    _, inner = s[c].split(c.op.reduce_axis[0], factor=4)
    s.rfactor(c, inner)
    check_matmul(s, a, b, c)


def test_misuse_is_rejected() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError, match="rfactor requires a loop that comes from a reduction"):
        s.rfactor(c, c.op.axis[0])
    with pytest.raises(ScheduleError, match="rfactor requires factor_axis in"):
        s.rfactor(c, c.op.reduce_axis[0], 7)
    with pytest.raises(ScheduleError, match="rfactor requires a reduction, got A"):
        s.rfactor(a, c.op.axis[0])
    assert b.op.name == "B"
