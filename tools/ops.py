"""The table of relay's operators: one row an operator, a column for each facet of its record.

usage: python tools/ops.py [--write]

Prints docs/ops.md; --write puts it there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tvm.ir.op import Op
from tvm.relay.op.registry import all_ops

PAGE = Path(__file__).resolve().parent.parent / "docs" / "ops.md"
HEAD = """# Relay's operators

Written by `python tools/ops.py --write`; a dot says that the facet is missing.

* **kernel**: `te` where the operator is computed by a kernel of its own, with the targets that have
  a schedule of their own; otherwise what it is written by before kernels are made: `simplify` and
  `legalize` by other operators, `qnn` by integer arithmetic, `static` once its shape is known.
* **fusion**: how it joins its neighbours in one kernel.
* **gradient**: whether the gradient of a result gives those of the arguments.
* **layout**: whether blocked layouts pass through it (`infer`) or begin at it (`alter`).
* **folding**: whether constants are folded on the host.
* **shape function**: `values` if it reads values of arguments, `shapes` if only their shapes; without
  one the type relation tells the shape.
* **precision**: what mixed precision does with it.
"""
COLUMNS = (
    "operator", "arguments", "kernel", "fusion", "gradient", "layout", "folding", "shape function",
    "precision",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/ops.md")
    text = page()
    if parser.parse_args().write:
        PAGE.write_text(text, encoding="utf8")
    else:
        print(text, end="")


def page() -> str:
    """The text of docs/ops.md."""
    ops = sorted(all_ops(), key=lambda op: op.name)
    rows = [COLUMNS, ("---",) * len(COLUMNS), *[row(op) for op in ops]]
    table = "\n".join(["| " + " | ".join(cells) + " |" for cells in rows])
    return f"{HEAD}\n{len(ops)} operators.\n\n{table}\n"


def row(op: Op) -> tuple[str, ...]:
    """The cells of one operator."""
    return (
        f"`{op.name}`",
        ", ".join([argument[0] for argument in op.arguments]),
        kernel(op),
        op.fuse.name.lower().replace("_", " ") if op.fuse is not None else ".",
        _mark(op.gradient or op.composition or op.simplify),
        _either(infer=op.infer_layout, alter=op.alter_layout),
        _mark(op.fold),
        shape_function(op),
        op.precision.value,
    )


def kernel(op: Op) -> str:
    """What computes an operator, or what it is rewritten by."""
    if op.compute is not None:
        own = [name for name in op.schedules or {} if name != "generic"]
        return f"te ({', '.join(own)})" if own else "te"
    return _either(
        simplify=op.simplify,
        legalize=op.legalize,
        qnn=op.qnn_canonicalize,
        static=op.make_static,
    )


def shape_function(op: Op) -> str:
    """What a shape function reads, if there is one."""
    if op.shape_func is None:
        return "."
    reads = op.get_attr("TShapeDataDependent")
    return "values" if reads and any(reads if isinstance(reads, list) else [reads]) else "shapes"


def _mark(facet: object) -> str:
    return "yes" if facet is not None else "."


def _either(**facets: object) -> str:
    return ", ".join([name for name, facet in facets.items() if facet is not None]) or "."


if __name__ == "__main__":
    main()
