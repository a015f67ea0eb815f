"""The commands of `tvmc`, and what becomes of errors."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm._ffi.base import __version__
from tvm.driver.tvmc import autotuner, compiler, runner, unavailable, verifier
from tvm.driver.tvmc.arguments import TVMCSuppressedArgumentParser
from tvm.driver.tvmc.config_options import (
    convert_config_json_to_cli,
    read_and_convert_json_into_dict,
)
from tvm.driver.tvmc.errors import TVMCException, TVMCImportError
from tvm.error import TVMError, install_hint, or_near

# what makes the parser of each command
REGISTERED_PARSER: list[Callable[..., None]] = [
    compiler.add_compile_parser,
    runner.add_run_parser,
    verifier.add_verify_parser,
    autotuner.add_tune_parser,
    unavailable.add_micro_parser,
]

_WRONG_USE, _FAILED, _NOT_INSTALLED = 1, 4, 5
_EPILOG = """examples:
  tvmc compile resnet50.onnx --target "llvm -mcpu=native" -o resnet50.tar
  tvmc run resnet50.tar --inputs image.npz --print-top 5 --print-time --repeat 10
  tvmc tune resnet50.onnx --target "llvm -mcpu=native" --trials 64 -o records.log
  tvmc verify resnet50.onnx --against onnxruntime
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
        _add_commands(parser, convert_config_json_to_cli(config))
    except TVMCException as error:
        return _complain(error)
    args = parser.parse_args(argv)
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


def _main_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tvmc",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="TVM compiler driver: compile, tune, run and verify models",
        epilog=_EPILOG,
        add_help=False,
    )
    parser.add_argument(
        "--config", default="default",
        help="JSON file with defaults of options, or the name of one that is installed",
    )  # fmt: skip
    parser.add_argument(
        "-v", "--verbose", action="count", default=0,
        help="say more: tracebacks of errors; -vv and -vvv also what happens meanwhile",
    )  # fmt: skip
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("-h", "--help", action="help", help="show this help message and exit")
    return parser


def _add_commands(parser: argparse.ArgumentParser, defaults: Mapping[str, Any]) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for make_subparser in REGISTERED_PARSER:
        make_subparser(commands, parser, defaults)
    known = {action.dest for each in commands.choices.values() for action in each._actions}
    if unknown := [name for name in defaults if name not in known]:
        raise TVMCException(
            f"--config requires options of commands, there is no {unknown[0].replace('_', '-')!r}"
            + or_near(unknown[0], known)
        )
