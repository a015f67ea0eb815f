"""Operators of collective communication."""

from .ccl import allgather, allreduce, broadcast_from_worker0, scatter_from_worker0

__all__ = ["allgather", "allreduce", "broadcast_from_worker0", "scatter_from_worker0"]
