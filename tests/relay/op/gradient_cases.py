"""Cases of operators that are gradients, with PyTorch's own as the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tvm import relay

from .cases import Array, Case, floats


def _gradient_of(function: Any, **options: Any) -> Any:
    """From a result's gradient and the input to the input's gradient."""

    def gradient(grad: Array, data: Array) -> Array:
        x = torch.from_numpy(data).requires_grad_()
        function(x, **options).backward(torch.from_numpy(grad))
        return x.grad.numpy()

    return gradient


def pool_cases() -> list[Case]:
    rows: list[tuple[tuple[int, int], dict[str, Any]]] = [
        ((4, 3), {"kernel_size": 3, "stride": 2, "padding": 1}),
        ((6, 5), {"kernel_size": 2, "stride": 1}),
        ((4, 3), {"kernel_size": (2, 3), "stride": 2, "ceil_mode": True}),
    ]
    cases = []
    for (height, width), options in rows:
        attrs = {("pool_size" if k == "kernel_size" else k): v for k, v in options.items()}
        attrs["strides"] = attrs.pop("stride")
        inputs = (floats(2, 3, height, width), floats(2, 3, 7, 6))
        for kind in ("max", "avg"):
            extra = {} if kind == "max" else {"count_include_pad": False}
            cases.append(Case(
                f"nn.{kind}_pool2d_grad",
                lambda g, x, k=kind, a=attrs | extra: getattr(relay.nn, f"{k}_pool2d_grad")(g, x, **a),
                inputs, _gradient_of(getattr(F, f"{kind}_pool2d"), **options, **extra),
            ))  # fmt: skip
    equal = np.zeros((1, 1, 4, 4), "float32")
    cases.append(Case(
        "nn.max_pool2d_grad", lambda g, x: relay.nn.max_pool2d_grad(g, x, 2, 2),
        (floats(1, 1, 2, 2), equal), _gradient_of(F.max_pool2d, kernel_size=2, stride=2),
    ))  # fmt: skip
    return cases


def weight_cases() -> list[Case]:
    cases = []
    for groups, options in ((1, {"padding": 1}), (2, {"stride": 2, "dilation": 2, "padding": (2, 1)})):  # fmt: skip
        data, weight = floats(2, 4, 9, 8), floats(6, 4 // groups, 3, 3)
        shape = F.conv2d(torch.from_numpy(data), torch.from_numpy(weight), groups=groups, **options).shape  # fmt: skip
        attrs = {("strides" if k == "stride" else k): v for k, v in options.items()}

        def expected(g: Array, x: Array, w: Array = weight, n: int = groups, o: Any = options) -> Array:  # fmt: skip
            kernel = torch.from_numpy(w).requires_grad_()
            F.conv2d(torch.from_numpy(x), kernel, groups=n, **o).backward(torch.from_numpy(g))
            return kernel.grad.numpy()

        cases.append(Case(
            "nn.conv2d_backward_weight",
            lambda g, x, n=groups, a=attrs: relay.nn.conv2d_backward_weight(g, x, groups=n, kernel_size=3, **a),
            (floats(*shape), data), expected, 1e-4,
        ))  # fmt: skip
    last = (floats(2, 5, 6, 3), floats(2, 5, 6, 4))
    cases.append(Case(
        "nn.conv2d_backward_weight",
        lambda g, x: relay.nn.conv2d_backward_weight(
            g, x, kernel_size=1, grad_layout="NHWC", data_layout="NHWC", kernel_layout="HWIO"
        ),
        last, lambda g, x: np.einsum("nhwo,nhwi->io", g, x)[None, None], 1e-4,
    ))  # fmt: skip
    return cases


def gradient_cases() -> list[Case]:
    return pool_cases() + weight_cases()
