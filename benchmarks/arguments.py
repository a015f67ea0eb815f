"""Arguments that the benchmarks of models share."""

from __future__ import annotations

import argparse
import os


def models_parser(description: str, default: str = "the main") -> argparse.ArgumentParser:
    """A parser of models and a number of threads; `default` says which models there are without any."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument(
        "models", nargs="*", help=f"of benchmarks/zoo.py (default: {default}), or files"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    return parser
