"""com.microsoft with open batches and lengths: encoders as ONNX Runtime's optimiser leaves them,
decoders whose cache grows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import tvm
from tvm import relay
from tvm.contrib import onnx_backend

RNG = np.random.default_rng(0)
F32, I32, I64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32") * 0.5


def ms(op: str, inputs: str, outputs: str, **attrs: Any) -> onnx.NodeProto:
    """A node of com.microsoft; ``-`` is an input left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), domain="com.microsoft", **attrs)


def model_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, Any], outputs: str,
    constants: dict[str, np.ndarray],
) -> onnx.ModelProto:  # fmt: skip
    """A model of nodes; inputs by element type and shape."""
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs.split()],
        [numpy_helper.from_array(v, name) for name, v in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check(
    nodes: list[onnx.NodeProto], inputs: dict[str, Any], outputs: str,
    feeds: list[dict[str, np.ndarray]], **constants: np.ndarray,
) -> None:  # fmt: skip
    """Compile once, and compare all outputs with ONNX Runtime for each feed."""
    model = model_of(nodes, inputs, outputs, constants)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    mod, params = relay.frontend.from_onnx(model)
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
    for feed in feeds:
        found = machine.run(*[feed[p.name_hint] for p in mod["main"].params])
        results = [found] if len(outputs.split()) == 1 else list(found)
        for ours, wanted in zip(results, session.run(None, feed), strict=True):
            assert ours.dtype == str(wanted.dtype)
            np.testing.assert_allclose(ours.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_an_optimised_encoder_takes_open_batches_and_lengths() -> None:
    nodes = [
        ms("EmbedLayerNormalization", "ids segments words places kinds g b mask", "e ends"),
        ms("Attention", "e w wb ends", "a", num_heads=2),
        ms("SkipLayerNormalization", "a e g b", "s"),
        ms("Attention", "s w wb mask", "c", num_heads=2),
        ms("FastGelu", "c b", "y"),
    ]
    weights = {
        "words": f32(11, 8), "places": f32(9, 8), "kinds": f32(2, 8), "g": f32(8), "b": f32(8),
        "w": f32(8, 24), "wb": f32(24),
    }  # fmt: skip
    feeds = []
    for batch, length in ((1, 4), (2, 7)):
        mask = np.ones((batch, length), "int32")
        mask[-1, 3:] = 0
        ids = RNG.integers(0, 11, (batch, length)).astype("int32")
        feeds.append({"ids": ids, "segments": ids % 2, "mask": mask})
    kinds = dict.fromkeys(["ids", "segments", "mask"], (I32, ["n", "t"]))
    check(nodes, kinds, "y", feeds, **weights)


def test_a_decoder_s_groups_attend_to_a_cache_that_grows() -> None:
    nodes = [
        ms("GroupQueryAttention", "q k v pk pv ends total cos sin", "a nk nv", num_heads=4,
           kv_num_heads=2, do_rotary=1),
        ms("MatMulNBits", "a codes scales", "y", K=64, N=8, bits=4, block_size=32),
    ]  # fmt: skip
    cache = (F32, ["n", 2, "past", 16])
    kinds = {
        "q": (F32, ["n", "t", 64]), "k": (F32, ["n", "t", 32]), "v": (F32, ["n", "t", 32]),
        "pk": cache, "pv": cache, "ends": (I32, ["n"]), "total": (I32, []),
    }  # fmt: skip
    angles = f32(20, 8)
    weights = {
        "cos": np.cos(angles), "sin": np.sin(angles), "scales": abs(f32(8 * 2)),
        "codes": RNG.integers(0, 256, (8, 2, 16)).astype("uint8"),
    }  # fmt: skip
    feeds = [
        {"q": f32(batch, length, 64), "k": f32(batch, length, 32), "v": f32(batch, length, 32),
         "pk": f32(batch, 2, past, 16), "pv": f32(batch, 2, past, 16),
         "ends": np.full(batch, past + length - 1, "int32"),
         "total": np.array(past + length, "int32")}
        for batch, length, past in ((1, 5, 0), (1, 1, 5), (2, 1, 9), (2, 4, 0))
    ]  # fmt: skip
    check(nodes, kinds, "y nk nv", feeds, **weights)


def test_many_heads_attend_to_open_lengths() -> None:
    nodes = [
        ms("MultiHeadAttention", "q k v - ends - pk pv", "a nk nv", num_heads=2, unidirectional=1),
        ms("RotaryEmbedding", "a start cos sin", "y", num_heads=2),
    ]
    kinds = {
        **{name: (F32, ["n", "t", 8]) for name in "qkv"},
        **{name: (F32, ["n", 2, "past", 4]) for name in ("pk", "pv")},
        "ends": (I32, ["n", "total"]),
    }
    feeds = []
    for batch, length, past in ((1, 3, 2), (2, 2, 5)):
        feed = {name: f32(batch, length, 8) for name in "qkv"}
        feed.update({name: f32(batch, 2, past, 4) for name in ("pk", "pv")})
        mask = np.ones((batch, past + length), "int32")
        mask[-1, 0] = 0
        feeds.append({**feed, "ends": mask})
    angles = f32(20, 2)
    check(nodes, kinds, "y nk nv", feeds, cos=np.cos(angles), sin=np.sin(angles),
          start=np.array([0], "int64"))  # fmt: skip


def test_positions_of_open_lengths_have_the_biases_of_known_ones() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["t"]),
        ms("RelativePositionBias", "table t t", "y", max_distance=16, is_bidirectional=1),
    ]
    weights = {"table": f32(8, 3), "one": np.array(1)}
    model = model_of(nodes, {"x": (F32, [1, "t"])}, "y", weights)
    mod, params = relay.frontend.from_onnx(model)
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
    for length in (5, 30):
        x = f32(1, length)
        np.testing.assert_array_equal(machine.run(x).numpy(), onnx_backend.run_model(model, [x])[0])


def test_lstms_with_weights_of_bytes_take_open_lengths() -> None:
    weights = {"w": RNG.integers(-63, 64, (1, 5, 16)), "r": RNG.integers(-63, 64, (1, 4, 16))}
    constants = {name: value.astype("int8") for name, value in weights.items()}
    constants |= {"b": f32(1, 32), "scale": np.array([0.003], "float32"), "z": np.zeros(1, "int8")}
    lstm = ms("DynamicQuantizeLSTM", "x w r b - - - - scale z scale z", "y last", hidden_size=4)
    # one row: with several, ONNX Runtime takes a scale for the rows of each of its threads
    feeds = [{"x": f32(length, 1, 5)} for length in (3, 6)]
    check([lstm], {"x": (F32, ["t", 1, 5])}, "y last", feeds, **constants)
