import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError

from ..programs import chain, check_chain, matmul


def test_prefetch_names_what_a_later_iteration_reads() -> None:
    a, b, c = matmul(8, 16, 10)
    s = te.create_schedule(c.op)
    s[c].reorder(*c.op.axis[:1], c.op.reduce_axis[0], c.op.axis[1])
    s[c].prefetch(b, c.op.reduce_axis[0], 2)
    text = str(te.schedule.lower_schedule(s, [a, b, c]))
    assert "T.prefetch" in text or "prefetch" in text.lower()
    x, y = np.random.default_rng(0).random((8, 10), "float32"), np.ones((10, 16), "float32")
    out = tvm.nd.empty((8, 16))
    built = tvm.build(s, [a, b, c], "llvm")
    built(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-5)
    assert "llvm.prefetch" in built.get_source("ll") or "@llvm.prefetch" in built.get_source()


def test_prefetch_of_a_stage_kept_inside() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=5)
    s[c].prefetch(b, outer, 1)
    check_chain(s, a, c)


def test_misuse_is_refused() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError, match="prefetch requires a tensor, got a value of int"):
        s[c].prefetch(3, c.op.axis[0], 1)
    s[c].prefetch(a, c.op.axis[0], 1)
    with pytest.raises(ScheduleError, match="prefetch requires a loop in which A is read, got i"):
        te.schedule.lower_schedule(s, [a, c])
    assert b is not c
