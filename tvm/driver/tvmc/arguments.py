"""A first look at the arguments, which leaves all complaints to the second."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


def positive(text: str) -> int:
    """A number of times, from its text."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is required, got {text}")
    return int(text)


class TVMCSuppressedArgumentParser(argparse.ArgumentParser):
    """Knows the options of another parser, not its commands, and never ends the program.

    Parameters
    ----------
    parent : argparse.ArgumentParser
        The parser whose options it has.
    """

    def __init__(self, parent: argparse.ArgumentParser, **kwargs: Any) -> None:
        super().__init__(prog=parent.prog, add_help=False, **kwargs)
        for action in parent._actions:
            if action.option_strings and not isinstance(action, argparse._HelpAction):
                self._add_action(action)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """What can be understood, and the rest."""
        found, rest = super().parse_known_args(args, namespace)
        return found or argparse.Namespace(), rest

    def exit(self, status: int = 0, message: str | None = None) -> None:  # type: ignore[override]
        """Go on: the full parser says what is wrong."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Go on: the full parser says what is wrong."""
