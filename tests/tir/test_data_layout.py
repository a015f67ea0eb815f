from __future__ import annotations

import itertools

import numpy as np
import pytest

from tvm import tir
from tvm.tir.interp import Interpreter


def test_parts_of_a_layout() -> None:
    found = tir.layout("NCHW16c")
    assert len(found) == 5 and found[4] == "c" and "C" in found and "d" not in found
    assert found.index_of("C") == 1 and found.index_of("c") == 4 and found.index_of("k") == -1
    assert found.factor_of("C") == found.factor_of("c") == 16 and found.factor_of("N") == -1
    assert str(found) == "NCHW16c" and found == tir.layout("NCHW16c")


@pytest.mark.parametrize("text", ["NCHWc", "NN", "NHW16c", "N16C", "16", "N-C"])
def test_other_strings_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="layout requires"):
        tir.layout(text)


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [("NCHW", "NCHW4c", (1, 8, 2, 3)), ("NCHW4c", "NHWC", (1, 2, 2, 3, 4)),
     ("OIHW", "OIHW2i4o", (8, 4, 1, 2)), ("NCHW", "NHWC", (2, 3, 4, 5))],
)  # fmt: skip
def test_maps_are_inverse_and_stay_in_the_shape(source: str, target: str, shape: tuple) -> None:
    mapping = tir.bijective_layout(source, target)
    machine = Interpreter()
    out_shape = [int(machine.visit(dim)) for dim in mapping.forward_shape(shape)]
    assert np.prod(out_shape) == np.prod(shape)
    assert [int(machine.visit(d)) for d in mapping.backward_shape(out_shape)] == list(shape)
    seen = set()
    for index in itertools.product(*[range(dim) for dim in shape]):
        there = [int(machine.visit(i)) for i in mapping.forward_index(index)]
        assert all(0 <= i < dim for i, dim in zip(there, out_shape, strict=True))
        assert [int(machine.visit(i)) for i in mapping.backward_index(there)] == list(index)
        seen.add(tuple(there))
    assert len(seen) == np.prod(shape)


@pytest.mark.parametrize("target", ["NC", "NCDHW", "", "__undef__"])
def test_layouts_of_other_axes_have_no_map(target: str) -> None:
    assert tir.bijective_layout("NCHW", target) is None
    assert tir.bijective_layout(target, "NCHW") is None
    with pytest.raises(ValueError, match="same axes"):
        tir.BijectiveLayout("NCHW", target)


@pytest.mark.parametrize("dtype", ["float32", "uint32", "handle", None])
def test_axes_are_signed_integers(dtype: str | None) -> None:
    with pytest.raises(TypeError, match=f"layout requires a signed integer dtype, got {dtype}"):
        tir.layout("NCHW", dtype=dtype)
