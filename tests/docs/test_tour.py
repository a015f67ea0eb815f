import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tour_runs_to_its_end() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "tour.py")], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "End of the tour" in done.stdout
