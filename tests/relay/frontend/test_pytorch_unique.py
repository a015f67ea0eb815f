"""Distinct elements, in the virtual machine."""

from __future__ import annotations

import torch

from .test_pytorch_aliasing import check_in_vm

torch.manual_seed(0)
NUMBERS = torch.randint(0, 4, (3, 5)).float()
ROWS = torch.randint(0, 2, (6, 2, 2)).float()


def test_distinct_elements_where_they_are_and_how_many() -> None:
    check_in_vm(lambda x: torch.unique(x, return_inverse=True, return_counts=True), NUMBERS)
    check_in_vm(lambda x: torch.unique(x > 1), NUMBERS)


def test_distinct_slices() -> None:
    check_in_vm(lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True), ROWS)


def test_equal_neighbours_become_one() -> None:
    check_in_vm(lambda x: torch.unique_consecutive(x, return_inverse=True), NUMBERS)
    check_in_vm(lambda x: torch.unique_consecutive(x, return_counts=True, dim=1), ROWS)


def test_numbers_are_counted() -> None:
    counted = NUMBERS.flatten().long()
    check_in_vm(lambda x: torch.bincount(x), counted)
    check_in_vm(lambda x: torch.bincount(x, minlength=9), counted)
    check_in_vm(lambda x: torch.bincount(x, weights=NUMBERS.flatten()), counted)
