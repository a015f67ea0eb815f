"""Models whose dimensions, or values that decide about shapes, only the run knows."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tvm
from tvm import relay

RNG = np.random.default_rng(0)
F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def i64(*values: int) -> np.ndarray:
    return np.array(values, "int64")


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> onnx.NodeProto:
    """A node; names are separated by spaces, ``-`` is an input left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attrs)


def check(
    nodes: list[onnx.NodeProto], inputs: dict[str, Any], *feeds: dict[str, np.ndarray],
    opset: int = 18, **constants: np.ndarray,
) -> Any:  # fmt: skip
    """Compile once, and compare with ONNX Runtime for each feed; the type of the result."""
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(v, name) for name, v in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    mod, params = relay.frontend.from_onnx(model)
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
    for feed in feeds:
        (wanted,) = session.run(None, feed)
        found = machine.run(*[feed[p.name_hint] for p in mod["main"].params]).numpy()
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    return relay.transform.InferType()(mod)["main"].ret_type


def test_heads_of_attention_keep_their_size() -> None:
    nodes = [
        node("Shape", "x", "whole"), node("Slice", "whole zero two", "lead"),
        node("Concat", "lead sizes", "wanted", axis=0), node("Reshape", "x wanted", "split"),
        node("Transpose", "split", "heads", perm=[0, 2, 1, 3]),
        node("Transpose", "split", "keys", perm=[0, 2, 3, 1]),
        node("MatMul", "heads keys", "scores"), node("Softmax", "scores", "weights"),
        node("MatMul", "weights heads", "y"),
    ]  # fmt: skip
    feeds = [{"x": f32(2, 3, 8)}, {"x": f32(1, 5, 8)}]
    ty = check(nodes, {"x": (F32, ["b", "s", 8])}, *feeds, zero=i64(0), two=i64(2),
               sizes=i64(4, 2))  # fmt: skip
    assert int(ty.shape[3]) == 2


def test_products_broadcast_open_batches() -> None:
    kinds = {"x": (F32, ["b", 3, 4]), "w": (F32, [1, 4, 5])}
    check([node("MatMul", "x w", "y")], kinds, {"x": f32(6, 3, 4), "w": f32(1, 4, 5)})
    kinds = {"x": (F32, ["b", "h", 3, 4]), "w": (F32, ["h", 4, 5])}
    check([node("MatMul", "x w", "y")], kinds, {"x": f32(2, 6, 3, 4), "w": f32(6, 4, 5)})


def test_slices_take_bounds_of_the_run() -> None:
    kinds = {"x": (F32, ["n", 4]), "end": (I64, [1])}
    nodes = [node("Slice", "x zero end axes", "y")]
    feeds = [{"x": f32(5, 4), "end": i64(n)} for n in (3, -1, 99, -9)]
    ty = check(nodes, kinds, *feeds, zero=i64(1), axes=i64(0))
    assert int(ty.shape[1]) == 4


def test_slices_of_open_dimensions() -> None:
    kinds, feeds = {"x": (F32, ["n", "m"])}, [{"x": f32(5, 4)}, {"x": f32(3, 7)}]
    largest = i64(2**63 - 1)
    check([node("Slice", "x start end axes", "y")], kinds, *feeds, start=i64(1), end=largest,
          axes=i64(1))  # fmt: skip
    check([node("Slice", "x start end axes", "y")], kinds, *feeds, start=i64(0), end=i64(-1),
          axes=i64(-2))  # fmt: skip
    check([node("Slice", "x start end axes", "y")], kinds, *feeds, start=i64(-2), end=largest,
          axes=i64(1))  # fmt: skip
    check([node("Slice", "x start end axes step", "y")], kinds, *feeds, start=i64(-1),
          end=i64(-(2**63)), axes=i64(0), step=i64(-1))  # fmt: skip


def test_tensors_are_made_for_shapes_of_the_run() -> None:
    kinds, feeds = {"x": (F32, ["n", 3])}, [{"x": f32(2, 3)}, {"x": f32(4, 3)}]
    shape = node("Shape", "x", "s")
    check([shape, node("ConstantOfShape", "s", "z"), node("Add", "x z", "y")], kinds, *feeds)
    check([shape, node("Expand", "one s", "y")], kinds, *feeds, one=f32(1, 1))
    count = node("Gather", "s zero", "n")
    check([shape, count, node("Range", "zero n one", "y")], kinds, *feeds, zero=np.array(0),
          one=np.array(1))  # fmt: skip
    check([node("Size", "x", "y")], kinds, *feeds)
    check([shape, node("Tile", "x s", "y")], kinds, *feeds)


