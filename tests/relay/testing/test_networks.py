"""The networks of `relay.testing`."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay import testing

RNG = np.random.default_rng(0)


def randomised(params: dict[str, tvm.nd.NDArray]) -> dict[str, tvm.nd.NDArray]:
    """Batch normalisation that does something, so that wrong folding shows."""
    found = {}
    for name, value in params.items():
        array = value.numpy()
        if name.endswith(("gamma", "var")):
            array = RNG.uniform(0.5, 1.5, array.shape).astype(array.dtype)
        elif name.endswith(("beta", "mean", "bias")):
            array = RNG.uniform(-0.5, 0.5, array.shape).astype(array.dtype)
        found[name] = tvm.nd.array(array)
    return found


def before_softmax(mod: tvm.IRModule) -> tvm.IRModule:
    main = mod["main"]
    if not (isinstance(main.body, relay.Call) and main.body.op.name == "nn.softmax"):
        return mod
    return tvm.IRModule.from_expr(relay.Function(main.params, main.body.args[0]))


def evaluate(mod: tvm.IRModule, params: dict[str, tvm.nd.NDArray], level: int) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=level):
        lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    shape = mod["main"].params[0].type_annotation.concrete_shape
    module.set_input("data", np.random.default_rng(1).uniform(-1, 1, shape).astype("float32"))
    module.run()
    return module.get_output(0).numpy()


WORKLOADS = {
    "mlp": lambda: testing.mlp.get_workload(2),
    "resnet8": lambda: testing.resnet.get_workload(
        num_layers=8, num_classes=10, image_shape=(3, 28, 28)
    ),
    "resnet18": lambda: testing.resnet.get_workload(
        num_layers=18, num_classes=10, image_shape=(3, 64, 64)
    ),
    "resnet50": lambda: testing.resnet.get_workload(
        num_layers=50, num_classes=10, image_shape=(3, 32, 32)
    ),
    "resnet_3d": lambda: testing.resnet_3d.get_workload(
        num_layers=18, num_classes=10, image_shape=(3, 8, 32, 32)
    ),
    "dcgan": lambda: testing.dcgan.get_workload(1, ngf=8),
    "dcgan_nhwc": lambda: testing.dcgan.get_workload(1, ngf=8, layout="NHWC"),
    "dqn": lambda: testing.dqn.get_workload(1),
    "dqn_nhwc": lambda: testing.dqn.get_workload(1, image_shape=(84, 84, 4), layout="NHWC"),
    "inception_v3": lambda: testing.inception_v3.get_workload(
        num_classes=10, image_shape=(3, 107, 107)
    ),
    "lstm": lambda: testing.lstm.get_workload(iterations=2, num_hidden=4),
    "squeezenet_1.0": lambda: testing.squeezenet.get_workload(
        num_classes=10, image_shape=(3, 64, 64)
    ),
    "squeezenet_1.1": lambda: testing.squeezenet.get_workload(
        num_classes=10, version="1.1", image_shape=(3, 64, 64)
    ),
    "synthetic": lambda: testing.synthetic.get_workload(),
    "vgg": lambda: testing.vgg.get_workload(
        1, num_classes=10, image_shape=(3, 32, 32), batch_norm=True
    ),
    "mobilenet": lambda: testing.mobilenet.get_workload(num_classes=10, image_shape=(3, 32, 32)),
}


SLOW = ("resnet50", "mobilenet")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in WORKLOADS]
)
def test_optimised_and_plain_builds_agree(name: str) -> None:
    mod, params = WORKLOADS[name]()
    mod, params = before_softmax(mod), randomised(params)
    plain, fast = evaluate(mod, params, 0), evaluate(mod, params, 3)
    scale = np.abs(plain).max()
    assert scale > 1e-3
    np.testing.assert_allclose(fast, plain, rtol=1e-3, atol=1e-4 * scale)


def test_resnet18_has_its_parameters() -> None:
    mod, params = testing.resnet.get_workload(num_layers=18)
    assert params["conv0_weight"].shape == (64, 3, 7, 7)
    assert params["stage4_unit2_conv2_weight"].shape == (512, 512, 3, 3)
    assert mod["main"].ret_type == relay.TensorType((1, 1000), "float32")
    count = sum(int(np.prod(v.shape)) for v in params.values())
    assert 11_000_000 < count < 12_000_000


def test_densenet_joins_the_channels_of_all_layers() -> None:
    mod, params = testing.densenet.get_workload(batch_size=1)
    assert params["block4_layer16_conv1_weight"].shape == (128, 992, 1, 1)
    assert mod["main"].ret_type == relay.TensorType((1, 1000), "float32")
    assert 7_900_000 < sum(int(np.prod(v.shape)) for v in params.values()) < 8_100_000
    assert testing.count_ops(mod["main"].body)["concatenate"] == 58


def test_parameters_are_the_same_each_time() -> None:
    first, second = (testing.mlp.get_workload(1)[1] for _ in range(2))
    for name, value in first.items():
        np.testing.assert_array_equal(value.numpy(), second[name].numpy())


def test_unknown_depth_is_rejected() -> None:
    with pytest.raises(ValueError, match="num_layers"):
        testing.resnet.get_workload(num_layers=19)


def test_an_operator_attribute_is_replaced_for_a_while() -> None:
    op = relay.op.get("nn.relu")
    before = op.get_attr("TOpPattern")
    with testing.temp_op_attr.TempOpAttr("nn.relu", "TOpPattern", relay.op.OpPattern.OPAQUE):
        assert op.get_attr("TOpPattern") == relay.op.OpPattern.OPAQUE
    assert op.get_attr("TOpPattern") == before


def test_run_opt_pass_and_count_ops() -> None:
    x = relay.var("x", shape=(2,))
    typed = testing.run_infer_type(relay.exp(x))
    assert typed.checked_type == relay.TensorType((2,), "float32")
    assert testing.count_ops(relay.exp(relay.exp(x))) == {"exp": 2}
