"""What a server's device can do at most: ``python -m tvm.exec.measure_peak --target llvm --rpc-port 9090``."""

from __future__ import annotations

import argparse
import logging

from tvm.contrib.peak import measure_peak_all


def main(arguments: list[str] | None = None) -> None:
    """Measure and print.

    Parameters
    ----------
    arguments : list of str, optional
        The options; by default those of the command line.
    """
    parser = argparse.ArgumentParser(prog="python -m tvm.exec.measure_peak", description=__doc__)
    parser.add_argument("--target", default="llvm", help="the device (llvm)")
    parser.add_argument("--target-host", metavar="TARGET", help="its host")
    parser.add_argument("--rpc-host", default="127.0.0.1", metavar="HOST", help="of the server")
    parser.add_argument("--rpc-port", type=int, default=9090, metavar="PORT", help="of the server")
    args = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    measure_peak_all(args.target, args.target_host, args.rpc_host, args.rpc_port)


if __name__ == "__main__":
    main()