def test_constant_dimensions_of_a_shape_of_the_run_are_known() -> None:
    nodes = [node("Shape", "x", "n", start=0, end=1), node("Concat", "n rest", "s", axis=0),
             node("ConstantOfShape", "s", "y")]  # fmt: skip
    found = check(nodes, {"x": (F32, ["n", 2])}, {"x": f32(3, 2)}, {"x": f32(1, 2)}, rest=i64(4, 5))
    assert [str(dim) for dim in found.shape[1:]] == ["4", "5"]


def test_expanding_keeps_dimensions_that_the_shape_has_as_ones() -> None:
    kinds = {"x": (F32, ["n", 3]), "s": (I64, [3])}
    feeds = [{"x": f32(2, 3), "s": i64(4, 1, 1)}, {"x": f32(1, 3), "s": i64(1, 5, 3)}]
    check([node("Expand", "x s", "y")], kinds, *feeds)


def test_results_have_as_many_elements_as_the_run_finds() -> None:
    kinds = {"x": (F32, ["n", 3])}
    feeds = [{"x": np.maximum(f32(4, 3), 0)}, {"x": np.zeros((2, 3), "float32")}]
    check([node("NonZero", "x", "y")], kinds, *feeds)
    kinds = {"x": (F32, [4]), "c": (TensorProto.BOOL, [4])}
    feeds = [{"x": f32(4), "c": np.array([True, False, True, n])} for n in (False, True)]
    check([node("Compress", "x c", "y", axis=0)], kinds, *feeds)
    kinds = {"x": (F32, [3, 6]), "k": (I64, [1])}
    check([node("TopK", "x k", "y i")], kinds, *[{"x": f32(3, 6), "k": i64(n)} for n in (2, 5)])


@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3)])
def test_recurrent_layers_take_open_batches(op: str, gates: int) -> None:
    weights = {"w": f32(1, gates * 5, 3), "r": f32(1, gates * 5, 5)}
    check([node(op, "x w r", "y", hidden_size=5)], {"x": (F32, [4, "b", 3])},
          {"x": f32(4, 2, 3)}, {"x": f32(4, 1, 3)}, **weights)  # fmt: skip


@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_take_open_lengths(op: str, gates: int) -> None:
    layer = node(op, "x w r - lengths", "all last", hidden_size=4, direction="bidirectional")
    nodes = [layer, node("Reshape", "all line", "a"), node("Reshape", "last line", "b"),
             node("Concat", "a b", "y", axis=0)]  # fmt: skip
    feeds = [
        {"x": f32(n, b, 3), "lengths": np.array([n, 1], "int32")[:b]} for n, b in ((5, 2), (1, 1))
    ]
    kinds = {"x": (F32, ["n", "b", 3]), "lengths": (TensorProto.INT32, ["b"])}
    check(nodes, kinds, *feeds, w=f32(2, 4 * gates, 3), r=f32(2, 4 * gates, 4), line=i64(-1))


@pytest.mark.parametrize(
    "equation, x, y",
    [("bhid,bhjd->bhij", ["n", 2, "i", 4], ["n", 2, "j", 4]), ("i,j->ij", ["n"], ["m"]),
     ("bi,ji->bj", ["n", 4], [3, 4]), ("bhij,bhjd->bihd", ["n", "h", "i", "j"], ["n", "h", "j", 4])],
)  # fmt: skip
def test_sums_of_products_take_open_extents(equation: str, x: list[Any], y: list[Any]) -> None:
    feeds = []
    for extents in (
        {"n": 1, "m": 2, "i": 3, "j": 2, "h": 2},
        {"n": 2, "m": 5, "i": 1, "j": 4, "h": 1},
    ):
        shapes = [[extents.get(dim, dim) for dim in shape] for shape in (x, y)]
        feeds.append({"x": f32(*shapes[0]), "z": f32(*shapes[1])})
    check([node("Einsum", "x z", "y", equation=equation)], {"x": (F32, x), "z": (F32, y)}, *feeds)


