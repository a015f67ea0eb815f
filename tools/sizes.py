"""Lines of each part of the tree, and the longest files and functions.

usage: python tools/sizes.py [--top N]
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=12, help="how many of the longest to show")
    top = parser.parse_args().top
    files = [p for p in ROOT.rglob("*") if p.suffix in (".py", ".pyx", ".cc", ".h") and is_ours(p)]
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in files}
    show_parts(lengths)
    show("longest files", sorted(((n, str(p)) for p, n in lengths.items()), reverse=True)[:top])
    functions = [item for path in files if path.suffix == ".py" for item in function_sizes(path)]
    show("longest functions", sorted(functions, reverse=True)[:top])


def is_ours(path: Path) -> bool:
    """Whether a file belongs to the project, not to an environment or a build."""
    parts = path.relative_to(ROOT).parts
    return parts[0] in ("tvm", "native", "tests", "tools", "docs", "examples", "benchmarks")


def show_parts(lengths: dict[Path, int]) -> None:
    """Lines by folder."""
    parts: Counter[str] = Counter()
    for path, lines in lengths.items():
        depth = 2 if path.parts[0] == "tvm" and len(path.parts) > 2 else 1
        parts["/".join(path.parts[:depth])] += lines
    show("lines", [(lines, part) for part, lines in sorted(parts.items())])
    print(f"{sum(parts.values()):7} in all")


def function_sizes(path: Path) -> list[tuple[int, str]]:
    """(lines, place) of each function."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    return [
        ((node.end_lineno or 0) - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.name}")
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def show(title: str, rows: list[tuple[int, str]]) -> None:
    """Print a small table."""
    print(f"\n{title}")
    for lines, name in rows:
        print(f"{lines:7} {name}")


if __name__ == "__main__":
    main()
