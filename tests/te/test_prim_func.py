import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.ir import PrimExpr
from tvm.tir.interp import interpret

from .programs import matmul
from .random_programs import IN_BLOCKS
from .random_schedules import random_program


def _blocks(func: tir.PrimFunc) -> dict[str, tir.Block]:
    found = {}

    def collect(node: object) -> None:
        if isinstance(node, tir.Block):
            found[node.name_hint] = node

    tir.stmt_functor.post_order_visit(func.body, collect)
    return found


def test_a_reduction_has_an_init_and_declares_its_accesses() -> None:
    a, b, c = matmul()
    func = te.create_prim_func([a, b, c])
    block = _blocks(func)["C"]
    assert [iv.iter_type.name for iv in block.iter_vars] == ["DataPar", "DataPar", "CommReduce"]
    assert [iv.var.name for iv in block.iter_vars] == ["v_i", "v_j", "v_k"]
    assert block.init is not None
    assert [region.buffer.name for region in block.reads] == ["A", "B"]
    assert [region.buffer.name for region in block.writes] == ["C"]
    assert func.attrs["global_symbol"] == "main"


def test_intermediate_tensors_are_allocated_in_the_root_block() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    c = te.compute((4,), lambda i: b[i] * 2, name="C")
    func = te.create_prim_func([a, c])
    assert [buffer.name for buffer in _blocks(func)["root"].alloc_buffers] == ["B"]


def test_scalars_get_a_unit_axis() -> None:
    a = te.placeholder((), name="A")
    b = te.compute((), lambda: a() + 1, name="B")
    assert len(_blocks(te.create_prim_func([a, b]))["B"].iter_vars) == 1


def test_extern_is_an_opaque_block() -> None:
    a = te.placeholder((4,), name="A")
    b = te.extern((4,), [a], lambda i, o: tir.call_packed("f", i[0], o[0]), name="B")
    block = _blocks(te.create_prim_func([a, b]))["B"]
    assert not block.iter_vars and isinstance(block.body, tir.Evaluate)
    assert not block.reads and not block.writes


def test_buffers_that_an_extern_declares_are_those_of_the_function() -> None:
    rows = tir.decl_buffer((4, 4), "float32", "rows", strides=[tir.Var("s", "int32"), 1])
    a = te.placeholder((4, 4), name="A")
    b = te.compute((4, 4), lambda i, j: a[i, j] + 1, name="B")
    c = te.extern(
        (4, 4), [b], lambda i, o: tir.call_packed("f", i[0], o[0]), name="C", in_buffers=[rows]
    )
    func = te.create_prim_func([a, c])
    assert [buffer.name for buffer in _blocks(func)["root"].alloc_buffers] == ["rows"]
    stored = _blocks(func)["B"].body
    assert isinstance(stored, tir.BufferStore) and stored.buffer is rows
    assert isinstance(func.buffer_map[func.params[1]].elem_offset, tir.Var)


def test_indices_that_intervals_say_nothing_of_read_the_whole_axis() -> None:
    a, n = te.placeholder((8, 8), name="A"), te.var("n", "int64")

    def nearest(i: tir.Var, j: tir.Var) -> PrimExpr:
        return 1 * a[i, tir.min(tir.round(j.astype("float32") / n).astype("int32"), 7)]

    region = _blocks(te.create_prim_func([a, n, te.compute((8, 8), nearest, name="B")]))["B"].reads
    assert str(region[0]) == "A[v_i, 0:8]"


def test_missing_inputs_are_named() -> None:
    a, _, c = matmul()
    with pytest.raises(
        LoweringError, match="requires every input among its parameters, got none for B"
    ):
        te.create_prim_func([a, c])


