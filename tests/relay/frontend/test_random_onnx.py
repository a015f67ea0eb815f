"""Random ONNX graphs beside ONNX Runtime; `onnx_agreement` runs as many as one likes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from .onnx_agreement import Checker, check
from .random_onnx import ALL_DRAWS, random_model


@pytest.mark.parametrize("first", range(0, 20, 5))
def test_random_graphs_agree_with_onnxruntime(first: int) -> None:
    failures = [(o.seed, o.failure) for o in map(check, range(first, first + 5)) if o.failure]
    assert not failures


def test_graphs_are_valid_and_repeatable() -> None:
    for seed in range(30):
        model, inputs = random_model(seed)
        onnx.checker.check_model(model, full_check=True)
        again, same = random_model(seed)
        assert model.SerializeToString() == again.SerializeToString()
        assert all(np.array_equal(inputs[name], same[name]) for name in inputs)


def test_graphs_have_all_kinds_of_nodes() -> None:
    seen = {n.op_type for seed in range(400) for n in random_model(seed)[0].graph.node}
    assert len(seen) >= len(set(ALL_DRAWS)) + 40


def test_a_wrong_result_is_told_from_rounding() -> None:
    model, inputs = random_model(3)
    checker = Checker(model, inputs)
    assert checker.expected is not None
    assert not checker.difference(checker.expected)
    wrong = [np.where(e == e.flat[0], e + np.ones((), e.dtype), e) for e in checker.expected]
    assert "result 0" in checker.difference(wrong)
