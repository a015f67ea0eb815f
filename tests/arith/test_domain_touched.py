"""The boxes of buffers that statements touch."""

from __future__ import annotations

import tvm
from tvm.script import tir as T


@T.prim_func
def shifted(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")) -> None:
    for i, j in T.grid(4, 8):
        A[i, j] = B[i + 2, j + 1] + A[i + 1, j]


def _ranges(buffer: int, loads: bool, stores: bool) -> list[tuple[int, int]]:
    var = shifted.params[buffer]
    touched = tvm.arith.domain_touched.domain_touched(
        shifted.body, shifted.buffer_map[var], loads, stores
    )
    return [(int(part.min), int(part.extent)) for part in touched]


def test_reads_and_writes_are_distinguished() -> None:
    assert _ranges(0, loads=False, stores=True) == [(0, 4), (0, 8)]
    assert _ranges(0, loads=True, stores=False) == [(1, 4), (0, 8)]
    assert _ranges(0, loads=True, stores=True) == [(0, 5), (0, 8)]


def test_what_is_not_written_has_no_ranges() -> None:
    assert _ranges(1, loads=True, stores=False) == [(2, 4), (1, 8)]
    assert _ranges(1, loads=False, stores=True) == []


def test_it_is_a_global_function() -> None:
    var = shifted.params[0]
    found = tvm.arith._ffi_api.DomainTouched(shifted.body, shifted.buffer_map[var], False, True)
    assert len(found) == 2
