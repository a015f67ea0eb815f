"""Layouts of arrays on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tvm.topi.layout import transform_array


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_blocks_of_narrow_elements_keep_their_order(dtype: str) -> None:
    array = np.arange(8 * 12).reshape(8, 12).astype(dtype)
    expected = array.reshape(2, 4, 3, 4).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(transform_array(array, "NC", "NC4n4c"), expected)
    turned = np.asfortranarray(array)
    np.testing.assert_array_equal(transform_array(turned, "NC", "NC4n4c"), expected)
