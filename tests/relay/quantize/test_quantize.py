"""Quantised networks give nearly the results of the networks they are made of."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import quantize

RNG = np.random.default_rng(0)
DATA = RNG.uniform(-1, 1, (1, 3, 12, 12)).astype("float32")


def network() -> tuple[tvm.IRModule, dict[str, tvm.nd.NDArray]]:
    x = relay.var("data", shape=DATA.shape)
    shapes = {"w0": (8, 3, 3, 3), "w1": (8, 8, 3, 3), "w2": (8, 8, 3, 3), "d": (10, 8)}
    params = {
        n: tvm.nd.array((RNG.standard_normal(s) * 0.2).astype("float32")) for n, s in shapes.items()
    }
    w = {n: relay.var(n, shape=s) for n, s in shapes.items()}
    body = relay.nn.relu(relay.nn.conv2d(x, w["w0"], padding=(1, 1)))
    body = relay.nn.relu(relay.nn.conv2d(body, w["w1"], padding=(1, 1)))
    body = relay.nn.conv2d(body, w["w2"], padding=(1, 1))
    body = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body)), w["d"])
    func = relay.Function([x, *w.values()], body)
    return relay.transform.InferType()(tvm.IRModule.from_expr(func)), params


def run(mod: tvm.IRModule) -> np.ndarray:
    return relay.create_executor("graph", mod=mod).evaluate()(data=DATA).numpy()


def expected(mod: tvm.IRModule, params: dict) -> np.ndarray:
    return run(quantize.prerequisite_optimize(mod, params))


@pytest.mark.parametrize("mode", ["global_scale", "max", "percentile", "kl_divergence"])
@pytest.mark.parametrize("weights", ["power2", "max"])
def test_results_stay_close(mode: str, weights: str) -> None:
    mod, params = network()
    with quantize.qconfig(calibrate_mode=mode, global_scale=4.0, weight_scale=weights):
        small = quantize.quantize(mod, params, dataset=[{"data": DATA}])
    right = expected(mod, params)
    assert np.abs(run(small) - right).max() < 0.15 * np.abs(right).max() + 0.02


def test_layers_are_skipped() -> None:
    mod, params = network()
    ops = relay.analysis.list_op_freqs
    assert ops(quantize.quantize(mod, params)).get("nn.dense") == 1
    with quantize.qconfig(skip_conv_layers=None, skip_dense_layer=False, do_simulation=True):
        found = ops(quantize.quantize(mod, params))
    assert found["qnn.quantize"] == 8
    with quantize.qconfig(skip_conv_layers=[0, 1, 2]):
        assert "qnn.quantize" not in ops(quantize.quantize(mod, params))


def test_layers_between_quantised_ones_run_on_integers() -> None:
    mod, params = network()
    with quantize.qconfig(skip_conv_layers=None):
        found = relay.analysis.list_op_freqs(quantize.quantize(mod, params))
    assert found["qnn.conv2d"] >= 2


def test_options_are_checked() -> None:
    with pytest.raises(tvm.error.TVMError, match="calibrate_mode of global_scale"):
        quantize.qconfig(calibrate_mode="mean")
    mod, params = network()
    with (
        quantize.qconfig(calibrate_mode="max"),
        pytest.raises(tvm.error.TVMError, match="requires a dataset"),
    ):
        quantize.quantize(mod, params)
    assert quantize.current_qconfig().nbit_input == 8
    assert quantize.kind2str(quantize.QAnnotateKind.WEIGHT) == "weight"


def test_options_of_classic_programs() -> None:
    mod, params = network()
    with quantize.qconfig(
        skip_conv_layers=None, round_for_shift=True, rounding="TONEAREST", calibrate_mode="max",
        calibrate_chunk_by=1, debug_enabled_ops=["nn.conv2d"], skip_dense_layer=False,
    ):  # fmt: skip
        small = quantize.quantize(mod, params, dataset=iter([{"data": DATA}]))
    assert 'rounding="TONEAREST"' in str(small)
    counts = relay.analysis.list_op_freqs(small)
    assert counts["nn.dense"] == 1  # no operator to quantise
    with pytest.raises(tvm.TVMError, match="requires nbit_activation of 2, 3"):
        quantize.qconfig(nbit_activation=33)


def quantised_layer(last: object = None) -> tvm.IRModule:
    x = relay.var("x", shape=(1, 3, 8, 8))
    weight = relay.const(RNG.standard_normal((4, 3, 3, 3)).astype("float32"))
    y = relay.nn.max_pool2d(relay.nn.conv2d(x, weight))
    return tvm.IRModule.from_expr(relay.Function([x], y if last is None else last(y)))


@pytest.mark.parametrize("last", [None, relay.exp])
def test_conversions_are_functions_of_their_own(last: object) -> None:
    mod = quantised_layer(last)
    options = {"skip_conv_layers": None, "calibrate_mode": "global_scale"}
    with quantize.qconfig(**options):
        whole = quantize.quantize(mod)
    with quantize.qconfig(**options, partition_conversions="enabled"):
        parted = quantize.quantize(mod)
    names = {g.name_hint for g in parted.get_global_vars()}
    assert names == {"main", "quantize_inputs", "quantized_main", "dequantize_outputs"}
    assert str(parted["quantized_main"].params[0].checked_type.dtype) == "int8"
    value = RNG.uniform(-1, 1, (1, 3, 8, 8)).astype("float32")
    results = [
        relay.create_executor("graph", mod=m).evaluate()(value).numpy() for m in (whole, parted)
    ]
    np.testing.assert_allclose(*results, rtol=1e-6)


def test_floats_between_conversions_are_rejected() -> None:
    with (
        quantize.qconfig(skip_conv_layers=None, partition_conversions="fully_integral"),
        pytest.raises(
            AssertionError, match="requires values of int32, int8 between the conversions"
        ) as caught,
    ):
        quantize.quantize(quantised_layer(relay.exp))
    assert isinstance(caught.value, tvm.TVMError)


def test_sums_are_clipped_to_the_bits_of_activations() -> None:
    mod = quantised_layer()
    with quantize.qconfig(skip_conv_layers=None, calibrate_mode="global_scale", nbit_activation=12):
        text = str(quantize.quantize(mod))
    assert "a_min=-2048f, a_max=2047f" in text


def test_without_rounding_results_are_shifted_downwards() -> None:
    mod, params = network()
    options = {"skip_conv_layers": None, "calibrate_mode": "global_scale", "global_scale": 4.0}
    with quantize.qconfig(**options, round_for_shift=False):
        text = str(quantize.quantize(mod, params))
    assert 'rounding="DOWN"' in text


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_requantisation_rounds_downwards(dtype: str) -> None:
    x = relay.var("x", shape=(6,), dtype="int32")
    numbers = [relay.const(np.float32(s)) for s in (0.5, 2.0)]
    zeros = [relay.const(0), relay.const(3)]
    body = relay.qnn.op.requantize(
        x, numbers[0], zeros[0], numbers[1], zeros[1], rounding="DOWN", compute_dtype=dtype
    )
    run = relay.create_executor("graph", mod=tvm.IRModule.from_expr(relay.Function([x], body)))
    values = np.array([-5, -4, -1, 0, 3, 7], "int32")
    np.testing.assert_array_equal(run.evaluate()(values).numpy(), values // 4 + 3)


def test_unknown_options_are_ignored_with_a_warning() -> None:
    with pytest.warns(
        UserWarning, match="no option 'skip_dense_layers'; did you mean 'skip_dense_layer'"
    ):
        config = quantize.qconfig(skip_dense_layers=False, nbit_input=7)
    assert config == quantize.qconfig(nbit_input=7)
