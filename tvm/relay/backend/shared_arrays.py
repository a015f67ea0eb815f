"""Arrays of the same bytes, which a library stores once."""

from __future__ import annotations

import numpy as np

from tvm.runtime.ndarray import NDArray

_SAMPLES = 64


class SharedArrays:
    """Numbers arrays; those of one shape, type and content have the same number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by identity
        self._alike: dict[object, list[tuple[int, np.ndarray]]] = {}
        self._kept: list[NDArray] = []  # so that identities stay valid

    def of(self, array: NDArray) -> int:
        """The number of an array."""
        if id(array) not in self._numbers:
            self._kept.append(array)
            self._numbers[id(array)] = self._number(array)
        return self._numbers[id(array)]

    def _number(self, array: NDArray) -> int:
        own = len(self._numbers)
        if array.device.device_type != 1:  # reading it back costs more than it saves
            return own
        data = np.ascontiguousarray(array.elements()).reshape(-1).view("uint8")
        # few bytes tell most arrays apart, so that few are read whole
        sample = data[:: max(data.size // _SAMPLES, 1)][:_SAMPLES].tobytes()
        alike = self._alike.setdefault((tuple(array.shape), str(array.dtype), sample), [])
        for number, other in alike:
            if np.array_equal(data, other):
                return number
        alike.append((own, data))
        return own