@pytest.mark.parametrize(
    "op, attrs, shape",
    [("DepthToSpace", {"blocksize": 2}, ["n", 8, "h", "w"]),
     ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, ["n", 8, "h", "w"]),
     ("SpaceToDepth", {"blocksize": 2}, ["n", 3, "h", "w"]),
     ("AveragePool", {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 1], "ceil_mode": 1},
      ["n", 2, "h", "w"]),
     ("MaxPool", {"kernel_shape": [2, 2], "strides": [3, 2], "ceil_mode": 1}, ["n", 2, "h", "w"]),
     ("LpPool", {"kernel_shape": [2, 3], "strides": [2, 1]}, ["n", 2, "h", "w"]),
     ("MaxPool", {"kernel_shape": [3, 2], "auto_pad": "SAME_UPPER"}, ["n", 2, "h", "w"]),
     ("Det", {}, ["n", "h", 3, 3]), ("EyeLike", {"k": 1}, ["n", "h"])],
)  # fmt: skip
def test_open_extents_of_images_and_matrices(
    op: str, attrs: dict[str, Any], shape: list[Any]
) -> None:
    sizes = ({"n": 1, "h": 4, "w": 6}, {"n": 2, "h": 8, "w": 10})
    feeds = [{"x": f32(*[extents.get(dim, dim) for dim in shape])} for extents in sizes]
    check([node(op, "x", "y", **attrs)], {"x": (F32, shape)}, *feeds)


def test_groups_are_normalised_over_open_extents() -> None:
    normal = node("GroupNormalization", "x scale shift", "y", num_groups=2)
    feeds = [{"x": f32(n, 4, n + 2, 3)} for n in (1, 3)]
    check([normal], {"x": (F32, ["n", 4, "h", 3])}, *feeds, scale=f32(2), shift=f32(2))


def test_products_of_integers_take_open_extents() -> None:
    feeds = [{"x": RNG.integers(0, 255, (n, n + 1, 4)).astype("uint8")} for n in (1, 3)]
    check([node("MatMulInteger", "x w", "y")], {"x": (TensorProto.UINT8, ["n", "m", 4])}, *feeds,
          w=RNG.integers(-9, 9, (4, 5)).astype("int8"))  # fmt: skip


def test_parts_have_sizes_of_the_run() -> None:
    nodes = [node("Split", "x sizes", "a b", axis=-1), node("Concat", "b a", "y", axis=1)]
    feeds = [{"x": f32(2, sum(sizes)), "sizes": i64(*sizes)} for sizes in ((1, 4), (3, 3))]
    check(nodes, {"x": (F32, [2, "n"]), "sizes": (I64, [2])}, *feeds)


@pytest.mark.parametrize("axis", [0, -1])
def test_classes_have_a_number_of_the_run(axis: int) -> None:
    feeds = [{"i": i64(0, -1, 2), "depth": np.array(depth)} for depth in (3, 5)]
    check([node("OneHot", "i depth values", "y", axis=axis)], {"i": (I64, [3]), "depth": (I64, [])},
          *feeds, values=np.array([0, 7], "float32"))  # fmt: skip


def test_images_of_open_sizes_are_resized() -> None:
    kinds, feeds = (
        {"x": (F32, ["n", 2, "h", "w"])},
        [{"x": f32(1, 2, 3, 5)}, {"x": f32(2, 2, 4, 4)}],
    )
    scales = np.array([1, 1, 2, 3], "float32")
    check([node("Resize", "x - scales", "y", mode="linear")], kinds, *feeds, scales=scales)
    shape = [node("Shape", "x", "s"), node("Add", "s more", "t")]
    check([*shape, node("Resize", "x - - t", "y", mode="linear")], kinds, *feeds,
          more=i64(0, 0, 2, 3))  # fmt: skip
    pool = node("MaxPool", "x", "y", kernel_shape=[2, 2], strides=[2, 2])
    check([pool], kinds, *feeds)


def test_places_count_from_the_end_of_open_dimensions() -> None:
    kinds = {"x": (F32, ["n", 3]), "i": (I64, [2])}
    feeds = [{"x": f32(5, 3), "i": i64(-1, 2)}, {"x": f32(4, 3), "i": i64(-4, -2)}]
    check([node("Gather", "x i", "y")], kinds, *feeds)
    check([node("Gather", "x last", "y")], {"x": kinds["x"]}, {"x": feeds[0]["x"]}, last=i64(-1))
    kinds = {"x": (F32, ["n"]), "i": (I64, [2, 1]), "u": (F32, [2])}
    check([node("ScatterND", "x i u", "y")], kinds,
          {"x": f32(5), "i": i64(-1, 2).reshape(2, 1), "u": f32(2)})  # fmt: skip


