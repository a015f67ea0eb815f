"""``python -m tvm.exec.knobs`` lists the environment variables that are read, their values and meanings."""

from __future__ import annotations

from tvm.knobs import KNOBS, environment_text


def listing() -> str:
    """A line for each variable: what it is set to, and what it does."""
    rows = [
        (name, environment_text(name) or "(not set)", knob.doc)
        for name, knob in sorted(KNOBS.items())
    ]
    widths = [max([len(row[column]) for row in rows]) for column in (0, 1)]
    return "\n".join([f"{n:{widths[0]}}  {v:{widths[1]}}  {doc}" for n, v, doc in rows])


if __name__ == "__main__":
    print(listing())
