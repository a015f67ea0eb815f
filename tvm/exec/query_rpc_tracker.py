"""What a tracker has: ``python -m tvm.exec.query_rpc_tracker --host HOST --port PORT``."""

from __future__ import annotations

import argparse

from tvm import knobs
from tvm.rpc.base import LOOPBACK
from tvm.rpc.client import connect_tracker


def main(arguments: list[str] | None = None) -> None:
    """Print the table of servers and queues.

    Parameters
    ----------
    arguments : list of str, optional
        The options; by default those of the command line.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tvm.exec.query_rpc_tracker", description=__doc__
    )
    host, port = knobs.TRACKER_HOST.value, knobs.TRACKER_PORT.value
    parser.add_argument("--host", default=host or LOOPBACK, help="TVM_TRACKER_HOST, if it is set")
    parser.add_argument("--port", type=int, default=port, help="TVM_TRACKER_PORT, if it is set")
    parser.add_argument("--key-file", help="the file of the tracker's secret")
    args = parser.parse_args(arguments)
    print(f"Tracker address {args.host}:{args.port}\n")
    print(connect_tracker(args.host, args.port, key_file=args.key_file).text_summary())


if __name__ == "__main__":
    main()
