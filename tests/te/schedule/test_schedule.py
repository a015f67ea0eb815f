import pytest

from tvm import te, tir
from tvm.error import LoweringError, OpNotImplemented, ScheduleError

from ..outline import expect, lowered, outline
from ..programs import chain, matmul


def test_a_schedule_prints_its_stages() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    assert str(te.create_schedule(b.op)) == "schedule(A, B)"


def test_stages_stand_in_the_order_of_computation() -> None:
    _, _, c = chain()
    s = te.create_schedule(c.op)
    assert [stage.op.name for stage in s.stages] == ["A", "B", "C"]
    assert [stage.is_output for stage in s.stages] == [False, False, True]
    assert s[c] is s[c.op] is s.stages[-1]


def test_schedules_take_one_or_several_outputs() -> None:
    a, b, c = chain()
    s = te.create_schedule([b.op, c.op])
    assert s.outputs == [b.op, c.op]
    assert "realize" not in lowered(s, [a, b, c])
    with pytest.raises(
        ScheduleError, match="create_schedule requires operations, got a value of int"
    ):
        te.create_schedule(3)


def test_a_stage_tells_its_state() -> None:
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], 4)
    fused = s[c].fuse(inner, c.op.axis[1])
    stage = s[c]
    assert [iv.var.name for iv in stage.leaf_iter_vars] == ["i.outer", "i.inner.j.fused", "k"]
    assert len(stage.all_iter_vars) == 6
    split, fuse = stage.relations
    assert isinstance(split, te.schedule.Split) and split.outer is outer and split.factor.value == 4
    assert isinstance(fuse, te.schedule.Fuse) and fuse.fused is fused
    s[c].vectorize(fused)
    assert stage.iter_var_attrs[fused].iter_type == tir.IterVar.Vectorized


def test_unknown_operations_are_rejected() -> None:
    _, _, c = chain()
    other = te.placeholder((3,), name="other")
    s = te.create_schedule(c.op)
    with pytest.raises(ValueError, match="Cannot find the operation other in schedule"):
        s[other]
    with pytest.raises(ValueError, match="Expect schedule key to be Tensor or Operation"):
        s["C"]


def test_normalize_leaves_the_schedule_alone() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    before = list(s[c].leaf_iter_vars)
    normal = s.normalize()
    assert normal[c].op is not c.op and s[c].op is c.op
    assert all(x is y for x, y in zip(s[c].leaf_iter_vars, before, strict=True))
    assert lowered(s, [a, c]) == lowered(s, [a, c])


def test_classic_steps_of_lowering() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], 4)
    normal = s.normalize()
    bounds = te.schedule.InferBound(normal)
    assert bounds[b.op.axis[0]].extent.value == 10
    stmt = te.schedule.ScheduleOps(normal, bounds)
    assert isinstance(stmt, tir.stmt.ProducerRealize)
    func = te.schedule.SchedulePostProcToPrimFunc([a, c], stmt, None)
    assert outline(func) == lowered(s, [a, c])


def test_graph_functions() -> None:
    a, b, c = chain()
    graph = te.schedule.CreateReadGraph([c.op])
    assert graph == {c.op: (b,), b.op: (a,), a.op: ()}
    assert te.schedule.PostDFSOrder([c.op], graph) == [a.op, b.op, c.op]
    assert te.schedule.CreateFeedGraph(graph) == {b: [c.op], a: [b.op]}
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], 4)
    s[b].compute_at(s[c], outer)
    path = te.schedule.CreateAttachPath(s)
    assert path[c.op] == [] and len(path[b.op]) == 1 and path[b.op][0] is outer


def test_single_elements_are_broadcast() -> None:
    a, b = te.placeholder((1,), name="A"), te.placeholder((4, 5), name="B")
    scaled = te.compute((4, 5), lambda i, j: a[0] * b[i, j], name="scaled")
    out = te.compute((4, 5), lambda i, j: scaled[i, j] + 1, name="out")
    s = te.create_schedule(out.op)
    te.schedule.AutoInlineBroadcast(s)
    assert s[scaled].is_inlined


def test_auto_inline() -> None:
    a = te.placeholder((4, 5), name="A")
    moved = te.compute((5, 4), lambda i, j: a[j, i], name="moved")
    scaled = te.compute((5, 4), lambda i, j: moved[i, j] * 2, name="scaled")
    wide = te.compute((3, 5, 4), lambda n, i, j: scaled[i, j], name="wide")
    out = te.compute((3, 5, 4), lambda n, i, j: wide[n, i, j] + 1, name="out")

    def inlined(inline) -> list[str]:
        s = te.create_schedule(out.op)
        inline(s)
        return [stage.op.name for stage in s.stages if stage.is_inlined]

    assert inlined(te.schedule.AutoInlineInjective) == ["moved", "scaled", "wide"]
    assert inlined(te.schedule.AutoInlineElemWise) == ["scaled"]
    assert inlined(te.schedule.AutoInlineBroadcast) == ["scaled", "wide"]


def test_lower_names_the_function() -> None:
    a, _, c = chain()
    func = te.schedule.lower_schedule(te.create_schedule(c.op), [a, c], "f")
    assert func.attrs["global_symbol"] == "f" and func.attrs["from_legacy_te_schedule"]


def test_lower_takes_buffers_and_variables() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + n, name="B")
    buffer = tir.decl_buffer((n,), name="mine", strides=[2])
    func = te.schedule.lower_schedule(te.create_schedule(b.op), [n, buffer, b], binds={a: buffer})
    assert func.params[0] is n and func.buffer_map[func.params[1]] is buffer
    assert func.body.body.value.a.buffer is buffer


def test_missing_arguments_are_named() -> None:
    _, _, c = chain()
    with pytest.raises(
        LoweringError, match="requires every input among its arguments, got none for A"
    ):
        te.schedule.lower_schedule(te.create_schedule(c.op), [c])
    with pytest.raises(LoweringError, match="got a value of int"):
        te.schedule.lower_schedule(te.create_schedule(c.op), [1])


def test_empty_axes() -> None:
    a, _, c = chain(0)
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], 4)
    assert lowered(s, [a, c]) == expect("""
        realize B[0]
          for i in serial(0)
            store B
          for i.outer in serial(0)
            store C
    """)


def test_building_twice_gives_the_same_text() -> None:
    texts = []
    for _ in range(2):
        a, b, c = matmul()
        s = te.create_schedule(c.op)
        s.cache_write(c, "local")
        s[c].tile(*c.op.axis, 4, 4)
        texts.append(lowered(s, [a, b, c]))
    assert texts[0] == texts[1]


def test_pragmas_for_tensor_cores_are_rejected_and_other_programs_stay() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)

    def rewritten() -> object:
        normal = s.normalize()
        stmt = te.schedule.ScheduleOps(normal, te.schedule.InferBound(normal))
        return te.schedule.SchedulePostProcRewriteForTensorCore(stmt, normal, {}) is stmt

    assert rewritten()
    s[c].pragma(c.op.axis[0], "tensor_core")
    with pytest.raises(OpNotImplemented, match="tensor_core requires a GPU"):
        rewritten()


def test_bounds_of_another_schedule_are_rejected() -> None:
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    bounds = te.schedule.InferBound(s.normalize())
    with pytest.raises(
        ScheduleError, match="inferred for the same schedule, got none for the loop"
    ):
        te.schedule.ScheduleOps(s.normalize(), bounds)
