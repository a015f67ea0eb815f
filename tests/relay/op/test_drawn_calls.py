"""Every family of operators on drawn shapes, dtypes, axes and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tvm
from tests.executors import run_library
from tvm import relay

from .drawing import Array, Draw, Drawn
from .drawn_nn import NN
from .drawn_qnn import QNN
from .drawn_searching import SEARCHING
from .drawn_shaping import SHAPING
from .drawn_special import SPECIAL
from .drawn_vision import VISION

AREAS = {
    "shaping": SHAPING, "searching": SEARCHING, "nn": NN, "vision": VISION, "qnn": QNN,
    "special": SPECIAL,
}  # fmt: skip
FAMILIES: dict[str, Callable[[Draw], Drawn]] = {
    f"{area}.{family.__name__}": family for area, own in AREAS.items() for family in own
}
# the argument whose first extent counts the axes that its columns name
NAMED_AXES = {
    "shaping.gathers_of_slices": 1, "shaping.scatters_of_slices": 1,
    "special.random_numbers": 0,  # a key has ten words
}  # fmt: skip
few = settings(
    derandomize=True, database=None, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def _params(arrays: Sequence[Array], is_open: bool, named: int | None = None) -> list[relay.Var]:
    def shape(i: int, array: Array) -> tuple[Any, ...]:
        known = array.shape[: i == named] if is_open else array.shape
        return (*known, *[relay.Any()] * (array.ndim - len(known)))

    return [relay.var(f"x{i}", shape=shape(i, a), dtype=str(a.dtype)) for i, a in enumerate(arrays)]


def _run(build: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
    params = _params(arrays, False)
    mod = tvm.IRModule.from_expr(relay.Function(params, build(*params)))
    return run_library(relay.build(mod, "llvm"), **{f"x{i}": a for i, a in enumerate(arrays)})


def _run_open(build: Callable[..., Any], arrays: Sequence[Array], named: int | None) -> list[Array]:
    params = _params(arrays, True, named)
    mod = tvm.IRModule.from_expr(relay.Function(params, build(*params)))
    # what is asked here is how extents are found: the kernels' speed does not matter
    target = "llvm -opt-level=0"
    run = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target=target).evaluate()
    found = run(*[tvm.nd.array(a) for a in arrays])
    return [found.numpy()] if isinstance(found, tvm.nd.NDArray) else [f.numpy() for f in found]


def _assert_equal(found: list[Array], expected: Any) -> None:
    wanted = expected if isinstance(expected, list) else [expected]
    assert [f.shape for f in found] == [w.shape for w in wanted]
    for have, want in zip(found, wanted, strict=True):
        assert have.dtype == want.dtype
        if have.dtype.kind != "f":
            np.testing.assert_array_equal(have, want)
            continue
        tolerance = 1e-2 if have.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=2 * tolerance)


@pytest.mark.parametrize("name", FAMILIES)
@settings(few, max_examples=3)
@given(data=st.data())
def test_drawn_calls_agree_with_numpy(name: str, data: st.DataObject) -> None:
    build, arrays, expected = FAMILIES[name](Draw(data.draw))
    _assert_equal(_run(build, arrays), expected)


@pytest.mark.parametrize("name", FAMILIES)
@settings(few, max_examples=1)
@given(data=st.data())
def test_drawn_calls_of_open_extents_agree_with_numpy(name: str, data: st.DataObject) -> None:
    build, arrays, expected = FAMILIES[name](Draw(data.draw))
    _assert_equal(_run_open(build, arrays, NAMED_AXES.get(name)), expected)
