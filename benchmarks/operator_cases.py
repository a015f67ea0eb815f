"""Single operators of ONNX, by family, in the shapes that networks use and in odd ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 20


@dataclass(frozen=True)
class Random:
    """An array to be made up: integers below `high`, booleans, or floats from 0 to 1."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    high: int = 0

    def made(self, rng: np.random.Generator) -> np.ndarray:
        if self.dtype == "bool":
            return rng.random(self.shape) > 0.5
        values = rng.integers(0, self.high, self.shape) if self.high else rng.random(self.shape)
        return np.asarray(values).astype(self.dtype)

    def __str__(self) -> str:
        kind = "" if self.dtype == "float32" else f" {self.dtype}"
        return ("x".join(map(str, self.shape)) or "scalar") + kind


@dataclass(frozen=True)
class Case:
    """An operator, what flows into it and, behind that, what its file fixes."""

    op: str
    inputs: tuple[Random, ...]
    fixed: tuple[Random | np.ndarray | None, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1

    @property
    def name(self) -> str:
        weights = [f"fixed {value}" for value in self.fixed if isinstance(value, Random)]
        small = [str(v.tolist()) for v in self.fixed if isinstance(v, np.ndarray)]
        attrs = [f"{key}={value}" for key, value in self.attrs.items()]
        return " ".join([self.op, ", ".join([*map(str, self.inputs), *weights]), *small, *attrs])

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The inputs and the fixed arrays, by name."""
        rng = np.random.default_rng(0)
        feeds = {f"in{i}": x.made(rng) for i, x in enumerate(self.inputs)}
        fixed = {
            f"fixed{i}": x.made(rng) if isinstance(x, Random) else x
            for i, x in enumerate(self.fixed)
            if x is not None
        }
        return feeds, fixed

    def model(self) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
        """The operator as a model, and its inputs."""
        feeds, fixed = self.arrays()
        behind = ["" if x is None else f"fixed{i}" for i, x in enumerate(self.fixed)]
        outputs = [f"out{i}" for i in range(self.outputs)]
        graph = helper.make_graph(
            [helper.make_node(self.op, [*feeds, *behind], outputs, **self.attrs)],
            "operator",
            [_value_info(name, array) for name, array in feeds.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in fixed.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9
        )
        return onnx.shape_inference.infer_shapes(model, data_prop=True), feeds


def _value_info(name: str, array: np.ndarray) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
    )


def floats(*shape: int) -> Random:
    return Random(shape)


def indices(high: int, *shape: int) -> Random:
    return Random(shape, "int64", high)


def ints(*values: int) -> np.ndarray:
    return np.array(values, "int64")


def number(value: float, dtype: str = "float32") -> np.ndarray:
    return np.array(value, dtype)


def unary() -> Iterator[Case]:
    row = floats(128, 768)
    for op in ("Relu", "Exp", "Erf"):
        for shape in ((1, 64, 112, 112), (128, 768), (32, 1000), (8, 12, 128, 128), (1000003,)):
            yield Case(op, (floats(*shape),))
    for op in (
        *("Sigmoid", "Tanh", "Softplus", "HardSwish", "LeakyRelu", "Sqrt", "Abs", "Log", "Sin"),
        *("Elu", "Selu", "HardSigmoid", "Softsign", "Reciprocal", "Neg", "Floor", "Round", "Mish"),
        *("Atan", "Sign", "Celu", "ThresholdedRelu", "IsNaN"),
    ):
        yield Case(op, (row,))
    yield Case("Gelu", (row,))
    yield Case("Gelu", (row,), attrs={"approximate": "tanh"})
    yield Case("Clip", (floats(1, 64, 112, 112),), (number(0.2), number(0.8)))
    yield Case("Not", (Random((128, 768), "bool"),))
    yield Case("Relu", (Random((128, 768), "float16"),))
    yield Case("Sigmoid", (Random((128, 768), "float16"),))
    yield Case("Abs", (Random((128, 768), "int64", 9),))


def binary() -> Iterator[Case]:
    for shape, other in (
        ((128, 768), (768,)), ((8, 12, 128, 128), (8, 1, 1, 128)), ((1, 64, 56, 56), (1, 64, 1, 1)),
        ((1, 64, 56, 56), (1, 1, 56, 56)), ((512, 512), (512, 1)), ((1000, 999), (1000, 999)),
        ((7, 1, 9, 1, 5), (1, 8, 1, 6, 5)), ((1000, 3), (3,)), ((32, 1, 768), (1, 50, 768)),
    ):  # fmt: skip
        yield Case("Add", (floats(*shape), floats(*other)))
    for op in ("Sub", "Mul", "Div", "Less", "Equal", "Max"):
        yield Case(op, (floats(128, 768), floats(128, 768)))
    for exponent in (0.5, 2.0, 3.0, 2.7):
        yield Case("Pow", (floats(128, 768),), (number(exponent),))
    for op in ("Pow", "Mod"):
        attrs = {"fmod": 1} if op == "Mod" else {}
        yield Case(op, (floats(128, 768), floats(128, 768)), attrs=attrs)
    wide = Random((128, 768), "int64", 99)
    for op in ("Add", "Mul", "Less", "Equal"):
        yield Case(op, (wide, wide))
    yield Case("Div", (wide,), (number(7, "int64"),))
    yield Case("Mod", (wide,), (number(7, "int64"),))
    yield Case("Add", (Random((128, 768), "float16"), Random((768,), "float16")))
    yield Case("And", (Random((128, 768), "bool"), Random((128, 768), "bool")))
    condition = Random((8, 12, 128, 128), "bool")
    yield Case("Where", (condition, floats(8, 12, 128, 128), floats(1)))
    yield Case("Where", (Random((8, 1, 128, 128), "bool"), floats(1), floats(8, 12, 128, 128)))


def casts() -> Iterator[Case]:
    for source, target in (
        ("float32", "int32"), ("int64", "float32"), ("float32", "float16"), ("float16", "float32"),
        ("float32", "bool"), ("bool", "float32"), ("int32", "int64"), ("int64", "int32"),
        ("uint8", "float32"), ("float32", "uint8"), ("float32", "float64"), ("bool", "int64"),
    ):  # fmt: skip
        high = 9 if "int" in source else 0
        to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
        yield Case("Cast", (Random((128, 768), source, high),), attrs={"to": to})


def reductions() -> Iterator[Case]:
    for shape, axes in (
        ((1, 64, 112, 112), (2, 3)), ((128, 768), (1,)), ((128, 768), (0,)), ((32, 100, 50), (1,)),
        ((8, 12, 128, 128), (3,)), ((1, 1000003), (1,)), ((64, 7, 7, 512), (1, 2)),
        ((1, 256, 56, 56), (1,)), ((16, 77, 3), (1,)), ((5003, 10), (0,)), ((5003, 10), (1,)),
        ((4, 6, 50, 7, 9), (1, 3)), ((4, 6, 50, 7, 9), (0, 2, 4)), ((1, 100003), (0,)),
        ((64, 33, 65), (-2,)), ((20, 30, 31), (0, 1)), ((1000, 1000), (0, 1)), ((1000003,), (0,)),
    ):  # fmt: skip
        for op in ("ReduceSum", "ReduceMax", "ReduceMean"):
            yield Case(op, (floats(*shape),), (ints(*axes),), {"keepdims": 0})
    for op in ("ReduceL2", "ReduceLogSumExp", "ReduceProd", "ReduceMin", "ReduceSumSquare"):
        for axis in (0, 1):
            yield Case(op, (floats(128, 768),), (ints(axis),))
    yield Case("ReduceSum", (Random((128, 768), "int64", 9),), (ints(1),))
    yield Case("ReduceMax", (Random((128, 768), "int32", 9),), (ints(0),))


def arguments() -> Iterator[Case]:
    for shape, axis in (
        ((64, 1000), -1), ((1, 1000), -1), ((8, 32, 128, 128), -1), ((1, 21, 224, 224), 1),
        ((1000, 64), 0), ((32, 100, 50), 1), ((64, 33), -1), ((1, 100003), 1), ((1, 1000, 7), 1),
    ):  # fmt: skip
        for op in ("ArgMax", "ArgMin"):
            yield Case(op, (floats(*shape),), attrs={"axis": axis, "keepdims": 0})


def softmaxes() -> Iterator[Case]:
    for shape, axis in (
        ((128, 1000), 1), ((1, 1000), 1), ((8, 12, 128, 128), 3), ((1, 21, 224, 224), 1),
        ((512, 50), 1), ((1, 100, 5003), 2), ((1024, 10), 1), ((12, 197, 197), 2), ((64, 49), -1),
        ((4, 64, 33, 7), 1), ((1, 50257), 1), ((100, 3), 1), ((16, 50, 50), 1),
    ):  # fmt: skip
        yield Case("Softmax", (floats(*shape),), attrs={"axis": axis})
    for shape, axis in (((128, 5003), 1), ((32, 10), 1), ((1, 21, 64, 64), 1)):
        yield Case("LogSoftmax", (floats(*shape),), attrs={"axis": axis})
    yield Case("Softmax", (Random((128, 1000), "float16"),), attrs={"axis": -1})
    yield Case("Hardmax", (floats(128, 1000),), attrs={"axis": -1})


def norms() -> Iterator[Case]:
    for shape in (
        (1, 128, 768), (1, 50, 512), (8, 197, 384), (1, 3136, 96), (64, 100), (1, 1, 768),
        (32, 33, 77), (4, 1000, 24),
    ):  # fmt: skip
        weights = (floats(shape[-1]), floats(shape[-1]))
        yield Case("LayerNormalization", (floats(*shape),), weights, {"axis": -1})
    weights = (floats(28, 28), floats(28, 28))
    yield Case("LayerNormalization", (floats(4, 64, 28, 28),), weights, {"axis": 2})
    for shape in ((1, 64, 112, 112), (8, 32, 28, 28), (1, 512, 7, 7), (4, 64, 1000)):
        weights = (floats(shape[1]), floats(shape[1]))
        yield Case("InstanceNormalization", (floats(*shape),), weights)
    for shape in ((1, 64, 56, 56), (8, 33, 14, 14), (32, 100)):
        weights = tuple(floats(shape[1]) for _ in range(4))
        yield Case("BatchNormalization", (floats(*shape),), weights)
    yield Case("LRN", (floats(1, 64, 28, 28),), attrs={"size": 5})
    for axis in (1, -1):
        yield Case("LpNormalization", (floats(64, 1000),), attrs={"axis": axis, "p": 2})
    yield Case("MeanVarianceNormalization", (floats(4, 16, 28, 28),))


def transposes() -> Iterator[Case]:
    for shape, order in (
        ((8, 128, 12, 64), (0, 2, 1, 3)), ((1, 64, 112, 112), (0, 2, 3, 1)), ((512, 1024), (1, 0)),
        ((1, 112, 112, 64), (0, 3, 1, 2)), ((8, 12, 128, 64), (0, 1, 3, 2)),
        ((1, 3, 224, 224), (0, 2, 3, 1)), ((1, 224, 224, 3), (0, 3, 1, 2)),
        ((4, 7, 9, 11), (3, 2, 1, 0)), ((197, 8, 3, 64), (2, 1, 0, 3)), ((1001, 33), (1, 0)),
        ((1, 8, 8, 7, 7, 96), (0, 1, 3, 2, 4, 5)), ((100, 5, 10), (1, 0, 2)), ((50, 64, 3), (2, 0, 1)),
    ):  # fmt: skip
        yield Case("Transpose", (floats(*shape),), attrs={"perm": list(order)})
    yield Case("Transpose", (Random((512, 1024), "float16"),), attrs={"perm": [1, 0]})
    yield Case("Transpose", (Random((1, 224, 224, 3), "uint8", 9),), attrs={"perm": [0, 3, 1, 2]})
    yield Case("Transpose", (Random((512, 1024), "int64", 9),), attrs={"perm": [1, 0]})
    yield Case("DepthToSpace", (floats(1, 64, 56, 56),), attrs={"blocksize": 2})
    yield Case("DepthToSpace", (floats(1, 64, 56, 56),), attrs={"blocksize": 2, "mode": "CRD"})
    yield Case("SpaceToDepth", (floats(1, 16, 56, 56),), attrs={"blocksize": 2})


def sorting() -> Iterator[Case]:
    for shape, count, axis in (
        ((1, 1000), 5, -1), ((1, 50000), 100, -1), ((256, 1000), 10, -1), ((64, 100), 100, -1),
        ((1, 8400), 1000, -1), ((32, 128, 8), 2, 1), ((1, 50257), 50, -1), ((64, 8), 2, -1),
        ((1, 200000), 200000, -1),
    ):  # fmt: skip
        yield Case("TopK", (floats(*shape),), (ints(count),), {"axis": axis}, 2)
    yield Case("TopK", (floats(64, 1000),), (ints(3),), {"axis": -1, "largest": 0}, 2)
    yield Case("NonZero", (Random((64, 64), "bool"),))
    yield Case("NonZero", (Random((1000, 100), "int64", 2),))
    yield Case("Unique", (indices(100, 10000),), outputs=4)
    yield Case("Compress", (floats(1000, 64), Random((1000,), "bool")), attrs={"axis": 0})


def scans() -> Iterator[Case]:
    for shape, axis in (((64, 1000), 1), ((1000, 64), 0), ((8, 100, 33), 1), ((100003,), 0)):
        yield Case("CumSum", (floats(*shape),), (number(axis, "int64"),))
    yield Case("CumSum", (Random((64, 1000), "int64", 9),), (number(1, "int64"),))
    attrs = {"exclusive": 1, "reverse": 1}
    yield Case("CumSum", (floats(64, 1000),), (number(1, "int64"),), attrs)


def gathers() -> Iterator[Case]:
    yield Case("Gather", (floats(30522, 768), indices(30000, 1, 128)), attrs={"axis": 0})
    yield Case("Gather", (floats(1000, 16), indices(1000, 64, 26)), attrs={"axis": 0})
    yield Case("Gather", (floats(64, 100, 128), indices(100, 20)), attrs={"axis": 1})
    yield Case("Gather", (floats(64, 1000), indices(1000, 50)), attrs={"axis": 1})
    yield Case("Gather", (floats(64, 197, 768),), (number(0, "int64"),), {"axis": 1})
    for axis, count in ((1, (64, 100)), (0, (30, 1000))):
        picked = indices(64, *count)
        yield Case("GatherElements", (floats(64, 1000), picked), attrs={"axis": axis})
        values = (floats(64, 1000), picked, floats(*count))
        yield Case("ScatterElements", values, attrs={"axis": axis})
        yield Case("ScatterElements", values, attrs={"axis": axis, "reduction": "add"})
    yield Case("GatherND", (floats(100, 100, 32), indices(100, 500, 2)))
    yield Case("GatherND", (floats(100, 100), indices(100, 5000, 2)))
    yield Case("ScatterND", (floats(1000, 64), indices(1000, 200, 1), floats(200, 64)),
               attrs={"reduction": "add"})  # fmt: skip
    yield Case("ScatterND", (floats(1000, 64), Random((1, 1), "int64", 9), floats(1, 64)))
    yield Case("OneHot", (indices(100, 128),), (number(100, "int64"), np.array([0, 1], "float32")))
    yield Case(
        "OneHot", (indices(1000, 32, 50),), (number(1000, "int64"), np.array([0, 1], "float32"))
    )


def moves() -> Iterator[Case]:
    parts = (floats(1, 64, 56, 56), floats(1, 64, 56, 56), floats(1, 128, 56, 56))
    yield Case("Concat", parts, attrs={"axis": 1})
    yield Case("Concat", (floats(128, 256), floats(128, 512)), attrs={"axis": -1})
    yield Case("Concat", (floats(1000, 3), floats(1000, 5)), attrs={"axis": 1})
    yield Case("Concat", (floats(8, 1, 384), floats(8, 196, 384)), attrs={"axis": 1})
    yield Case("Concat", (floats(1, 12, 100, 64), floats(1, 12, 1, 64)), attrs={"axis": 2})
    split = {"axis": -1, "num_outputs": 3}
    yield Case("Split", (floats(8, 128, 2304),), attrs=split, outputs=3)
    yield Case("Split", (floats(8, 96, 28, 28),), attrs={"axis": 1, "num_outputs": 2}, outputs=2)
    yield Case("Split", (floats(1000, 30),), attrs={"axis": 1, "num_outputs": 3}, outputs=3)
    for start, stop, axes, steps in (
        ((1, 1), (111, 111), (2, 3), (1, 1)), ((0, 0), (112, 112), (2, 3), (2, 2)),
        ((0,), (112,), (3,), (2,)), ((-1,), (-113,), (3,), (-1,)), ((-1,), (-113,), (2,), (-1,)),
        ((0,), (32,), (1,), (1,)), ((3,), (64,), (1,), (3,)),
    ):  # fmt: skip
        fixed = (ints(*start), ints(*stop), ints(*axes), ints(*steps))
        yield Case("Slice", (floats(1, 64, 112, 112),), fixed)
    yield Case("Slice", (floats(1, 8400, 85),), (ints(4), ints(85), ints(2)))
    yield Case("Pad", (floats(1, 64, 56, 56),), (ints(0, 0, 1, 1, 0, 0, 1, 1),))
    for mode in ("constant", "reflect", "edge"):
        pads = ints(0, 0, 3, 3, 0, 0, 3, 3)
        yield Case("Pad", (floats(1, 3, 224, 224),), (pads,), {"mode": mode})
        yield Case("Pad", (floats(8, 33, 77),), (ints(0, 2, 5, 0, 1, 4),), {"mode": mode})
        yield Case("Pad", (floats(1, 16000),), (ints(0, 200, 0, 200),), {"mode": mode})
    yield Case("Expand", (floats(1, 12, 1, 128),), (ints(8, 12, 128, 128),))
    yield Case("Expand", (floats(64, 1),), (ints(64, 1000),))
    for shape, repeats in (
        ((1, 64, 28, 28), (1, 1, 2, 2)), ((1, 77), (64, 1)), ((100, 3), (1, 50)), ((1000,), (33,)),
        ((8, 1, 64), (1, 100, 1)), ((32, 50), (3, 1)),
    ):  # fmt: skip
        yield Case("Tile", (floats(*shape),), (ints(*repeats),))
    yield Case("Trilu", (floats(8, 128, 128),))
    yield Case("ReverseSequence", (floats(50, 32, 64), Random((32,), "int64", 50)))


def resizes() -> Iterator[Case]:
    for mode, coordinates in (
        ("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"),
        ("cubic", "half_pixel"), ("nearest", "half_pixel"),
    ):  # fmt: skip
        attrs = {"mode": mode, "coordinate_transformation_mode": coordinates}
        attrs |= {"nearest_mode": "floor"} if mode == "nearest" else {}
        for scale in (2.0, 0.5, 1.5):
            scales = np.array([1, 1, scale, scale], "float32")
            yield Case("Resize", (floats(1, 64, 28, 28),), (None, scales), attrs)
    scales = np.array([1, 1, 8, 8], "float32")
    yield Case("Resize", (floats(1, 21, 28, 28),), (None, scales), {"mode": "linear"})
    yield Case("GridSample", (floats(1, 16, 64, 64), floats(1, 64, 64, 2)))
    yield Case(
        "GridSample", (floats(4, 3, 32, 32), floats(4, 50, 50, 2)), attrs={"mode": "nearest"}
    )
    attrs = {"output_height": 7, "output_width": 7, "sampling_ratio": 2}
    boxes = (floats(1, 64, 50, 50), Random((100, 4), "float32", 50), Random((100,), "int64", 1))
    yield Case("RoiAlign", boxes, attrs=attrs)


def pools() -> Iterator[Case]:
    for kernel, stride, pad, shape in (
        (3, 2, 1, (1, 64, 112, 112)), (2, 2, 0, (1, 64, 112, 112)), (3, 1, 1, (1, 256, 28, 28)),
        (5, 1, 2, (1, 256, 13, 13)), (3, 2, 0, (4, 33, 35, 35)), (2, 2, 0, (32, 16, 14, 14)),
        (7, 7, 0, (1, 512, 7, 7)), (13, 1, 6, (1, 128, 13, 13)),
    ):  # fmt: skip
        attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        for op in ("MaxPool", "AveragePool"):
            yield Case(op, (floats(*shape),), attrs=attrs)
    attrs = {"kernel_shape": [3], "strides": [2]}
    yield Case("MaxPool", (floats(8, 64, 500),), attrs=attrs)
    attrs = {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}
    yield Case("MaxPool", (floats(1, 32, 16, 28, 28),), attrs=attrs)
    for shape in ((1, 2048, 7, 7), (8, 128, 14, 14), (1, 64, 112, 112)):
        yield Case("GlobalAveragePool", (floats(*shape),))
        yield Case("GlobalMaxPool", (floats(*shape),))


def products() -> Iterator[Case]:
    for left, right in (
        ((12, 128, 64), (12, 64, 128)), ((12, 128, 128), (12, 128, 64)), ((128, 768), (768, 768)),
        ((64, 1, 64), (64, 64, 128)), ((8, 49, 32), (8, 32, 49)), ((100, 3, 4), (100, 4, 5)),
        ((2000, 16), (16, 2000)), ((12, 1, 64), (12, 64, 200)), ((12, 1, 200), (12, 200, 64)),
    ):  # fmt: skip
        yield Case("MatMul", (floats(*left), floats(*right)))
    for left, right in (
        ((1, 768), (768, 3072)), ((17, 768), (768, 51)), ((1, 1000), (1000, 1)), ((3, 3), (3, 3)),
        ((300, 300), (300, 300)), ((4, 512), (512, 512)), ((1, 1001), (1001, 333)),
        ((8, 1024), (1024, 1000)), ((32, 64), (64, 10)), ((1000, 7), (7, 5)), ((1, 64), (64, 4096)),
        ((768,), (768, 3072)), ((3072, 768), (768,)),
    ):  # fmt: skip
        yield Case("MatMul", (floats(*left), floats(*right)))
        yield Case("MatMul", (floats(*left),), (floats(*right),))
    for a, b, attrs in (
        ((1, 768), (3072, 768), {"transB": 1}), ((768, 1), (768, 3072), {"transA": 1}),
        ((16, 100), (200, 100), {"transB": 1}), ((100, 16), (200, 100), {"transA": 1, "transB": 1}),
    ):  # fmt: skip
        yield Case("Gemm", (floats(*a), floats(*b)), attrs=attrs)
    for equation, a, b in (
        ("bid,bjd->bij", (8, 128, 64), (8, 128, 64)), ("bhid,bhjd->bhij", (1, 12, 64, 64), (1, 12, 64, 64)),
        ("bij,bjd->bid", (8, 128, 128), (8, 128, 64)), ("i,j->ij", (1000,), (1000,)),
        ("ij,ij->i", (1000, 128), (1000, 128)), ("bhwc,hkc->bhwk", (2, 14, 14, 64), (14, 14, 64)),
    ):  # fmt: skip
        yield Case("Einsum", (floats(*a), floats(*b)), attrs={"equation": equation})


def convolutions() -> Iterator[Case]:
    for data, weight, attrs in (
        ((1, 3, 224, 224), (32, 3, 3, 3), {"strides": [2, 2], "pads": [1] * 4}),
        ((1, 3, 224, 224), (64, 3, 7, 7), {"strides": [2, 2], "pads": [3] * 4}),
        ((1, 1, 28, 28), (32, 1, 3, 3), {}), ((1, 3, 32, 32), (6, 3, 5, 5), {}),
        ((1, 64, 224, 224), (3, 64, 3, 3), {"pads": [1] * 4}),
        ((1, 32, 128, 128), (1, 32, 1, 1), {}), ((1, 17, 31, 31), (23, 17, 3, 3), {}),
        ((1, 20, 50, 50), (30, 20, 3, 3), {"pads": [1] * 4}),
        ((1, 64, 56, 56), (64, 1, 3, 3), {"group": 64, "pads": [1] * 4}),
        ((1, 32, 112, 112), (64, 1, 3, 3), {"group": 32, "pads": [1] * 4, "strides": [2, 2]}),
        ((1, 96, 56, 56), (96, 1, 7, 7), {"group": 96, "pads": [3] * 4}),
        ((1, 96, 28, 28), (96, 1, 5, 5), {"group": 96, "pads": [2] * 4}),
        ((1, 128, 28, 28), (128, 4, 3, 3), {"group": 32, "pads": [1] * 4}),
        ((1, 80, 300), (256, 80, 3), {"pads": [1, 1]}),
        ((1, 256, 300), (256, 1, 31), {"group": 256, "pads": [15, 15]}),
        ((1, 16, 8, 56, 56), (32, 16, 3, 3, 3), {"pads": [1] * 6}),
        ((1, 64, 14, 14), (100, 64, 3, 3), {"pads": [1] * 4}), ((1, 12, 24, 24), (12, 12, 1, 1), {}),
        ((8, 3, 32, 32), (16, 3, 3, 3), {"pads": [1] * 4}), ((1, 64, 1, 1), (16, 64, 1, 1), {}),
        ((1, 256, 14, 14), (256, 256, 3, 3), {"pads": [2] * 4, "dilations": [2, 2]}),
    ):  # fmt: skip
        yield Case("Conv", (floats(*data),), (floats(*weight), floats(weight[0])), attrs)
    for data, weight, attrs in (
        ((1, 128, 28, 28), (128, 64, 2, 2), {"strides": [2, 2]}),
        ((1, 128, 28, 28), (128, 64, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
        ((1, 64, 28, 28), (64, 32, 3, 3),
         {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
    ):  # fmt: skip
        yield Case("ConvTranspose", (floats(*data),), (floats(*weight),), attrs)


def recurrent() -> Iterator[Case]:
    for op, gates in (("GRU", 3), ("LSTM", 4), ("RNN", 1)):
        weights = (floats(1, 64 * gates, 64), floats(1, 64 * gates, 64))
        yield Case(op, (floats(50, 1, 64),), weights, {"hidden_size": 64})


FAMILIES: Mapping[str, Callable[[], Iterator[Case]]] = {
    made.__name__: made
    for made in (
        *(unary, binary, casts, reductions, arguments, softmaxes, norms, transposes, sorting),
        *(scans, gathers, moves, resizes, pools, products, convolutions, recurrent),
    )
}