def test_borders_have_widths_of_the_run() -> None:
    kinds = {"x": (F32, ["n", 3]), "p": (I64, [4])}
    feeds = [{"x": f32(2, 3), "p": i64(*p)} for p in ((1, 0, 0, 2), (0, 1, 1, 0))]
    check([node("Pad", "x p", "y")], kinds, *feeds)
    check([node("Pad", "x p", "y", mode="edge")], kinds, *feeds)


def test_depthwise_convolutions_take_open_images() -> None:
    kinds, weight = {"x": (F32, ["n", 8, "h", "w"])}, f32(8, 1, 3, 3)
    feeds = [{"x": f32(2, 8, 7, 9)}, {"x": f32(1, 8, 5, 5)}]
    check([node("Conv", "x k", "y", group=8, pads=[1, 1, 1, 1])], kinds, *feeds, k=weight)


def test_flattened_and_triangular() -> None:
    kinds, feed = {"x": (F32, ["a", "b", "c"])}, {"x": f32(2, 3, 4)}
    for axis in (1, 2):
        check([node("Flatten", "x", "y", axis=axis)], kinds, feed)
    check([node("Trilu", "x", "y", upper=0)], kinds, feed)


def body(
    nodes: list[onnx.NodeProto], inputs: str, outputs: str, kind: Any = None, **constants: Any
) -> Any:
    """The graph of a loop, a branch or a scan; a loop's inputs, unless they are all of a kind."""
    return helper.make_graph(
        nodes, "body",
        [helper.make_tensor_value_info(name, kind, shape)
         for name, (kind, shape) in zip(
             inputs.split(), repeat(kind) if kind else KINDS, strict=False)],
        [onnx.ValueInfoProto(name=name) for name in outputs.split()],
        [numpy_helper.from_array(v, name) for name, v in constants.items()],
    )  # fmt: skip


KINDS = [(I64, []), (TensorProto.BOOL, []), (F32, None)]


def test_loops_run_as_often_as_the_run_says() -> None:
    inner = body([node("Add", "a x", "next"), node("Identity", "go", "again"),
                  node("Identity", "next", "seen")], "i go a", "again next seen")  # fmt: skip
    kinds = {"n": (I64, []), "x": (F32, [2])}
    feeds = [{"n": np.array(n), "x": f32(2)} for n in (3, 0, 5)]
    check([node("Loop", "n - x", "last y", body=inner)], kinds, feeds[0], feeds[2])
    check([node("Loop", "n - x", "y all", body=inner)], kinds, *feeds)


def test_loops_stop_when_their_values_say_so() -> None:
    inner = body([node("Mul", "a two", "next"), node("ReduceMax", "next", "most", keepdims=0),
                  node("Less", "most limit", "again")], "i go a", "again next",
                 two=np.float32(2), limit=np.float32(50))  # fmt: skip
    feeds = [{"x": np.array(v, "float32")} for v in ([1, 3], [40, 2])]
    check([node("Loop", "- true x", "y", body=inner)], {"x": (F32, [2])}, *feeds,
          true=np.array(True))  # fmt: skip


def test_values_of_loops_may_grow() -> None:
    inner = body([node("Concat", "a x", "next", axis=0), node("Identity", "go", "again")],
                 "i go a", "again next")  # fmt: skip
    kinds = {"n": (I64, []), "x": (F32, [2])}
    check([node("Loop", "n - x", "y", body=inner)], kinds,
          *[{"n": np.array(n), "x": f32(2)} for n in (3, 0)])  # fmt: skip


def test_rows_that_loops_collect_may_have_open_extents() -> None:
    inner = body([node("Exp", "w", "e"), node("Add", "a e", "next"), node("Identity", "go", "again"),
                  node("Tanh", "next", "seen")], "i go a", "again next seen")  # fmt: skip
    feeds = [{"n": np.array(n), "x": f32(k), "w": f32(k)} for n, k in ((3, 2), (1, 4))]
    kinds = {"n": (I64, []), "x": (F32, ["k"]), "w": (F32, ["k"])}
    check([node("Loop", "n - x", "last y", body=inner)], kinds, *feeds)


