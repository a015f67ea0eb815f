"""Linear algebra of batches of matrices."""

from ..argument_checks import guarded
from .factor import cholesky, lu_factor, pivots_to_permutation, solve_triangular
from .orthogonal import householder_product, householder_qr
from .spectrum import eigh, svd

__all__ = [
    "cholesky", "eigh", "householder_product", "householder_qr", "lu_factor",
    "pivots_to_permutation", "solve_triangular", "svd",
]  # fmt: skip

globals().update(guarded(__name__, globals()))
