"""Results that are kept between runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvm.contrib.pickle_memoize import Cache, memoize


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Cache, "cache_by_key", {})


def test_a_function_runs_once_for_its_arguments() -> None:
    calls = []

    @memoize("tests.square")
    def square(x: int, *, power: int = 2) -> int:
        calls.append(x)
        return x**power

    assert [square(3), square(3), square(3, power=3), square(2)] == [9, 9, 27, 4]
    assert calls == [3, 3, 2]


def test_results_are_kept_in_a_file() -> None:
    calls = []

    def make() -> object:
        @memoize("tests.kept", save_at_exit=True)
        def double(x: int) -> int:
            Path("/dev/null").write_text(str(x))
            return 2 * x

        return double

    make()(4)  # type: ignore[operator]
    (cache,) = Cache.cache_by_key.values()
    cache.save()
    again = Cache("tests.kept", True)
    assert list(again.cache.values()) == [8]
    assert not calls


def test_a_damaged_file_counts_as_none() -> None:
    cache = Cache("tests.damaged", True)
    cache.path.parent.mkdir(parents=True)
    cache.path.write_bytes(b"not a pickle")
    assert cache.cache == {}