def test_what_no_trip_changes_is_computed_before_the_loop() -> None:
    branches = [body([node(op, "w", "r")], "", "r") for op in ("Exp", "Sqrt")]
    inner = body(
        [node("Add", "a e", "next"), node("Identity", "go", "again")], "i go a", "again next"
    )
    graph = helper.make_graph(
        [node("If", "c", "r", then_branch=branches[0], else_branch=branches[1]),
         node("Tanh", "r", "e"), node("Loop", "n - x", "y", body=inner)], "test",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (
            ("n", I64, []), ("c", TensorProto.BOOL, []), ("x", F32, [2]), ("w", F32, [2]))],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    mod, _ = relay.frontend.from_onnx(model)
    trips: list[relay.Function] = []
    relay.analysis.post_order_visit(
        mod["main"].body, lambda e: trips.append(e) if isinstance(e, relay.Function) else None
    )
    (trip,) = trips
    freqs = relay.analysis.list_op_freqs(tvm.IRModule({"trip": trip}))
    assert set(freqs) == {"add", "less", "logical_and"}


@pytest.mark.parametrize("directions, out_axis", [([0, 0], 0), ([1, 1], 1), ([0, 1], -1)])
def test_scans_take_open_lengths(directions: list[int], out_axis: int) -> None:
    scanned = body([node("Add", "a v", "d"), node("Tanh", "d", "o")], "a v", "d o", (F32, [2]))
    scan = node(
        "Scan", "a x", "last rows", body=scanned, num_scan_inputs=1,
        scan_input_directions=directions[:1], scan_output_directions=directions[1:],
        scan_output_axes=[out_axis],
    )  # fmt: skip
    nodes = [scan, node("Reshape", "rows all", "flat"), node("Concat", "last flat", "y", axis=0)]
    feeds = [{"a": f32(2), "x": f32(length, 2)} for length in (1, 5)]
    check(nodes, {"a": (F32, [2]), "x": (F32, ["n", 2])}, *feeds, all=i64(-1))


def test_branches_within_loops_are_chosen_in_each_trip() -> None:
    then, other = [body([node(op, "a x", "r")], "", "r") for op in ("Add", "Sub")]
    inner = body([node("Mod", "i two", "odd"), node("Cast", "odd", "is_odd", to=TensorProto.BOOL),
                  node("If", "is_odd", "next", then_branch=then, else_branch=other),
                  node("Identity", "go", "again")], "i go a", "again next",
                 two=np.array(2))  # fmt: skip
    kinds = {"n": (I64, []), "x": (F32, [2])}
    check([node("Loop", "n - x", "y", body=inner)], kinds,
          *[{"n": np.array(n), "x": f32(2)} for n in (3, 4)])  # fmt: skip


