"""The steps of quantisation as passes of their own, in the manner of classic programs."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.relay.quantize._annotate import attach_simulated_quantize, register_annotate_function
from tvm.relay.quantize._partition import partition_expr_check

import tvm
from tvm import relay
from tvm.relay import quantize as qtz

RNG = np.random.default_rng(3)
SIMULATED = "relay.op.annotation.simulated_quantize"


def constant(*shape: int) -> relay.Constant:
    return relay.const((RNG.standard_normal(shape) * 0.2).astype("float32"))


def residual() -> tvm.IRModule:
    """Two convolutions, the second one's result added to its input."""
    x = relay.var("data", shape=(1, 4, 8, 8))
    y = relay.nn.relu(relay.nn.conv2d(x, constant(8, 4, 3, 3), padding=(1, 1)))
    z = relay.nn.conv2d(y, constant(8, 8, 3, 3), padding=(1, 1))
    z = relay.nn.relu(relay.add(relay.nn.bias_add(z, constant(8)), y))
    return relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], z)))


def annotated(mod: tvm.IRModule) -> tvm.IRModule:
    with qtz.quantize_context():
        return qtz.annotate()(mod)


def counts(mod: tvm.IRModule) -> dict[str, int]:
    return {k: int(v) for k, v in relay.analysis.list_op_freqs(mod).items()}


def value(mod: tvm.IRModule, data: np.ndarray) -> np.ndarray:
    return relay.create_executor("graph", mod=mod).evaluate()(data).numpy()


def test_the_module_of_quantize_has_the_names_beside_it() -> None:
    from tvm.relay.quantize.quantize import QConfig, _forward_op, annotate, qconfig

    assert (QConfig, annotate, qconfig) == (qtz.QConfig, qtz.annotate, qtz.qconfig)
    x, y = relay.var("x", shape=(1, 4)), relay.var("y", shape=(1, 4))
    moved = _forward_op(relay.nn.leaky_relu(x, alpha=0.5), [y])
    assert moved.args[0].same_as(y) and moved.attrs.alpha == 0.5


def test_annotate_quantises_inputs_and_weights_once() -> None:
    with qtz.qconfig(skip_conv_layers=None):
        found = counts(annotated(residual()))
    # two inputs, one of them added as well, and two weights
    assert found[SIMULATED] == 4 and found["nn.conv2d"] == 2


def test_annotate_leaves_skipped_layers() -> None:
    with qtz.qconfig(skip_conv_layers=[0, 1]):
        assert SIMULATED not in counts(annotated(residual()))
        # outside of a context each pass counts anew
        assert SIMULATED not in counts(qtz.annotate()(residual()))


def test_simulated_values_are_on_the_steps_of_the_scale() -> None:
    x = relay.var("x", shape=(64,))
    marked = attach_simulated_quantize(x, qtz.QAnnotateKind.INPUT)
    ranges = [relay.const(np.float32(v)) for v in (0.25, -7, 7)]
    data = RNG.uniform(-3, 3, 64).astype("float32")
    call = relay.Call(marked.op, [x, *ranges], marked.attrs)
    found = value(tvm.IRModule.from_expr(relay.Function([x], call)), data)
    np.testing.assert_allclose(found, np.clip(np.round(data / 0.25), -7, 7) * 0.25)


def test_the_passes_one_by_one_give_integers() -> None:
    mod = residual()
    with qtz.qconfig(skip_conv_layers=None, calibrate_mode="global_scale", global_scale=4.0):
        calibrate = tvm.transform.module_pass(qtz.calibrate(), opt_level=1, name="Calibrate")
        passes = [qtz.partition(), qtz.annotate(), calibrate, qtz.realize()]
        with qtz.quantize_context():
            small = tvm.transform.Sequential(passes)(mod)
    found = counts(small)
    assert found["qnn.conv2d"] >= 2 and "nn.conv2d" not in found and SIMULATED not in found
    assert found["annotation.stop_fusion"] >= 2
    data = RNG.uniform(-1, 1, (1, 4, 8, 8)).astype("float32")
    expected = value(mod, data)
    assert np.abs(value(small, data) - expected).max() < 0.1 * np.abs(expected).max() + 0.05


def test_residual_additions_leave_no_convolution_in_real_numbers() -> None:
    with qtz.qconfig(skip_conv_layers=None):
        found = counts(qtz.quantize(residual()))
    assert "nn.conv2d" not in found and found["qnn.conv2d"] >= 2


def test_fewer_bits_saturate_at_their_range() -> None:
    x = relay.var("data", shape=(1, 1, 1, 4))
    one = relay.const(np.ones((1, 1, 1, 1), "float32"))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.conv2d(x, one)))
    options = {"skip_conv_layers": None, "global_scale": 1.0, "weight_scale": "max"}
    with qtz.qconfig(nbit_input=4, **options):
        small = qtz.quantize(relay.transform.InferType()(mod))
    data = np.array([[[[5.0, -5.0, 0.26, 0.0]]]], "float32")
    found = value(small, data).ravel()
    np.testing.assert_allclose(found, [7 / 8, -7 / 8, 0.25, 0], atol=0.01)


def test_stats_are_of_what_enters_the_layers() -> None:
    data = RNG.uniform(-1, 1, (1, 4, 8, 8)).astype("float32")
    with qtz.qconfig(skip_conv_layers=None):
        mod = annotated(residual())
    chunks = list(qtz.collect_stats(mod, [{"data": data}, {"data": data}], chunk_by=1))
    assert [len(chunk) for chunk in chunks] == [1, 1]
    np.testing.assert_array_equal(chunks[0][0], np.tile(data.ravel(), 2))


def test_realize_asks_for_ranges() -> None:
    with qtz.qconfig(skip_conv_layers=None), pytest.raises(tvm.TVMError, match="requires ranges"):
        qtz.realize()(annotated(residual()))


def test_operators_of_users_are_annotated_by_their_rules() -> None:
    seen: list[str] = []

    def rule(ref_call: relay.Call, new_args: list[object], ctx: object) -> object:
        seen.append(ref_call.op.name)
        kind = new_args[0].kind if isinstance(new_args[0], qtz.QAnnotateExpr) else None
        return qtz.QAnnotateExpr(ref_call, kind) if kind is not None else None

    register_annotate_function("nn.leaky_relu", rule)
    try:
        x = relay.var("x", shape=(1, 4, 8, 8))
        y = relay.nn.leaky_relu(relay.nn.conv2d(x, constant(8, 4, 3, 3)))
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], y)))
        with qtz.qconfig(skip_conv_layers=None):
            annotated(mod)
    finally:
        tvm.ir.Op.get("nn.leaky_relu").reset_attr("FQAnnotateRewrite")
    assert seen == ["nn.leaky_relu"]


def test_partition_cuts_behind_layers_and_what_follows_them() -> None:
    with qtz.qconfig(skip_conv_layers=None):
        mod = qtz.partition()(residual())
    found = counts(mod)
    assert found["annotation.cast_hint"] == found["annotation.stop_fusion"]
    assert mod["main"].body.op.name == "annotation.stop_fusion"
    assert partition_expr_check(mod["main"].body) == (False, mod["main"].body)
