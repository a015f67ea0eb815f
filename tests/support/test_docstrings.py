"""Docstrings that take descriptions of parameters from others."""

from __future__ import annotations

from tvm import relay
from tvm.support.docstrings import described_by, returns


def dense(data: int, weight: int, bias: int = 0) -> int:
    """A dense layer.

    Parameters
    ----------
    data, weight : te.Tensor
        The operands,
        in rows.
    bias : te.Tensor
        What is added.

    Returns
    -------
    te.Tensor
        The sums.
    """
    return data * weight + bias


def test_missing_parameters_come_in_the_order_of_the_signature() -> None:
    @described_by(dense)
    def dense_pack(data: int, columns: int, bias: int) -> None:
        """A packed layer.

        Parameters
        ----------
        columns : int
            A panel's width.
        """

    assert dense_pack.__doc__ == (
        "A packed layer.\n\nParameters\n----------\n"
        "data : te.Tensor\n    The operands,\n    in rows.\n"
        "columns : int\n    A panel's width.\n"
        "bias : te.Tensor\n    What is added.\n"
    )


def test_a_section_comes_before_the_others() -> None:
    @described_by(dense, types={"te.Tensor": "relay.Expr"})
    def layer(bias: int) -> None:
        """A layer.

        Returns
        -------
        int
            The sum.
        """

    assert layer.__doc__ == (
        "A layer.\n\nParameters\n----------\nbias : relay.Expr\n    What is added.\n\n"
        "Returns\n-------\nint\n    The sum.\n"
    )


def test_a_function_without_described_parameters_keeps_its_text() -> None:
    @described_by(dense)
    def other(name: str) -> None:
        """Another."""

    assert (other.__doc__ or "").strip() == "Another."


def test_what_a_function_returns_comes_behind_its_parameters() -> None:
    @returns("te.Tensor", "The sums,\nin rows.")
    def added(data: int) -> int:
        """A sum.

        Parameters
        ----------
        data : te.Tensor
            The rows.

        Raises
        ------
        ValueError
            If it is empty.
        """
        return data

    assert added.__doc__ == (
        "A sum.\n\nParameters\n----------\ndata : te.Tensor\n    The rows.\n\n"
        "Returns\n-------\nte.Tensor\n    The sums,\n    in rows.\n\n"
        "Raises\n------\nValueError\n    If it is empty.\n"
    )


def test_a_docstring_that_says_what_is_returned_keeps_its_text() -> None:
    expected = dense.__doc__
    returns("te.Tensor", "Other sums.")(dense)
    assert dense.__doc__ == expected


def test_operators_return_what_their_type_relations_say() -> None:
    assert relay.exp.__doc__.endswith(
        "Returns\n-------\nrelay.Expr\n    A tensor of the operand's shape and dtype.\n"
    )
    assert "Returns\n-------\nrelay.TupleWrapper\n    A tuple of tensors" in relay.split.__doc__
