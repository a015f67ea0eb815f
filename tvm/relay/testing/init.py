"""Weights for networks that are built for tests and benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.ir.module import IRModule
from tvm.ir.type import TensorType
from tvm.relay.function import Function
from tvm.relay.transform import InferType
from tvm.runtime.ndarray import NDArray

Array = np.ndarray


class Initializer:
    """Fills an array by what its name says it is."""

    def __init__(self, seed: int = 0, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self.rng = np.random.default_rng(seed)

    def __call__(self, desc: str, arr: Array) -> None:
        for suffix, fill in (
            ("weight", self._init_weight),
            ("bias", self._init_zero),
            ("gamma", self._init_one),
            ("beta", self._init_zero),
            ("mean", self._init_zero),
            ("var", self._init_one),
        ):
            if desc.endswith(suffix):
                fill(desc, arr)
                return
        self._init_default(desc, arr)

    def _init_weight(self, name: str, arr: Array) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no rule for weights such as {name}")

    def _init_zero(self, _: str, arr: Array) -> None:
        arr[...] = 0

    def _init_one(self, _: str, arr: Array) -> None:
        arr[...] = 1

    def _init_default(self, name: str, _: Array) -> None:
        raise ValueError(
            f"no rule initialises {name}: names end in weight, bias, gamma, beta, mean or var"
        )


class Xavier(Initializer):
    """Weights whose variance keeps the scale of signals, after Glorot and Bengio."""

    def __init__(
        self,
        rnd_type: str = "uniform",
        factor_type: str = "avg",
        magnitude: float = 3,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: Array) -> None:
        if arr.ndim < 2:
            raise ValueError(
                f"Xavier requires weights of rank 2 or more, got {name} of {arr.shape}"
            )
        area = float(np.prod(arr.shape[2:]))
        fan_in, fan_out = arr.shape[1] * area, arr.shape[0] * area
        if "depthwise" in name:
            # a depthwise layer sees one channel at a time
            fan_in = fan_out = 3.0 * 3.0
        factors = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}
        if self.factor_type not in factors:
            raise ValueError(
                f"factor_type must be one of {list(factors)}, got {self.factor_type!r}"
            )
        scale = np.sqrt(self.magnitude / factors[self.factor_type])
        if self.rnd_type != "uniform":
            raise ValueError(f'rnd_type must be "uniform", got {self.rnd_type!r}')
        arr[...] = self.rng.uniform(-scale, scale, arr.shape)


class Constant(Initializer):
    """Weights of one small value."""

    def _init_weight(self, name: str, arr: Array) -> None:
        arr[...] = 1.0 / float(np.prod(arr.shape[1:]))


def create_workload(
    net: Function, initializer: Initializer | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, NDArray]]:
    """A module with the network, and values for all parameters but `data`."""
    mod = InferType()(IRModule.from_expr(net))
    initializer = initializer or Xavier(seed=seed)
    params = {}
    for param in mod["main"].params:
        ty = param.checked_type
        if param.name_hint == "data" or not isinstance(ty, TensorType):
            continue
        values = np.zeros(ty.concrete_shape, str(ty.dtype))
        initializer(param.name_hint, values)
        params[param.name_hint] = nd.array(values)
    return mod, params
