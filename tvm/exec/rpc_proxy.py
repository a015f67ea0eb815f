"""A proxy: ``python -m tvm.exec.rpc_proxy --port 9090 --tracker HOST:PORT``."""

from __future__ import annotations

import argparse

from tvm.rpc.base import LOOPBACK
from tvm.rpc.commands import add_access_arguments, announce, check_address, host_and_port
from tvm.rpc.proxy import ProxyOptions
from tvm.rpc.proxy_server import listen


def main(args: argparse.Namespace) -> None:
    """Serve, until it is interrupted.

    Parameters
    ----------
    args : argparse.Namespace
        What :func:`parse` gives.
    """
    check_address("rpc_proxy", args)
    options = ProxyOptions(
        args.host, args.port, args.port_end, args.web_port, args.timeout_client,
        args.timeout_server, host_and_port("--tracker", args.tracker), args.key_file,
    )  # fmt: skip
    listen(options, ready=announce("proxy", args))


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tvm.exec.rpc_proxy", description=__doc__)
    parser.add_argument("--host", default=LOOPBACK, help="the address to listen on")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--port-end", type=int, default=9199, help="the end of the range of ports")
    parser.add_argument("--web-port", type=int, default=0, help="the port of WebSocket peers")
    parser.add_argument("--timeout-client", type=float, default=600)
    parser.add_argument("--timeout-server", type=float, default=600)
    parser.add_argument("--tracker", help="HOST:PORT of a tracker")
    parser.add_argument("--silent", action="store_true", help="do not tell the port")
    add_access_arguments(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(parse())
