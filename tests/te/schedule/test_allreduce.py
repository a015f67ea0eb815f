from typing import Any

from tvm import te, tir

from ..outline import expect, lowered
from ..programs import matmul


def allreduce_of(func: tir.PrimFunc) -> Any:
    """The call among a function's statements."""
    found: list[Any] = []

    def note(node: Any) -> None:
        if (
            isinstance(node, tir.Call)
            and getattr(node.op, "name", "") == "tir.tvm_thread_allreduce"
        ):
            found.append(node)

    tir.stmt_functor.post_order_visit(func.body, note)
    (call,) = found
    return call


def test_threads_combine_their_parts() -> None:
    a, b, c = matmul(4, 3, 32)
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.reduce_axis[0], factor=8)
    s[c].reorder(inner, s[c].leaf_iter_vars[2])
    s[c].bind(inner, te.thread_axis("threadIdx.x"))
    assert lowered(s, [a, b, c]) == expect("""
        for i in serial(4)
          for j in serial(3)
            attr threadIdx.x thread_extent = 8
              realize C.mine[1] in local
                realize C.all[1] in local
                  store C.mine
                  for k.outer in serial(4)
                    store C.mine
                  attr reducer reduce_scope = 0
                    evaluate
                  store C
    """)
    call = allreduce_of(te.schedule.lower_schedule(s, [a, b, c]))
    size, source, condition, result, thread = call.args
    assert size.value == 1 and condition.value == 1 and thread.name == "threadIdx.x"
    assert source.buffer.name == "C.mine" and result.buffer.name == "C.all"


def test_conditions_reach_the_threads() -> None:
    a, b, c = matmul(5, 3, 6)
    s = te.create_schedule(c.op)
    s[c].bind(c.op.reduce_axis[0], te.thread_axis((0, 6), "threadIdx.x"))
    outer, _ = s[c].split(c.op.axis[0], factor=2)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].set_store_predicate(c.op.axis[1].equal(0))
    func = te.schedule.lower_schedule(s, [a, b, c])
    call = allreduce_of(func)
    # the last block has one row only
    assert not isinstance(call.args[2], tir.IntImm)
    assert isinstance(call.args[1], tir.Mul)


def test_tuples_are_combined_together() -> None:
    a = te.placeholder((4, 8), name="A")
    pick = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)),
        "argmax",
    )
    k = te.reduce_axis((0, 8), name="k")
    where, value = te.compute((4,), lambda i: pick((k.var, a[i, k]), axis=k), name="best")
    s = te.create_schedule(where.op)
    outer, _ = s[where].split(k, factor=2)
    s[where].bind(outer, te.thread_axis("threadIdx.x"))
    call = allreduce_of(te.schedule.lower_schedule(s, [a, where, value]))
    assert call.args[0].value == 2 and len(call.args) == 1 + 2 + 1 + 2 + 1
