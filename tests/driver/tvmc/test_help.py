"""Help fits on one screen and teaches by example; slips are told with what was meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tvm.driver.tvmc.main import _main

Capture = pytest.CaptureFixture[str]


def shown(argv: list[str], capsys: Capture) -> str:
    with pytest.raises(SystemExit) as end:
        _main(argv)
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", ["80", "100", "200"])
@pytest.mark.parametrize("command", [[], ["compile"], ["run"], ["tune"], ["verify"], ["explain"]])
def test_help_fits_on_one_screen(
    command: list[str], columns: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = shown([*command, "--help"], capsys)
    lines = text.splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 100
    examples = text.partition("examples:")[2]
    assert sum(line.startswith("  tvmc ") for line in examples.splitlines()) >= 3


def test_all_options_are_shown_on_request(capsys: Capture) -> None:
    short, full = (shown(["compile", flag], capsys) for flag in ("--help", "--help-all"))
    for option in ("--workspace-pools", "--target-llvm-mcpu", "--mixed-precision", "--pass-config"):
        assert option in full and option not in short
    assert "--help-all" in short and len(full.splitlines()) > 100


@pytest.mark.parametrize("command", [[], ["run"]])
def test_all_options_are_shown_where_help_has_them_all(command: list[str], capsys: Capture) -> None:
    assert shown([*command, "--help-all"], capsys) == shown([*command, "--help"], capsys)


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (["complie", "x"], "invalid choice: 'complie'; did you mean 'compile'?"),
        (["compile", "x", "--ouput", "y"], "no option --ouput; did you mean '--output'?"),
        (["compile", "x", "--frobnicate=1"], "tvmc compile: error: there is no option --frobnicate\n"),
        (["compile", "x", "y"], "tvmc compile: error: does not take 'y'"),
        (["compile", "x", "--executor", "grph"], "did you mean 'graph'?"),
        (["compile"], "tvmc compile: error: the following arguments are required: FILE"),
        (["run", "x", "--print-tpo", "3"], "did you mean '--print-top'?"),
        (["--verison"], "tvmc: error: there is no option --verison; did you mean '--version'?"),
    ],
)  # fmt: skip
def test_slips_are_told_with_what_was_meant(
    argv: list[str], part: str, tvmc_fails: Callable[..., str]
) -> None:
    assert part in tvmc_fails(*argv)
