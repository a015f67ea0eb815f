"""Underlines, line numbers and omitted lines of a text.

foo
^^^
bar
"""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int]  # from a character to before another


def decorate(text: str, spans: Sequence[Span], line_numbers: bool, context: int | None) -> str:
    """The text with a line of carets below each that has characters in one of the spans.

    Parameters
    ----------
    text : str
    spans : sequence of (int, int)
        Positions in the text.
    line_numbers : bool
        Whether lines start with their numbers.
    context : int, optional
        How many lines are shown around those with carets; all of them if it is None or negative.
    """
    if not spans and not line_numbers:
        return text
    lines = text.rstrip().split("\n")
    carets = _carets(lines, spans)
    shown = _shown(len(lines), carets, context)
    width = len(str(len(lines))) if line_numbers else 0
    result: list[str] = []
    last = -1
    for number in [*shown, len(lines)]:
        if number > last + 1:
            result.append(f"(... {number - last - 1} lines skipped ...)")
        if number < len(lines):
            gutter = f"{number + 1:>{width}} " if line_numbers else ""
            result.append(f"{gutter}{lines[number]}")
            if number in carets:
                result.append(" " * len(gutter) + carets[number])
        last = number
    return "\n".join(result)


def _carets(lines: Sequence[str], spans: Sequence[Span]) -> dict[int, str]:
    """The line of carets for each line that needs one; indentation has none."""
    found: dict[int, str] = {}
    start = 0
    for number, line in enumerate(lines):
        marks = [" "] * len(line)
        first = len(line) - len(line.lstrip(" "))
        for low, high in spans:
            low, high = max(low - start, first), min(high - start, len(line))
            if low < high:
                marks[low:high] = "^" * (high - low)
        if underline := "".join(marks).rstrip():
            found[number] = underline
        start += len(line) + 1
    return found


def _shown(count: int, carets: dict[int, str], context: int | None) -> list[int]:
    """The lines to show: a single line between others is not worth omitting."""
    if context is None or context < 0 or not carets:
        return list(range(count))
    wanted = {
        number
        for caret in carets
        for number in range(max(0, caret - context), min(count, caret + context + 1))
    }
    between = {
        n for n in range(count) if _is_in(n - 1, wanted, count) and _is_in(n + 1, wanted, count)
    }
    return sorted(wanted | between)


def _is_in(number: int, wanted: set[int], count: int) -> bool:
    return number in wanted or number in (-1, count)
