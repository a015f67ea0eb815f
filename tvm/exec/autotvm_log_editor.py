"""The fastest records of a log: ``python -m tvm.exec.autotvm_log_editor --act pick-best --i LOG [--o FILE]``."""

from __future__ import annotations

import argparse

from tvm.autotvm.record import pick_best


def main(arguments: list[str] | None = None) -> None:
    """Write them.

    Parameters
    ----------
    arguments : list of str, optional
        The options; by default those of the command line.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tvm.exec.autotvm_log_editor", description=__doc__
    )
    parser.add_argument(
        "--act", choices=["pick-best"], required=True, help="keep the fastest of each workload"
    )
    parser.add_argument("--i", required=True, metavar="LOG", help="the log")
    parser.add_argument(
        "--o", metavar="FILE", help="where to write; by default the log's name and .best.log"
    )
    args = parser.parse_args(arguments)
    pick_best(args.i, args.o or f"{args.i}.best.log")


if __name__ == "__main__":
    main()
