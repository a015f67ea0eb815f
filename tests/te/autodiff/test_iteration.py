import random
from typing import Any

import numpy as np
import pytest

from tvm import te
from tvm.tir.interp import interpret


def random_reader(seed: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A sum of elements of A at random positions, its input and a head."""
    rng = random.Random(seed)
    extents = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
    depth = [rng.randint(1, 4) for _ in range(rng.randint(0, 2))]
    axes = [te.reduce_axis((0, d), name=f"k{i}") for i, d in enumerate(depth)]
    rank = rng.randint(1, 2)
    coefficients = [
        [rng.choice([0, 0, 1, 1, -1, 2, -2, 3]) for _ in (*extents, *depth)] for _ in range(rank)
    ]
    divisions = [rng.choice(["", "", "//", "%"]) for _ in range(rank)]
    divisors = [rng.randint(2, 3) for _ in range(rank)]
    lows = [
        sum(min(0, c * (n - 1)) for c, n in zip(row, (*extents, *depth), strict=True))
        for row in coefficients
    ]
    highs = [
        sum(max(0, c * (n - 1)) for c, n in zip(row, (*extents, *depth), strict=True))
        for row in coefficients
    ]
    shape = [high - low + 1 for low, high in zip(lows, highs, strict=True)]
    a = te.placeholder(shape, "float64", "A")

    def body(*indices: Any) -> Any:
        at = []
        for d in range(rank):
            index = -lows[d]
            for c, v in zip(coefficients[d], (*indices, *[k.var for k in axes]), strict=True):
                index = index + v * c
            if divisions[d] == "//":
                index = index // divisors[d]
            elif divisions[d] == "%":
                index = index % divisors[d]
            at.append(index)
        value = a(*at) * a(*at)
        return te.sum(value, axis=axes) if axes else value

    out = te.compute(extents, lambda *i: body(*i), name="out")
    return a, out, te.placeholder(extents, "float64", "head")


def values_of(inputs: list[te.Tensor], output: te.Tensor, data: list[np.ndarray]) -> np.ndarray:
    func = te.schedule.lower_schedule(te.create_schedule(output.op), [*inputs, output])
    result = np.zeros([int(d) for d in output.shape])
    interpret(func, *data, result)
    return result


@pytest.mark.parametrize("seed", [*range(60), 122, 199, 350, 608])
def test_random_readers(seed: int) -> None:
    a, out, head = random_reader(seed)
    (gradient,) = te.gradient(out, [a], head)
    source = np.random.default_rng(seed)
    x, weights = [source.uniform(0.5, 1, [int(d) for d in t.shape]) for t in (a, head)]
    found = values_of([a, head], gradient, [x, weights])
    # out is a sum of squares: its directional derivative is exact up to the square of the step
    for _ in range(3):
        direction = source.uniform(-1, 1, x.shape)
        step = 1e-6
        ends = [(values_of([a], out, [x + s * direction]) * weights).sum() for s in (step, -step)]
        np.testing.assert_allclose(
            (found * direction).sum(), (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-7
        )