@pytest.mark.parametrize("operator", IN_BLOCKS)
@pytest.mark.parametrize("seed", range(4))
def test_blocks_compute_what_the_schedule_does(operator: str, seed: int) -> None:
    program = random_program(seed, operator)
    expected, actual = program.arrays(), program.arrays()
    interpret(te.schedule.lower_schedule(program.plain, program.args), *expected)
    interpret(te.create_prim_func(program.args), *actual)
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_extern_primfunc_embeds_a_function() -> None:
    a, b, c = matmul(4, 3, 5)
    inner = te.schedule.lower_schedule(te.create_schedule(c.op), [a, b, c])
    x, y = te.placeholder((4, 5), name="X"), te.placeholder((5, 3), name="Y")
    z = te.extern_primfunc([x, y], inner)
    out = te.compute((4, 3), lambda i, j: z[i, j] + 1, name="out")
    func = te.schedule.lower_schedule(te.create_schedule(out.op), [x, y, out])
    p, q = [np.random.default_rng(0).random(s, "float32") for s in [(4, 5), (5, 3)]]
    result = np.zeros((4, 3), "float32")
    interpret(func, p, q, result)
    np.testing.assert_allclose(result, p @ q + 1, rtol=1e-5)


def test_what_a_reduction_begins_with_is_read_by_its_init() -> None:
    a, bias = te.placeholder((3, 4), name="A"), te.placeholder((3,), name="bias")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((3,), lambda i: te.sum(a[i, k], axis=k, init=bias[i]), name="C")
    func = te.create_prim_func([a, bias, c])
    assert [region.buffer.name for region in _blocks(func)["C"].reads] == ["bias", "A"]
    out = np.zeros(3, "float32")
    interpret(func, np.ones((3, 4), "float32"), np.arange(3, dtype="float32"), out)
    np.testing.assert_array_equal(out, np.arange(3) + 4)


def test_rows_of_a_reduction_may_be_of_different_lengths() -> None:
    a, count = te.placeholder((6,), name="A"), te.placeholder((3,), "int32", "count")

    def row(i: tir.Var) -> PrimExpr:
        k = te.reduce_axis((0, count[i]), name="k")
        return te.sum(a[k], axis=k)

    out = np.zeros(3, "float32")
    func = te.create_prim_func([a, count, te.compute((3,), row, name="C")])
    interpret(func, np.arange(6, dtype="float32"), np.array([3, 1, 6], "int32"), out)
    np.testing.assert_array_equal(out, [3, 0, 15])


def test_several_outputs_share_their_loops() -> None:
    a = te.placeholder((4, 5), name="A")
    outs = te.compute((4, 5), lambda i, j: (a[i, j] + 2, a[i, j] * 3), name="B")
    func = te.create_prim_func([a, *outs])
    body = func.body.block.body.body.body
    assert isinstance(body, tir.SeqStmt) and len(body) == 2


def test_scans_are_rejected() -> None:
    x = te.placeholder((5, 4), name="X")
    state = te.placeholder((5, 4), name="S")
    first = te.compute((1, 4), lambda _, i: x[0, i], name="first")
    update = te.compute((5, 4), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    with pytest.raises(TypeError, match="Unsupported Operation: ScanOp"):
        te.create_prim_func([x, te.scan(first, update, state, inputs=[x])])


@pytest.mark.parametrize("index", [None, "int64"])
def test_tensors_of_free_layout_are_named(index: str | None) -> None:
    a, w = te.placeholder((4, 4), name="A"), te.placeholder((4, 4), name="W")
    b = te.compute(
        (4, 4), lambda i, j: a[i, j] * w[i, j], name="B", attrs={"layout_free_placeholders": [w]}
    )
    c = te.compute(
        (4, 4), lambda i, j: b[i, j] + 1, name="C", attrs={"layout_free_placeholders": [b]}
    )
    func = te.create_prim_func([a, w, c], index)
    assert list(func.attrs["layout_free_buffers"]) == [1]
    blocks = _blocks(func)
    assert not blocks["B"].annotations
    (inner,) = blocks["C"].annotations["layout_free_placeholders"]
    assert inner is blocks["root"].alloc_buffers[0]


def test_extents_may_be_used_before_the_tensor_that_tells_them() -> None:
    n = te.var("n", "int64")
    a = te.placeholder((n * 4,), name="A")
    b = te.compute((n, 4), lambda i, j: a[i * 4 + j] + 1.0, name="B")
    func = te.create_prim_func([a, b], "int64")
    data, out = np.arange(12, dtype="float32"), tvm.nd.empty((3, 4))
    tvm.build(func, target="llvm")(tvm.nd.array(data), out)
    np.testing.assert_array_equal(out.numpy(), data.reshape(3, 4) + 1)
