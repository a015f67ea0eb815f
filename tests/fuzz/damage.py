"""Damaged input: each kind of file is changed at random and read; only the errors that readers promise may come.

python -m tests.fuzz.damage KIND CASES SEED
"""

from __future__ import annotations

import faulthandler
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.targets import KINDS, Target

SPARE_BYTES = 1 << 30  # what a reader may allocate beside what the program has
SECONDS_A_CASE = 20


def damage(target: Target, draw: random.Random) -> bytes:
    """The content with one to three changes: flipped bits, other bytes, cuts, pieces twice or elsewhere."""
    content = bytearray(target.content)
    last = len(content) if target.last is None else target.last
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(target.first, max(min(last, len(content)), target.first + 1))
        if place in target.left_out:
            place = draw.choice((target.left_out.start - 1, target.left_out.stop))
        place = min(place, len(content) - 1)
        change = draw.randrange(12)
        if change < 6:
            content[place] ^= 1 << draw.randrange(8)
        elif change < 9:
            content[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif change == 9:
            content[place : place + 8] = draw.randbytes(8)[: len(content) - place]
        elif change == 10:
            del content[max(place, 1) :]
        else:
            source = draw.randrange(len(content))
            content[place:place] = content[source : source + 16]
    return bytes(content)


def run(kind: str, cases: int, seed: int) -> None:
    """Read that many damaged contents; raises what no reader promises."""
    with tempfile.TemporaryDirectory() as name:
        target = KINDS[kind](Path(name))
        target.read(target.content)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + SPARE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        draw = random.Random(seed)
        rejected = 0
        for case in range(cases):
            if case % 100 == 0:
                faulthandler.dump_traceback_later(SECONDS_A_CASE, exit=True)
            content = damage(target, draw)
            try:
                target.read(content)
            except target.promised:
                rejected += 1
            except BaseException as error:
                error.add_note(f"case {case} of {kind}: {content!r}"[:2000])
                raise
        faulthandler.cancel_dump_traceback_later()
        print(f"{kind}: {cases} cases, {rejected} rejected")


def run_apart(kind: str, cases: int, seed: int) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own."""
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        __spec__.name,
        kind,
        str(cases),
        str(seed),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
