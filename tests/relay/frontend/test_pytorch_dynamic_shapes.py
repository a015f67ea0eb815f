"""Operators of PyTorch on tensors of which some sizes are known at run time only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tvm import relay, tir
from tvm.error import OpNotImplemented, TVMError
from tvm.relay.frontend.pytorch import from_exported_program
from tvm.relay.frontend.pytorch.symbolic_sizes import SymbolicSizes, traced_for_sizes

F = torch.nn.functional
ROWS = (6,)
IMAGES = (3, 6, 6)
ROW = torch.arange(6.0)[None]
# of operands whose first axis is open: the sizes of the others, and what becomes of them
OPERATORS: dict[str, tuple[list[tuple[int, ...]], Callable[..., Any]]] = {
    "softshrink": ([ROWS], lambda x: F.softshrink(x, 0.3)),
    "hardshrink": ([ROWS], lambda x: F.hardshrink(x, 0.3)),
    "isclose": ([ROWS, ROWS], lambda x, y: torch.isclose(x, y, rtol=0.7)),
    "logaddexp": ([ROWS, ROWS], torch.logaddexp),
    "cosine_similarity": ([ROWS, ROWS], F.cosine_similarity),
    "diff": ([ROWS], lambda x: torch.diff(x, 2)),
    "diff of the open axis": ([ROWS], lambda x: torch.diff(x, dim=0)),
    "diff of joined tensors": ([ROWS, ROWS], lambda x, y: torch.diff(x, prepend=y)),
    "std_mean": ([ROWS], lambda x: torch.std_mean(x, 1)),
    "tensordot": ([(4, 5)], lambda x: torch.tensordot(x, torch.ones(4, 5, 3), 2)),
    "tensordot of the open axis": ([ROWS, (4,)], lambda x, y: torch.tensordot(x, y, ([0], [0]))),
    "im2col": ([IMAGES], lambda x: F.unfold(x, (3, 3), padding=1, stride=2)),
    "diag": ([()], torch.diag),
    "sum_to_size": ([ROWS], lambda x: x.sum_to_size(1, 6)),
    "alpha_dropout": ([ROWS], lambda x: F.alpha_dropout(x, 0.5, False)),
    "fft": ([ROWS], lambda x: torch.fft.fft(x, 8).abs()),
    "irfft": ([ROWS], lambda x: torch.fft.irfft(torch.fft.rfft(x) * 2)),
    "hfft": ([ROWS], torch.fft.hfft),
    "irfft2": ([(4, 6)], lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho"))),
    "fftshift": ([ROWS], lambda x: torch.fft.fftshift(x, dim=1)),
}


class Model(torch.nn.Module):
    def __init__(self, compute: Callable[..., Any]) -> None:
        super().__init__()
        self.compute = compute

    def forward(self, *operands: Any) -> Any:
        return self.compute(*operands)


def _traced(model: Model, examples: tuple[Any, ...]) -> Any:
    script = torch.jit.trace(model, examples, check_trace=False)
    shapes = [(f"x{i}", (relay.Any(), *x.shape[1:])) for i, x in enumerate(examples)]
    return relay.frontend.from_pytorch(script, shapes)


def _exported(model: Model, examples: tuple[Any, ...]) -> Any:
    batch = torch.export.Dim("batch", min=3, max=64)
    dims = (tuple([{0: batch} for _ in examples]),)
    return from_exported_program(torch.export.export(model, examples, dynamic_shapes=dims))


def _as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


@pytest.mark.parametrize("imported", [_traced, _exported])
@pytest.mark.parametrize("name", OPERATORS)
@torch.no_grad()
def test_open_batches_agree_with_torch(name: str, imported: Callable[..., Any]) -> None:
    _check(imported, *OPERATORS[name])


def _check(
    imported: Callable[..., Any], shapes: list[tuple[int, ...]], compute: Callable[..., Any]
) -> None:
    torch.manual_seed(0)
    mod, params = imported(Model(compute), tuple([torch.randn(7, *shape) for shape in shapes]))
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    for batch in (4, 5):
        operands = [torch.randn(batch, *shape) for shape in shapes]
        found = call(*[x.numpy() for x in operands], **params)
        found = [found] if hasattr(found, "numpy") else list(found)
        for actual, expected in zip(found, _as_list(compute(*operands)), strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-4, atol=1e-4)


# torch.export itself takes their batch for a constant, or writes them with index_put
TRACED: dict[str, tuple[list[tuple[int, ...]], Callable[..., Any]]] = {
    "index_fill": ([ROWS], lambda x: x.index_fill(1, torch.tensor([0, 2]), 3.0)),
    "take_along_dim": ([ROWS], lambda x: torch.take_along_dim(x, torch.argsort(x, 1), 1)),
    "take_along_dim of a row": ([ROWS], lambda x: torch.take_along_dim(ROW, x.argsort(1), 1)),
    "cov": ([ROWS], torch.cov),
    "cov of the columns": ([ROWS], lambda x: torch.cov(x.T, correction=0)),
    "corrcoef": ([ROWS], torch.corrcoef),
}


@pytest.mark.parametrize("name", TRACED)
@torch.no_grad()
def test_traced_open_batches_agree_with_torch(name: str) -> None:
    _check(_traced, *TRACED[name])


@pytest.mark.parametrize("imported", [_traced, _exported])
def test_operators_that_need_sizes_say_so(imported: Callable[..., Any]) -> None:
    model = Model(lambda x: torch.diagonal_scatter(x, x[0]))
    with pytest.raises(TVMError, match="diagonal_scatter requires sizes known at import"):
        imported(model, (torch.randn(7, 6),))


def test_graphs_for_some_sizes_alone_are_refused() -> None:
    def trace(mode: Any, sizes: SymbolicSizes) -> Any:
        (extent,) = sizes.of([tir.SizeVar("n", "int64")])
        return "even" if extent % 2 == 0 else "odd"

    with pytest.raises(OpNotImplemented, match="in simpler operators if"):
        traced_for_sizes(trace)


@pytest.mark.parametrize(
    "shapes", [((1, 5, 4), (3, 2, 4)), ((3, 5, 1), (3, 2, 4)), ((3, 5, 4), (1, 2, 1))]
)
@torch.no_grad()
def test_open_sizes_that_turn_out_to_be_one_are_broadcast(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    model = Model(lambda x, index: torch.take_along_dim(x, index, 1))
    x, index = torch.randn(shapes[0]), torch.randint(0, 5, shapes[1])
    open_sizes = [
        ("x", ((relay.Any(), 5, relay.Any()), "float32")),
        ("i", ((relay.Any(), 2, relay.Any()), "int64")),
    ]
    mod, params = relay.frontend.from_pytorch(torch.jit.trace(model, (x, index)), open_sizes)
    found = relay.create_executor("vm", mod=mod, target="llvm").evaluate()(
        x.numpy(), index.numpy(), **params
    )
    np.testing.assert_array_equal(found.numpy(), model(x, index).numpy())


def _check_sizes(
    model: torch.nn.Module, shape: tuple[Any, ...], example: torch.Tensor, *others: torch.Tensor
) -> None:
    """Import once, and compare with torch for inputs of several shapes."""
    script = torch.jit.trace(model.eval(), example, check_trace=False)
    mod, params = relay.frontend.from_pytorch(script, [("x", shape)])
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    for x in (example, *others):
        found = call(x.numpy(), **params)
        for actual, expected in zip(_flat(found), _flat(model(x)), strict=True):
            np.testing.assert_allclose(actual.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)


def _flat(results: Any) -> list[Any]:
    if hasattr(results, "numpy"):
        return [results]
    return [tensor for result in results for tensor in _flat(result)]


@pytest.mark.parametrize("options", [{}, {"batch_first": True, "proj_size": 3}])
@torch.no_grad()
def test_lstm_over_as_many_steps_as_the_run_has(options: dict[str, Any]) -> None:
    lstm = torch.nn.LSTM(4, 6, 2, bidirectional=True, **options)
    shape = (relay.Any(), relay.Any(), 4)
    _check_sizes(lstm, shape, torch.randn(5, 2, 4), torch.randn(8, 3, 4), torch.randn(1, 1, 4))


@torch.no_grad()
def test_gru_over_as_many_steps_as_the_run_has() -> None:
    gru = torch.nn.GRU(4, 6, bidirectional=True)
    _check_sizes(gru, (relay.Any(), 2, 4), torch.randn(5, 2, 4), torch.randn(9, 2, 4))


@pytest.mark.parametrize(
    ("mode", "align"),
    [("nearest", None), ("nearest-exact", None), ("bilinear", False), ("bilinear", True),
     ("bicubic", False)],
)  # fmt: skip
@torch.no_grad()
def test_images_of_open_extents_are_resized_by_factors(mode: str, align: bool | None) -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=(1.7, 0.6), mode=mode, align_corners=align)

    images = [torch.randn(1, 2, *extents) for extents in ((5, 6), (4, 3), (9, 11))]
    _check_sizes(Model(resized), (1, 2, relay.Any(), relay.Any()), *images)


def test_antialiased_resizing_needs_the_extents_of_images() -> None:
    model = Model(lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True))
    script = torch.jit.trace(model, torch.randn(1, 2, 8, 8))
    with pytest.raises(TVMError, match="antialiased resizing requires the extents of images"):
        relay.frontend.from_pytorch(script, [("x", (1, 2, relay.Any(), 8))])
