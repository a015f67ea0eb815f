"""A node of another framework, read from a tensor and called with tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tvm.error import TVMError
from tvm.runtime.ndarray import NDArray

Array: TypeAlias = "np.ndarray[Any, Any]"

_MOST_NODES = 1024  # that a process keeps; others are read again


@dataclass(frozen=True)
class ForeignNode:
    """What a node is called, how many tensors it takes, and how it computes others from them."""

    name: str
    inputs: int
    run: Callable[[Sequence[Array]], Sequence[Array]]


def described(text: bytes) -> tuple[Array, Array]:
    """The first two arguments of a call: a key that tells the node from others, and its text."""
    key = hashlib.blake2b(text, digest_size=16).digest()
    return np.frombuffer(key, "uint8"), np.frombuffer(text, "uint8")


class Foreign:
    """The nodes of one framework.

    Parameters
    ----------
    function : the name under which `compute` is registered; `shapes` has the suffix ``.shapes``.
    read : makes a node of what describes it.
    """

    def __init__(self, function: str, read: Callable[[bytes], ForeignNode]) -> None:
        self.function = function
        self.read = read
        self._nodes: dict[bytes, ForeignNode] = {}

    def compute(self, key: NDArray, text: NDArray, *arrays: NDArray) -> None:
        """Fill the results, which come after the inputs."""
        node = self._node(key, text)
        found = self._results(node, arrays)
        for array, result in zip(arrays[node.inputs :], found, strict=True):
            if tuple(array.shape) != result.shape:
                raise TVMError(
                    f"{node.name} requires a result of the shape that it had at import, "
                    f"{tuple(array.shape)}, got {result.shape}",
                    hint="its shape depends on data",
                )
            array.copyfrom(np.ascontiguousarray(result))

    def shapes(self, key: NDArray, text: NDArray, *arrays: NDArray) -> None:
        """Fill in the shapes of the results for the inputs that are given."""
        node = self._node(key, text)
        found = self._results(node, arrays)
        for array, result in zip(arrays[node.inputs :], found, strict=True):
            array.copyfrom(np.array(result.shape, "int64"))

    @staticmethod
    def _results(node: ForeignNode, arrays: Sequence[NDArray]) -> Sequence[Array]:
        return node.run([array.numpy() for array in arrays[: node.inputs]])

    def _node(self, key: NDArray, text: NDArray) -> ForeignNode:
        name = key.numpy().tobytes()
        node = self._nodes.get(name)
        if node is None:
            if len(self._nodes) >= _MOST_NODES:
                self._nodes.clear()
            node = self._nodes[name] = self.read(text.numpy().tobytes())
        return node
