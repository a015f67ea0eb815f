"""A tracker: ``python -m tvm.exec.rpc_tracker``."""

from __future__ import annotations

import argparse

from tvm.rpc.base import LOOPBACK
from tvm.rpc.commands import add_access_arguments, announce, check_address
from tvm.rpc.tracker_server import listen


def main(args: argparse.Namespace) -> None:
    """Serve, until it is interrupted.

    Parameters
    ----------
    args : argparse.Namespace
        What :func:`parse` gives.
    """
    check_address("rpc_tracker", args)
    ready = announce("tracker", args)
    listen(args.host, args.port, max(args.port_end, args.port + 1), args.key_file, ready=ready)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tvm.exec.rpc_tracker", description=__doc__)
    parser.add_argument("--host", default=LOOPBACK, help="the address to listen on")
    parser.add_argument("--port", type=int, default=9190)
    parser.add_argument("--port-end", type=int, default=9199, help="the end of the range of ports")
    parser.add_argument("--silent", action="store_true", help="do not tell the port")
    add_access_arguments(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(parse())
