"""Results that are kept between runs."""

from __future__ import annotations

import pickle
from functools import partial
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
    assert cache.path is not None
    cache.path.write_bytes(b"not a pickle")
    assert cache.cache == {}


def test_a_file_that_would_run_code_counts_as_none() -> None:
    cache = Cache("tests.foreign", True)
    assert cache.path is not None
    cache.path.write_bytes(pickle.dumps({b"x": partial(print)}))
    assert cache.cache == {}


def test_results_of_other_classes_last_as_long_as_the_process() -> None:
    cache = Cache("tests.other", True)
    cache.cache.update({b"x": 1, b"y": partial(print)})
    cache.dirty = True
    with pytest.warns(UserWarning, match="a result of 'tests.other' is not kept"):
        cache.save()
    assert Cache("tests.other", True).cache == {b"x": 1}


def test_files_that_others_may_write_are_not_read(tmp_path: Path) -> None:
    cache = Cache("tests.shared", True)
    cache.cache[b"x"] = 1
    cache.dirty = True
    cache.save()
    (tmp_path / "pkl_memoize_py3").chmod(0o777)
    with pytest.warns(UserWarning, match="others than this user"):
        assert Cache("tests.shared", True).cache == {}
