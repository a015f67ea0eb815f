"""Parsers of arguments: help on one screen, hints, and a first look that leaves complaints to a second."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from typing import Any

from tvm.error import or_similar

_WIDTH = 100  # columns of help at most


class CommandParser(argparse.ArgumentParser):
    """A parser whose ``--help`` shows the common options, and ``--help-all`` all of them.

    Parameters
    ----------
    common : sequence of str, optional
        The destinations of the common options; by default all are common.
    """

    def __init__(self, *args: Any, common: Sequence[str] | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", _Formatter)
        kwargs["add_help"] = False
        super().__init__(*args, **kwargs)
        self.common = common
        self.add_argument("-h", "--help", action="help", help="show this and exit")
        all_shown = argparse.SUPPRESS if common is None else "show all options and exit"
        self.add_argument("--help-all", action=_HelpAll, help=all_shown)

    def format_help(self) -> str:
        """The common options."""
        if self.common is None:
            return super().format_help()
        shown = (*self.common, "help", "help_all")
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, [], [])
        formatter.add_text(self.description)
        formatter.start_section("common options")
        formatter.add_arguments([a for name in shown for a in self._actions if a.dest == name])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def format_full_help(self) -> str:
        """All options."""
        return super().format_help()

    def reject_unknown(self, rest: Sequence[str]) -> None:
        """End the program if there are arguments that nobody knows."""
        if not rest:
            return
        flags = [flag for flag in rest if flag.startswith("-")]
        if not flags:
            self.error(f"does not take {rest[0]!r}")
        name = flags[0].partition("=")[0]
        self.error(f"there is no option {name}{or_similar(name, self._option_string_actions)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = list(map(str, action.choices))
            raise argparse.ArgumentError(
                action,
                f"invalid choice: {value!r}{or_similar(str(value), known)} "
                f"(choose from {', '.join(known)})",
            )


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        columns = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH)
        super().__init__(prog, max_help_position=28, width=columns)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """``-o, --output FILE``, the value named once."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        default = self._get_default_metavar_for_optional(action)
        value = self._format_args(action, default)
        return f"{', '.join(action.option_strings)} {value}"


class _HelpAll(argparse._HelpAction):
    def __call__(self, parser: Any, *_: Any) -> None:
        print(parser.format_full_help(), end="")
        parser.exit()


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
