"""A server: ``python -m tvm.exec.rpc_server --tracker HOST:PORT --key board``."""

from __future__ import annotations

import argparse
import contextlib

from tvm.rpc.base import LOOPBACK
from tvm.rpc.commands import add_access_arguments, check_address, host_and_port
from tvm.rpc.server import _as_libraries, listen, server_options


def main(args: argparse.Namespace) -> None:
    """Serve, until it is interrupted.

    Parameters
    ----------
    args : argparse.Namespace
        What :func:`parse` gives.
    """
    if not args.through_proxy:
        check_address("rpc_server", args)
    options = server_options(
        tracker_addr=host_and_port("--tracker", args.tracker), host=args.host, port=args.port,
        port_end=args.port_end, is_proxy=args.through_proxy, key=args.key,
        custom_addr=args.custom_addr, silent=args.silent, key_file=args.key_file,
        insecure_allow_any=args.insecure_allow_any, session_timeout=args.session_timeout,
        stall_timeout=args.stall_timeout, max_message=args.max_message, max_memory=args.max_memory,
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):
        listen(options, _as_libraries(args.load_library), None)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tvm.exec.rpc_server", description=__doc__)
    parser.add_argument("--host", default=LOOPBACK, help="the address to listen on")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--port-end", type=int, default=9199, help="the end of the range of ports")
    parser.add_argument(
        "--through-proxy", action="store_true", help="host and port are those of a proxy"
    )
    parser.add_argument("--tracker", help="HOST:PORT of a tracker")
    parser.add_argument("--key", default="", help="the kind of machine")
    parser.add_argument("--load-library", help="libraries with more functions, parted by colons")
    parser.add_argument("--custom-addr", help="the address that the tracker tells clients")
    parser.add_argument("--silent", action="store_true", help="say nothing about sessions")
    parser.add_argument("--session-timeout", type=float, help="the most seconds of a session")
    parser.add_argument(
        "--stall-timeout", type=float, help="the most seconds between two parts of a message"
    )
    parser.add_argument("--max-message", type=int, help="the most bytes of a message")
    parser.add_argument("--max-memory", type=int, help="the most bytes of a session's arrays")
    # sessions are forked from this process in any case
    parser.add_argument("--no-fork", dest="fork", action="store_false", help=argparse.SUPPRESS)
    add_access_arguments(parser)
    args = parser.parse_args(arguments)
    if args.through_proxy and args.tracker:
        parser.error("a server behind a proxy is offered by the proxy: leave --tracker out")
    return args


if __name__ == "__main__":
    main(parse())
