"""torch.linalg through the importer."""

from __future__ import annotations

import pytest
import torch

from .test_pytorch import check

torch.manual_seed(0)
SQUARE = torch.randn(2, 4, 4)
POSITIVE = SQUARE @ SQUARE.mT + torch.eye(4)
TALL = torch.randn(3, 6, 4)
LINEAR = torch.linalg

CASES = {
    "solve": lambda a, b: (LINEAR.solve(a, b), LINEAR.solve(a, b[0]), LINEAR.solve(a, b[0, :, 0])),
    "solve from the right": lambda a, b: LINEAR.solve(a, b.mT, left=False),
    "inverse": lambda a, b: (LINEAR.inv(a), LINEAR.matrix_power(a, -2)),
    "determinant": lambda a, b: (LINEAR.det(a), *LINEAR.slogdet(a)),
    "lu": lambda a, b: (*LINEAR.lu(a), LINEAR.lu_solve(*LINEAR.lu_factor(a), b)),
    "cholesky": lambda a, b: (
        LINEAR.cholesky(a), LINEAR.cholesky(a, upper=True), torch.cholesky_inverse(a),
        torch.cholesky_solve(b, LINEAR.cholesky(a)),
    ),
    "eigenvalues": lambda a, b: (LINEAR.eigvalsh(a), LINEAR.eigh(a)[1].abs()),
    "triangular": lambda a, b: LINEAR.solve_triangular(a, b.mT, upper=True, left=False),
    "norms": lambda a, b: (
        LINEAR.matrix_norm(a, "nuc"), LINEAR.cond(a), LINEAR.matrix_rank(a), LINEAR.matrix_norm(a, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_square_matrices(name: str) -> None:
    check(CASES[name], POSITIVE, torch.randn(2, 4, 3), relative=1e-3)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_orthogonal_factors(mode: str) -> None:
    for data in (TALL, TALL.mT.contiguous()):
        check(lambda x: LINEAR.qr(x, mode)[mode == "r" :], data)


@pytest.mark.parametrize("full", [False, True])
def test_singular_vectors(full: bool) -> None:
    def factors(x):
        left, values, right = LINEAR.svd(x, full)
        count = values.shape[-1]
        product = (left[..., :count] * values[..., None, :]) @ right[..., :count, :]
        return values, product, left.mT @ left, right @ right.mT

    singular = TALL * torch.tensor([1.0, 0.0, 1.0, 0.0])
    for data in (TALL, TALL.mT.contiguous(), singular):
        check(factors, data)


def test_least_squares_and_pseudo_inverses() -> None:
    check(lambda a: (LINEAR.pinv(a), LINEAR.lstsq(a, a[..., :2] + 1).solution), TALL)