def test_a_dimension_that_the_user_opens_is_open_whatever_the_model_declares() -> None:
    nodes = [node("Flatten", "x", "flat"), node("Gemm", "flat w", "y")]
    values = [helper.make_tensor_value_info(name, F32, shape)
              for name, shape in (("x", (1, 3, 2)), ("y", (1, 4)), ("flat", (1, 6)))]  # fmt: skip
    weight = f32(6, 4)
    graph = helper.make_graph(
        nodes, "test", values[:1], values[1:2], [numpy_helper.from_array(weight, "w")], value_info=values[2:]
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    mod, params = relay.frontend.from_onnx(model, {"x": (relay.Any(), 3, 2)})
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
    for batch in (1, 5):
        data = f32(batch, 3, 2)
        found = machine.run(data).numpy()
        np.testing.assert_allclose(found, data.reshape(batch, 6) @ weight, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("image", [(1, 1, 2, 3), (2, 1, 3, 2), (1, 1, 2, 3, 4)])
def test_grids_of_maps_have_the_size_of_the_run(image: tuple[int, ...], align_corners: int) -> None:
    rank = len(image) - 2
    kinds = {"t": (F32, [None, rank, rank + 1]), "s": (I64, [rank + 2])}
    feed = {"t": f32(image[0], rank, rank + 1), "s": i64(*image)}
    check([node("AffineGrid", "t s", "y", align_corners=align_corners)], kinds, feed, opset=20)


def test_borders_follow_open_images() -> None:
    kinds = {"x": (F32, ["n", 3, "h", "w"])}
    feeds = [{"x": f32(1, 3, 9, 12)}, {"x": f32(2, 3, 4, 7)}]
    upper, lower = [
        {"auto_pad": f"SAME_{side}", "strides": [2, 3], "kernel_shape": [3, 4]}
        for side in ("UPPER", "LOWER")
    ]
    check([node("Conv", "x k", "y", **upper)], kinds, *feeds, k=f32(5, 3, 3, 4))
    check([node("MaxPool", "x", "y", **lower)], kinds, *feeds)
    check([node("AveragePool", "x", "y", **upper)], kinds, *feeds)
    check([node("ConvTranspose", "x k", "y", **lower)], kinds, *feeds, k=f32(3, 2, 3, 4))


@pytest.mark.parametrize("attrs", [{}, {"pads": [1, 0, 0, 1], "ceil_mode": 1}])
def test_places_of_the_largest_of_open_images(attrs: dict[str, Any]) -> None:
    kinds = {"x": (F32, ["n", 3, "h", "w"])}
    pool = node("MaxPool", "x", "m y", kernel_shape=[2, 3], strides=[2, 2], **attrs)
    check([pool], kinds, {"x": f32(1, 3, 9, 12)}, {"x": f32(2, 3, 5, 8)})


def test_spectra_of_signals_of_open_length() -> None:
    kinds = {"x": (F32, ["n", "t", 1])}
    feeds = [{"x": f32(1, 64, 1)}, {"x": f32(2, 32, 1)}]
    check([node("DFT", "x", "y", axis=1, onesided=1)], kinds, *feeds)
    check([node("DFT", "x length", "y", axis=1)], kinds, *feeds, length=np.array(32))
    frames = [node("STFT", "x step window", "y")]
    check(frames, kinds, *feeds, step=np.array(8), window=f32(16))


def test_near_channels_of_open_images() -> None:
    kinds = {"x": (F32, ["n", 4, "h", "w"])}
    feeds = [{"x": f32(1, 4, 3, 5)}, {"x": f32(2, 4, 6, 2)}]
    check([node("LRN", "x", "y", size=3)], kinds, *feeds)
    check([node("Hardmax", "x", "y", axis=2)], kinds, *feeds)


def test_the_last_part_of_an_open_extent_may_be_smaller() -> None:
    kinds, feeds = {"x": (F32, ["n", 2])}, [{"x": f32(7, 2)}, {"x": f32(8, 2)}, {"x": f32(9, 2)}]
    for outputs in ("y a b", "a y b", "a b y"):
        check([node("Split", "x", outputs, num_outputs=3)], kinds, *feeds)


def test_pools_of_an_open_height_and_a_known_width() -> None:
    pool = node("MaxPool", "x", "y", kernel_shape=[2, 3], strides=[1, 1])
    feeds = [{"x": f32(1, 2, height, 40)} for height in (3, 9)]
    check([pool], {"x": (F32, [1, 2, "h", 40])}, *feeds)


def test_sequences_of_rows_whose_length_is_open() -> None:
    nodes = [node("SplitToSequence", "x", "rows", axis=0), node("SequenceAt", "rows one", "y")]
    feeds = [{"x": f32(3, length)} for length in (1, 4)]
    check(nodes, {"x": (F32, [3, "n"])}, *feeds, one=np.array(1))


def test_extents_that_types_tell_are_known_behind_computed_shapes() -> None:
    nodes = [
        node("Shape", "x", "shape"), node("Gather", "shape at", "channels"),
        node("Shape", "n", "count"), node("Concat", "count channels", "spec", axis=0),
        node("Equal", "spec minus", "is_free"), node("Where", "is_free one spec", "wanted"),
        node("Expand", "row wanted", "wide"), node("ReduceSum", "x all", "sums", keepdims=0),
        node("Add", "wide sums", "y"),
    ]  # fmt: skip
    feeds = [{"x": f32(rows, 5), "n": f32(count)} for rows, count in ((2, 3), (4, 1))]
    ty = check(nodes, {"x": (F32, ["r", 5]), "n": (F32, ["c"])}, *feeds, at=i64(1), minus=i64(-1, -1),
               one=i64(1, 1), row=f32(1, 1), all=i64(0))  # fmt: skip
    assert ty.shape[1] == 5 and not isinstance(ty.shape[0], tvm.tir.IntImm)


def test_a_backward_slice_leaves_open_dimensions_whole() -> None:
    bounds = {"start": i64(-1), "end": i64(-9), "axis": i64(1), "step": i64(-1)}
    feeds = [{"x": f32(length, 3)} for length in (1, 4)]
    check([node("Slice", "x start end axis step", "y")], {"x": (F32, ["n", 3])}, *feeds, **bounds)


@pytest.mark.parametrize("of_run", [False, True])
@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(-2, -9, -1), (-3, 0, -2), (9, 1, -3), (-7, -(2**63), -1), (2, -2, -1), (-4, 3, 2)],
)
def test_slices_of_open_dimensions_go_backwards(
    start: int, end: int, step: int, of_run: bool
) -> None:
    kinds, bounds = {"x": (F32, ["n", 3])}, {"start": i64(start), "end": i64(end)}
    feeds = [{"x": f32(length, 3)} for length in (1, 4, 6)]
    if of_run:
        kinds |= dict.fromkeys(bounds, (TensorProto.INT64, [1]))
        feeds = [{**feed, **bounds} for feed in feeds]
    constants = {"axis": i64(0), "step": i64(step), **({} if of_run else bounds)}
    check([node("Slice", "x start end axis step", "y")], kinds, *feeds, **constants)


