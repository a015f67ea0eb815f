"""What the commands of servers, trackers and proxies have in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from tvm.rpc.base import is_loopback


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that say who is let in."""
    parser.add_argument("--key-file", help="a file with a secret that peers prove to know")
    parser.add_argument(
        "--insecure-allow-any",
        action="store_true",
        help="let everybody who reaches the address run code on the machines behind it",
    )


def check_address(who: str, args: argparse.Namespace) -> None:
    """End the program if its address is open to others, and nothing says who they may be."""
    if not (is_loopback(args.host) or args.key_file or args.insecure_allow_any):
        sys.exit(
            f"{who}: on {args.host} others may run code on the machines behind it: give it a secret "
            "by --key-file, or say --insecure-allow-any"
        )


def host_and_port(option: str, text: str | None) -> tuple[str, int] | None:
    """HOST:PORT as a pair."""
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        sys.exit(f"{option} requires HOST:PORT, got {text!r}")
    return host, int(port)


def announce(name: str, args: argparse.Namespace) -> Callable[[int], None]:
    """A function that tells the port of a service."""

    def ready(port: int) -> None:
        if not args.silent:
            print(f"{name}: listening on {args.host}:{port}", file=sys.stderr, flush=True)

    return ready
