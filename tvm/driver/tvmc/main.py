"""The commands of `tvmc`, and what becomes of errors."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm._ffi.base import __version__
from tvm.driver.tvmc import autotuner, compiler, explainer, runner, unavailable, verifier
from tvm.driver.tvmc.arguments import CommandParser, TVMCSuppressedArgumentParser
from tvm.driver.tvmc.config_options import (
    convert_config_json_to_cli,
    read_and_convert_json_into_dict,
)
from tvm.driver.tvmc.errors import TVMCException, TVMCImportError, UnsupportedFormatError
from tvm.error import TVMError, install_hint, or_similar

# what makes the parser of each command
REGISTERED_PARSER: list[Callable[..., None]] = [
    compiler.add_compile_parser,
    runner.add_run_parser,
    verifier.add_verify_parser,
    explainer.add_explain_parser,
    autotuner.add_tune_parser,
    unavailable.add_micro_parser,
]

_WRONG_USE, _FAILED, _NOT_INSTALLED = 1, 4, 5
_EPILOG = """examples:
  tvmc compile resnet50.onnx -o resnet50.tar
  tvmc run resnet50.tar --inputs image.npz --print-top 5 --print-time --repeat 10
  tvmc verify resnet50.onnx
  tvmc explain resnet50.onnx -o resnet50.html
  tvmc tune resnet50.onnx --target llvm --trials 64 -o records.log

tvmc COMMAND --help shows the options of a command
"""


def register_parser(make_subparser: Callable[..., None]) -> Callable[..., None]:
    """Add a command: ``make_subparser(subparsers, main_parser, json_params)`` makes its parser."""
    REGISTERED_PARSER.append(make_subparser)
    return make_subparser


def main() -> None:
    """The program `tvmc`."""
    sys.exit(_main(sys.argv[1:]))


def _main(argv: Sequence[str]) -> int:
    parser = _main_parser()
    first, _ = TVMCSuppressedArgumentParser(parser).parse_known_args(argv)
    try:
        config = read_and_convert_json_into_dict(first)
        commands = _add_commands(parser, convert_config_json_to_cli(config))
    except TVMCException as error:
        return _complain(error)
    args, rest = parser.parse_known_args(argv)
    commands.get(args.command, parser).reject_unknown(rest)
    if args.verbose:
        logging.basicConfig(format="%(name)s: %(message)s")
    logging.getLogger("TVMC").setLevel(max(logging.DEBUG, 40 - args.verbose * 10))
    if args.version:
        print(__version__)
        return 0
    if not hasattr(args, "func"):
        parser.print_help(sys.stderr)
        return _WRONG_USE
    return _run(args)


def _run(args: argparse.Namespace) -> int:
    try:
        return int(args.func(args) or 0)
    except UnsupportedFormatError as error:
        return _complain(error)
    except TVMCImportError as error:
        sys.stderr.write(f"Package {error} is not installed. Hint: {install_hint(str(error))}\n")
        return _NOT_INSTALLED
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted.\n")
        return 130
    except BrokenPipeError:
        # what reads the output has seen enough; nothing may be flushed to it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (TVMCException, TVMError, OSError, ValueError, NotImplementedError) as error:
        if args.verbose:
            raise
        return _complain(error)


def _complain(error: Exception) -> int:
    sys.stderr.write(f"Error: {error}\n")
    return _FAILED


def _main_parser() -> CommandParser:
    parser = CommandParser(
        prog="tvmc", usage="tvmc COMMAND [options]",
        description="Compile, run, verify, explain and tune models of ONNX, PyTorch and relay.",
        epilog=_EPILOG,
    )  # fmt: skip
    parser.add_argument(
        "--config", default="default", metavar="FILE",
        help="JSON file with defaults of options, or the name of an installed one",
    )  # fmt: skip
    parser.add_argument(
        "-v", "--verbose", action="count", default=0,
        help="tracebacks of errors; -vv and -vvv also what happens meanwhile",
    )  # fmt: skip
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    return parser


def _add_commands(
    parser: argparse.ArgumentParser, defaults: Mapping[str, Any]
) -> dict[str, CommandParser]:
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", prog=parser.prog
    )
    for make_subparser in REGISTERED_PARSER:
        make_subparser(commands, parser, defaults)
    known = {action.dest for each in commands.choices.values() for action in each._actions}
    if unknown := [name for name in defaults if name not in known]:
        raise TVMCException(
            f"--config requires options of commands, there is no {unknown[0].replace('_', '-')!r}"
            + or_similar(unknown[0], known)
        )
    return commands.choices  # type: ignore[return-value]
