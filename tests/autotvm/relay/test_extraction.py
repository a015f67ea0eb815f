"""Tasks come out of relay programs as `relay.build` would ask for their records."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import autotvm, relay, te, topi
from tvm.relay import testing
from tvm.relay.op.op import register_strategy
from tvm.topi.testing import conv2d_nchw_python

from .records import TARGET, conv_and_dense, tasks_of, weight


def test_convolutions_and_dense_layers_are_tasks_by_their_plain_shapes() -> None:
    tasks = tasks_of(conv_and_dense())
    assert [task.workload for task in tasks] == [
        (
            "conv2d_NCHWc.x86",
            ("TENSOR", (1, 32, 14, 14), "float32"),
            ("TENSOR", (32, 32, 3, 3), "float32"),
            (1, 1),
            (1, 1, 1, 1),
            (1, 1),
            "NCHW",
            "NCHW",
            "float32",
        ),
        (
            "conv2d_NCHWc.x86",
            ("TENSOR", (1, 32, 14, 14), "float32"),
            ("TENSOR", (16, 32, 3, 3), "float32"),
            (2, 2),
            (0, 0, 0, 0),
            (1, 1),
            "NCHW",
            "NCHW",
            "float32",
        ),
        (
            "dense_pack.x86",
            ("TENSOR", (4, 144), "float32"),
            ("TENSOR", (64, 144), "float32"),
            None,
            "float32",
        ),
    ]
    assert [task.flop for task in tasks] == [
        2 * 14 * 14 * 32 * 32 * 9,
        2 * 6 * 6 * 16 * 32 * 9,
        2 * 4 * 144 * 64,
    ]
    assert all(len(task.config_space) > 1 and task.target.mcpu == "x86-64-v3" for task in tasks)


def test_only_tasks_of_wanted_operators_are_extracted() -> None:
    dense = tasks_of(conv_and_dense(), ops=[relay.op.get("nn.dense")])
    assert [task.name for task in dense] == ["dense_pack.x86"]
    assert tasks_of(conv_and_dense(), ops=(relay.op.get("nn.batch_matmul"),)) == []


def test_resnet18_has_the_classic_number_of_convolutions() -> None:
    mod, params = testing.resnet.get_workload(num_layers=18, image_shape=(3, 64, 64))
    ops = [relay.op.get("nn.conv2d"), relay.op.get("nn.dense")]
    tasks = autotvm.task.extract_from_program(mod["main"], params, "llvm", ops=ops)
    names = [task.name for task in tasks]
    assert (names.count("conv2d_NCHWc.x86"), names.count("dense_pack.x86")) == (12, 1)


def test_shared_tasks_of_several_programs_are_extracted_once() -> None:
    x = relay.var("x", shape=(4, 144))
    func = relay.Function([x], relay.nn.dense(x, weight(64, 144)))
    mods = [conv_and_dense(), tvm.IRModule.from_expr(func)]
    tasks = autotvm.task.extract_from_multiple_program(mods, [{}, {}], TARGET)
    assert [task.name for task in tasks].count("dense_pack.x86") == 1


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (
            lambda x: relay.nn.conv2d(x, weight(32, 1, 3, 3), groups=32, padding=1),
            ["depthwise_conv2d_NCHWc.x86"],
        ),
        (
            lambda x: relay.nn.batch_matmul(
                relay.reshape(x, (8, 28, 28)), relay.reshape(x, (8, 28, 28))
            ),
            ["batch_matmul.x86"],
        ),
        (
            lambda x: relay.nn.matmul(relay.reshape(x, (64, 98)), relay.reshape(x, (98, 64))),
            ["matmul_nopack.x86"],
        ),
        (
            lambda x: relay.nn.dense(
                relay.reshape(x, (64, 98)),
                relay.strided_slice(relay.reshape(x, (64, 98)), (0, 0), (51, 98)),
            ),
            ["dense_nopack.x86"],
        ),
        (
            lambda x: relay.nn.conv2d(x, weight(3, 32, 3, 3), padding=1),
            ["conv2d_nchw.x86"],
        ),
        (
            lambda x: relay.nn.conv2d(x, weight(64, 16, 3, 3), groups=2, padding=1),
            ["group_conv2d_NCHWc.x86"],
        ),
        (
            lambda x: relay.nn.dense(
                relay.cast(relay.reshape(x, (64, 98)), "uint8"),
                relay.const(np.ones((32, 98), "int8")),
                out_dtype="int32",
            ),
            ["dense_int8.x86"],
        ),
        (lambda x: relay.nn.softmax(x), []),
    ],
)
def test_other_kernels_with_tiles_are_tasks(build: object, names: list[str]) -> None:
    x = relay.var("x", shape=(1, 32, 14, 14))
    found = tasks_of(relay.Function([x], build(x)))  # type: ignore[operator]
    assert [task.name for task in found] == names
    for task in found:
        config = task.config_space.get(task.config_space.get_rand_index())
        with task.target:
            s, args = task.instantiate(config)
            assert tvm.build(s, args) is not None


@pytest.mark.parametrize(
    ("name", "data", "kernel", "rest"),
    [
        ("conv1d_ncw", (1, 8, 32), (16, 8, 3), ((1,), (1, 1), (1,), "float32")),
        ("conv2d_nhwc", (1, 8, 8, 8), (3, 3, 8, 16), ((1, 1), (1,) * 4, (1, 1), "float32")),
        ("conv3d_ncdhw", (1, 4, 4, 8, 16), (8, 4, 3, 3, 3), ((1,) * 3, (1,) * 6, (1,) * 3, 1, "")),
        (
            "conv2d_transpose_nchw",
            (1, 8, 8, 8),
            (8, 4, 2, 2),
            ((2, 2), (0,) * 4, "float32", (0, 0)),
        ),
    ],
)
def test_convolutions_in_plain_layouts_have_tasks_under_classic_names(
    name: str, data: tuple[int, ...], kernel: tuple[int, ...], rest: tuple[object, ...]
) -> None:
    args = (te.placeholder(data), te.placeholder(kernel), *rest)
    task = autotvm.task.create(f"{name}.x86", args=args, target="llvm")
    assert len(task.config_space) > 1
    points = [
        i for i in range(task.config_space.range_length) if task.config_space.is_index_valid(i)
    ]
    texts = set()
    for point in points:
        with task.target:
            s, tensors = task.instantiate(task.config_space.get(point))
            texts.add(str(tvm.lower(s, tensors)))
    assert len(texts) == len(points)


def test_tiles_of_plain_convolutions_compute_the_same() -> None:
    args = (te.placeholder((1, 3, 10, 10)), te.placeholder((3, 3, 3, 3)))
    rest = ((1, 1), (1,) * 4, (1, 1), "float32")
    task = autotvm.task.create("conv2d_nchw.x86", args=(*args, *rest), target="llvm")
    space = task.config_space
    # 16 where vectors have eight lanes, more for wider ones
    assert len(space) >= 16 and list(space.space_map) == [
        "tile_y",
        "tile_x",
        "tile_oh",
        "unroll_kw",
    ]
    rng = np.random.default_rng(2)
    a, b = [rng.normal(size=topi.utils.dims(t.shape)).astype("float32") for t in args]
    expected = conv2d_nchw_python(a, b, 1, 1)
    points = [i for i in range(space.range_length) if space.is_index_valid(i)]
    for point in rng.permutation(points)[:8]:
        with task.target:
            s, tensors = task.instantiate(space.get(int(point)))
            func = tvm.build(s, tensors)
        out = tvm.nd.empty(expected.shape)
        func(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_programs_for_the_virtual_machine_have_tasks() -> None:
    x, flag = relay.var("x", shape=(4, 144)), relay.var("flag", shape=(), dtype="bool")
    branch = relay.If(flag, relay.nn.dense(x, weight(64, 144)), relay.nn.dense(x, weight(64, 144)))
    tasks = tasks_of(relay.Function([x, flag], branch))
    assert [task.name for task in tasks] == ["dense_pack.x86"]


def test_templates_that_a_strategy_of_the_user_calls_are_tasks() -> None:
    compute = autotvm.register_topi_compute("of_the_user.scale")(
        lambda cfg, x: te.compute(x.shape, lambda *i: x(*i) * 2.0, name="scaled")
    )

    @autotvm.register_topi_schedule("of_the_user.scale")
    def schedule(cfg: autotvm.ConfigSpace, outs: list[te.Tensor]) -> te.Schedule:
        s = te.create_schedule(outs[0].op)
        cfg.define_split("tile_x", s[outs[0]].op.axis[-1], num_outputs=2)
        return s

    relay.op.register("of_the_user.scale")
    op = relay.op.get("of_the_user.scale")
    op.set_num_inputs(1)
    op.add_argument("x", "Tensor", "The data.")
    op.add_type_rel("Identity")
    relay.op.op.register_pattern("of_the_user.scale", relay.op.OpPattern.OPAQUE)

    @register_strategy("of_the_user.scale")
    def strategy(attrs: object, inputs: object, out_type: object, target: object) -> object:
        found = relay.op.OpStrategy()
        found.add_implementation(
            lambda attrs, inputs, out_type: [compute(*inputs)],
            lambda attrs, outs, target: schedule(outs),
            name="of_the_user.scale",
        )
        return found

    x = relay.var("x", shape=(8, 32))
    func = relay.Function([x], relay.Call(op, [x]))
    assert [task.name for task in tasks_of(func)] == ["of_the_user.scale"]
    assert tasks_of(func, ops=[relay.op.get("nn.dense")]) == []
    assert len(tasks_of(func, ops=[op])[0].config_space) == 6


def test_records_around_do_not_change_what_is_extracted() -> None:
    tasks = tasks_of(conv_and_dense())
    with autotvm.task.ApplyConfig(tasks[0].config_space.get(0)):
        again = tasks_of(conv_and_dense())
    assert [task.workload for task in again] == [task.workload for task in tasks]


def test_a_task_made_by_hand_measures_the_same_numbers() -> None:
    data, kernel = te.placeholder((4, 48), name="data"), te.placeholder((64, 48), name="kernel")
    args = (data, kernel, None, "float32")
    task = autotvm.task.create("dense_nopack.x86", args=args, target="llvm")
    assert task.workload[0] == "dense_nopack.x86"
    with tvm.target.Target("llvm"):
        s, tensors = task.instantiate(task.config_space.get(0))
        func = tvm.build(s, tensors)
    rng = np.random.default_rng(1)
    a, b = [rng.normal(size=topi.utils.dims(t.shape)).astype("float32") for t in (data, kernel)]
    out = tvm.nd.empty((4, 64))
    func(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b.T, rtol=1e-4, atol=1e-4)