def test_spectra_of_what_the_run_knows_to_be_real_or_complex() -> None:
    feeds = [{"x": f32(3, 4, 1)}, {"x": f32(2, 5, 2)}]
    check([node("DFT", "x", "y", axis=1)], {"x": (F32, ["n", "length", "parts"])}, *feeds)


def test_a_backward_slice_starts_at_the_first_element_at_least() -> None:
    bounds = {"start": i64(-7), "end": i64(-9), "axis": i64(1), "step": i64(-1)}
    check([node("Slice", "x start end axis step", "y")], {"x": (F32, ["n", 3])}, {"x": f32(2, 3)},
          **bounds)  # fmt: skip


@pytest.mark.parametrize(
    "how",
    [{"mode": "nearest"}, {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
     "nearest_mode": "floor"}, {"mode": "linear"},
     {"mode": "linear", "coordinate_transformation_mode": "align_corners"}],
)  # fmt: skip
def test_images_grow_by_factors_of_the_run(how: dict[str, Any]) -> None:
    kinds = {"x": (F32, ["n", 2, "h", "w"]), "s": (F32, [4])}
    # of aligned corners ONNX and ONNX Runtime disagree where a part of a pixel is lost
    height = 6 if how.get("coordinate_transformation_mode") == "align_corners" else 5
    feeds = [
        {"x": f32(*shape), "s": np.float32(scales)}
        for shape, scales in (((1, 2, 4, 6), [1, 1, 2, 3]), ((2, 2, height, 8), [1, 1, 1.5, 0.5]))
    ]
    check([node("Resize", "x - s", "y", **how)], kinds, *feeds)
    scales = np.float32([1, 1, 1.5, 2])
    feeds = [{"x": feed["x"]} for feed in feeds]
    check([node("Resize", "x - s", "y", **how)], {"x": kinds["x"]}, *feeds, s=scales)


def test_suppression_takes_its_limits_from_the_run() -> None:
    kinds = {
        "b": (F32, [1, "n", 4]),
        "s": (F32, [1, 2, "n"]),
        "most": (I64, [1]),
        "near": (F32, [1]),
    }
    corner = f32(1, 8, 2)
    feed = {"b": np.concatenate([corner, corner + 1], 2), "s": abs(f32(1, 2, 8)), "most": i64(3)}
    feeds = [{**feed, "near": np.float32([limit])} for limit in (0.1, 0.6)]
    check([node("NonMaxSuppression", "b s most near", "y")], kinds, *feeds)


@pytest.mark.parametrize("batches", [((4,), (4,)), ((2, 3), (3,)), ((2, 3), (1, 3)), ((2, 2), ())])
def test_products_of_known_batches_and_open_matrices(batches: Any) -> None:
    left, right = batches
    kinds = {"a": (F32, [*left, "m", "k"]), "b": (F32, [*right, "k", "n"])}
    feeds = [{"a": f32(*left, m, k), "b": f32(*right, k, n)} for m, k, n in ((2, 3, 4), (1, 5, 2))]
    check([node("MatMul", "a b", "y")], kinds, *feeds)
    check([node("MatMul", "a b", "y")], {**kinds, "b": (F32, [*right, "k", 6])},
          {"a": f32(*left, 2, 3), "b": f32(*right, 3, 6)})  # fmt: skip


