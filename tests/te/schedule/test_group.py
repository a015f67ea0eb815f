import pytest

from tvm import te
from tvm.error import ScheduleError

from ..outline import expect, lowered
from ..programs import chain, check_chain


def copy_of(tensor: te.Tensor, name: str) -> te.Tensor:
    return te.compute((12,), lambda i: tensor[i] + 0, name=name)


def long_chain() -> list[te.Tensor]:
    """A -> B -> C -> D -> E, with C = A*2 + 1 and copies behind it."""
    a, b, c = chain(12)
    d = copy_of(c, "D")
    return [a, b, c, d, copy_of(d, "E")]


def test_a_group_is_computed_inside_a_loop() -> None:
    a, _, _, d, e = long_chain()
    s = te.create_schedule(e.op)
    group = s.create_group(outputs=d, inputs=a)
    outer, _ = s[e].split(e.op.axis[0], factor=4)
    group.compute_at(s[e], outer)
    assert lowered(s, [a, e]) == expect("""
        for i.outer in serial(3)
          realize B[4]
            for i in serial(4)
              store B
            realize C[4]
              for i in serial(4)
                store C
              realize D[4]
                for i in serial(4)
                  store D
                for i.inner in serial(4)
                  store E
    """)
    check_chain(s, a, e)


def test_groups_nest() -> None:
    a, b, c, d, e = long_chain()
    s = te.create_schedule(e.op)
    inner = s.create_group(outputs=c, inputs=b, include_inputs=True)
    outer = s.create_group(outputs=d, inputs=a)
    assert inner.group is outer
    loop, _ = s[e].split(e.op.axis[0], factor=4)
    outer.compute_at(s[e], loop)
    inner.compute_at(s[d], d.op.axis[0])
    assert "realize C[1]" in lowered(s, [a, e])
    check_chain(s, a, e)


def test_misuse_is_rejected() -> None:
    a, b, c, d, e = long_chain()
    s = te.create_schedule(e.op)
    s.create_group(outputs=c, inputs=a)
    with pytest.raises(ScheduleError, match="groups that do not overlap, got stage B"):
        s.create_group(outputs=d, inputs=b)
    with pytest.raises(ScheduleError, match="compute_at requires a stage of the group that B"):
        s[b].compute_at(s[e], e.op.axis[0])
    with pytest.raises(ScheduleError, match="requires stages between inputs and outputs"):
        s.create_group(outputs=b, inputs=d)
    s = te.create_schedule(e.op)
    s[c].compute_at(s[e], e.op.axis[0])
    with pytest.raises(ScheduleError, match="not computed outside the group, got C at E"):
        s.create_group(outputs=d, inputs=a)


def test_a_group_that_is_rejected_leaves_the_schedule_as_it_was() -> None:
    a, _, c, d, e = long_chain()
    s = te.create_schedule(e.op)
    s[c].compute_at(s[e], e.op.axis[0])
    s[d].compute_at(s[e], e.op.axis[0])
    before = lowered(s, [a, e])
    with pytest.raises(ScheduleError, match="not computed outside the group"):
        s.create_group(outputs=c, inputs=a)
    assert lowered(s, [a, e]) == before


def test_groups_count_the_stages_right_inside() -> None:
    a, b, _, d, e = long_chain()
    s = te.create_schedule(e.op)
    inner = s.create_group(outputs=d, inputs=b)
    outer = s.create_group(outputs=d, inputs=a)
    assert (inner.num_child_stages, outer.num_child_stages) == (2, 2)
    assert [group.num_child_stages for group in s.copy().groups] == [2, 2]
    assert (inner.num_child_stages, outer.num_child_stages) == (2, 2)
