"""Calls of torch's operators as texts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from tvm.error import TVMError
from tvm.runtime.foreign.torch_call import plain_argument, read_torch_call


def text_of(operator: str, overload: str, arguments: list[Any], inputs: int) -> bytes:
    call = {"operator": operator, "overload": overload, "arguments": arguments, "inputs": inputs}
    return json.dumps(call).encode()


def test_arguments_come_back_from_their_text() -> None:
    values = [None, 3, 0.5, True, "same", 1j, torch.float16, torch.strided, torch.device("cpu")]
    plain = json.loads(json.dumps([plain_argument(value) for value in values]))
    assert plain[:5] == values[:5]
    empty = ["aten::zeros", "default", [[2, 3], *[plain_argument(v) for v in values[6:]], None], 0]
    (made,) = read_torch_call(text_of(*empty)).run([])
    assert made.dtype == np.float16 and made.shape == (2, 3)
    with pytest.raises(TypeError, match="argument of type Generator"):
        plain_argument(torch.Generator())


def test_narrow_floats_go_through_their_bits() -> None:
    import ml_dtypes

    node = read_torch_call(text_of("aten::neg", "default", [{"tensor": [0, "bfloat16"]}], 1))
    (made,) = node.run([np.array([1, -2.5], ml_dtypes.bfloat16)])
    assert made.dtype == ml_dtypes.bfloat16 and made.tolist() == [-1, 2.5]


def test_operators_of_packages_that_are_not_imported_are_told() -> None:
    with pytest.raises(TVMError, match="leaves mine::frob to PyTorch, which has no such operator"):
        read_torch_call(text_of("mine::frob", "default", [], 0))
