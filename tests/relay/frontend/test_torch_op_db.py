"""A few samples of some operators of PyTorch's database; the whole runs by command."""

from __future__ import annotations

from pathlib import Path

import pytest

from .torch_op_db import Outcome, examine, operators, write_table

OPERATORS = {op.formatted_name: op for op in operators()}
CHOSEN = (
    "sort", "topk", "kthvalue", "median", "mode", "cummax", "searchsorted", "histc", "isin",
    "lgamma", "digamma", "erfinv", "i0", "igamma", "special_zeta", "special_bessel_j1", "atan2",
    "special_ndtri", "special_hermite_polynomial_h", "frexp", "nextafter", "copysign", "fmax",
    "nn_functional_max_unpool2d", "nn_functional_adaptive_max_pool2d", "nn_functional_avg_pool3d",
    "nn_functional_grid_sample", "_upsample_bilinear2d_aa", "cov",
    "scatter_reduce_amax", "index_reduce_mean", "masked_scatter", "as_strided", "cdist", "put",
    "matrix_exp", "nn_functional_cross_entropy", "nn_functional_huber_loss", "logcumsumexp",
    "nonzero", "nonzero_static", "masked_select", "repeat_interleave", "as_strided_scatter",
    "nn_functional_embedding_bag", "_segment_reduce_lengths", "nn_functional_dropout", "tensordot",
    "fft_fftn", "fft_hfft", "fft_ihfft2", "fft_irfftn", "stft", "cfloat",
    "unique", "unique_consecutive", "linalg_lu_solve", "linalg_pinv", "linalg_svd",
)  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_samples_agree_with_torch(name: str) -> None:
    outcome = examine(OPERATORS[name], limit=2)
    assert outcome.status == "passes", outcome.reason


def test_failures_are_told() -> None:
    outcome = examine(OPERATORS["special_airy_ai"], limit=1)
    assert outcome.status == "fails" and "airy_ai" in outcome.reason


def test_table_lists_each_operator(tmp_path: Path) -> None:
    page = tmp_path / "table.md"
    write_table([Outcome("a", "passes", 2, 2), Outcome("b", "fails", 2, 1, "x | y")], page)
    text = page.read_text()
    assert "50.0 %" in text and "| a | 2 | 2 |" in text and "x \\| y" in text
