"""Resizing along rows that are interpolated first, beside images whose last axis is not resized."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule

# height and width before and after
CASES = [
    ((7, 9), (15, 31), "linear"),
    ((28, 28), (14, 14), "linear"),
    ((5, 1), (3, 40), "cubic"),
    ((33, 17), (64, 9), "cubic"),
    ((4, 50), (9, 7), "linear"),
]
MODES = ["half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"]


@pytest.mark.parametrize(("have", "want", "method"), CASES)
def test_rows_of_images_are_as_channels_of_images(
    have: tuple[int, int], want: tuple[int, int], method: str
) -> None:
    mode = MODES[sum(have) % len(MODES)]
    data = np.random.default_rng(0).standard_normal((2, 5, *have)).astype("float32")
    options = {"roi": (0.1, -0.2, 0.9, 1.1), "size": want, "method": method}
    options |= {"coordinate_transformation_mode": mode, "rounding_method": ""}

    def resized(x: relay.Expr, layout: str) -> relay.Expr:
        return relay.image.resize2d(x, layout=layout, **options)

    x = relay.var("x", shape=data.shape)
    y = relay.transpose(x, (0, 2, 3, 1))
    rows = resized(relay.abs(x), "NCHW") * relay.const(2.0)
    crossed = relay.transpose(resized(x, "NCHW"), (0, 1, 3, 2)) + relay.const(1.0)
    channels = resized(relay.annotation.stop_fusion(y), "NHWC")
    absolute = resized(relay.abs(relay.annotation.stop_fusion(y)), "NHWC")
    outputs = [rows, crossed, absolute, channels]
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.IRModule.from_expr(relay.Function([x], relay.Tuple(outputs)))
        library = relay.build(mod, "llvm")
    module = GraphModule(library["default"](tvm.cpu()))
    for threads in (1, 2):
        tvm.get_global_func("runtime.config_threadpool")(1, threads)
        module.run(x=data)
        found = [module.get_output(i).numpy() for i in range(4)]
        np.testing.assert_allclose(found[0], 2 * found[2].transpose(0, 3, 1, 2), 1e-4, 1e-5)
        np.testing.assert_allclose(found[1], found[3].transpose(0, 3, 2, 1) + 1, 1e-4, 1e-5)
    tvm.get_global_func("runtime.config_threadpool")(0, 0)