@pytest.mark.parametrize("axes", [(0, 2), (-1, 1), (3, 1)])
def test_axes_come_with_the_run(axes: tuple[int, int]) -> None:
    feed = {"x": f32(3, 4), "axes": i64(*axes)}
    inputs = {"x": (F32, [3, 4]), "axes": (I64, [2])}
    check([node("Unsqueeze", "x axes", "y")], inputs, feed)
    feed = {"x": np.expand_dims(feed["x"], axes), "axes": i64(*axes)}
    inputs = {"x": (F32, [None] * 4), "axes": (I64, [2])}
    check([node("Squeeze", "x axes", "y")], inputs, feed)


@pytest.mark.parametrize("axis", [-3, 0, 1, -2])
def test_spectra_along_an_axis_that_the_run_knows(axis: int) -> None:
    kinds = {"x": (F32, ["n", 6, 1]), "axis": (I64, [])}
    feeds = [{"x": f32(rows, 6, 1), "axis": np.array(axis)} for rows in (4, 3)]
    check([node("DFT", "x - axis", "y")], kinds, *feeds, opset=20)
    check([node("DFT", "x - axis", "y", inverse=1)], kinds, *feeds, opset=20)


def test_an_axis_that_decides_about_the_shape_of_a_spectrum_is_needed_at_import() -> None:
    with pytest.raises(tvm.TVMError, match="the axis, which decides about the result's shape"):
        check([node("DFT", "x - axis", "y", onesided=1)],
              {"x": (F32, [4, 6, 1]), "axis": (I64, [])}, opset=20)  # fmt: skip


@pytest.mark.parametrize(
    ("attrs", "counts"),
    [({}, (32, 14)), ({"strides": [2, 1], "dilations": [1, 2], "pads": [1, 0, 2, 1]}, (20, 24))],
)
def test_images_from_columns_of_sizes_that_the_run_knows(
    attrs: dict[str, Any], counts: tuple[int, int]
) -> None:
    kinds = {"x": (F32, ["n", "c", "l"]), "image": (I64, [2]), "block": (I64, [2])}
    feeds = [
        {"x": f32(2, 3 * 4, counts[0]), "image": i64(5, 6 if attrs else 9), "block": i64(2, 2)},
        {"x": f32(1, 2 * 3, counts[1]), "image": i64(4, 7), "block": i64(3, 1)},
    ]
    check([node("Col2Im", "x image block", "y", **attrs)], kinds, *feeds)


def test_sequences_of_parts_whose_sizes_the_run_knows() -> None:
    nodes = [
        node("SplitToSequence", "x sizes", "parts", axis=1),
        node("SequenceAt", "parts two", "y"),
    ]
    kinds = {"x": (F32, [2, "n"]), "sizes": (I64, [3])}
    feeds = [{"x": f32(2, 6), "sizes": i64(1, 2, 3)}, {"x": f32(2, 9), "sizes": i64(4, 0, 5)}]
    check(nodes, kinds, *feeds, two=np.array(2))
    check(nodes, kinds, *feeds, two=np.array(1))


@pytest.mark.parametrize("attrs", [{}, {"axis": 0}, {"axis": -1, "sorted": 0}])
def test_distinct_slices_of_tensors_of_the_run(attrs: dict[str, Any]) -> None:
    kinds = {"x": (F32, ["n", 3])}
    rows = RNG.integers(0, 2, (9, 3)).astype("float32")
    check([node("Unique", "x", "y first which counts", **attrs)], kinds, {"x": rows})


@pytest.mark.parametrize("attrs", [{}, {"exclusive": 1, "reverse": 1}])
def test_sums_run_along_an_axis_of_the_run(attrs: dict[str, Any]) -> None:
    kinds = {"x": (F32, ["n", 3]), "axis": (I64, [])}
    feeds = [{"x": f32(4, 3), "axis": np.array(axis)} for axis in (0, 1, -1, -2)]
    check([node("CumSum", "x axis", "y", **attrs)], kinds, *feeds)
