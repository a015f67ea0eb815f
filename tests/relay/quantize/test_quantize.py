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
def test_results_stay_near(mode: str, weights: str) -> None:
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
    with pytest.raises(tvm.error.TVMError, match="no option 'global_scal'.*global_scale"):
        quantize.qconfig(global_scal=1)
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
