from __future__ import annotations

import os
import pickle
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import cc
from tvm.ir import pickles
from tvm.ir.structural import structural_equal
from tvm.support.files import write_text


class Calls:
    """A pickle that calls a function when it is read."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.made_by = function, args

    def __reduce__(self) -> Any:
        return self.made_by


def test_nodes_arrays_and_plain_values_are_read() -> None:
    x = relay.var("x", shape=(2, 3))
    func = relay.Function([x], relay.nn.relu(x + relay.const(np.ones((2, 3), "float32"))))
    plain = {"a": [1, 2.5, "x", b"y", None, True], "b": (slice(1, 2), {3}, complex(1, 2))}
    back_func, back_plain, array = pickles.loads(
        pickle.dumps((func, plain, np.arange(6).reshape(2, 3)), protocol=5)
    )
    assert structural_equal(back_func, func) and back_plain == plain
    assert (array == np.arange(6).reshape(2, 3)).all()


@pytest.mark.parametrize(
    "value",
    [
        Calls(os.system, "true"),
        Calls(eval, "1"),
        Calls(write_text, "/dev/null", "x"),
        Calls(cc.create_shared, "/dev/null", []),
        Calls(tvm.runtime.load_module, "x.so"),
        Calls(partial, print),
        SimpleNamespace(),
    ],
)
def test_what_could_run_code_is_rejected(value: object) -> None:
    for protocol in (0, 2, 5):
        with pytest.raises(pickle.UnpicklingError, match="may not name"):
            pickles.loads(pickle.dumps([1, value], protocol=protocol))
