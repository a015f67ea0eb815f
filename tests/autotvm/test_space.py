from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from tvm import autotvm, te
from tvm.autotvm.task.space import (
    AnnotateEntity,
    ConfigEntity,
    ConfigSpace,
    FallbackConfigEntity,
    OtherOptionEntity,
    ReorderEntity,
    SplitEntity,
    get_factors,
    get_pow2s,
)


def sizes(space: ConfigSpace, name: str) -> list[list[int]]:
    return [list(entity.size) for entity in space.space_map[name].entities]


@pytest.mark.parametrize("n", [1, 2, 7, 12, 36, 97, 1024, 5040])
def test_factors_are_all_divisors(n: int) -> None:
    assert get_factors(n) == [d for d in range(1, n + 1) if n % d == 0]
    assert get_pow2s(n) == [2**p for p in range(20) if 2**p <= n]


def test_a_split_by_factors_has_the_innermost_part_varying_slowest() -> None:
    cfg = ConfigSpace()
    axes = cfg.define_split("tile", cfg.axis(4), num_outputs=3)
    assert [axis.index for axis in axes] == [0, 1, 2]
    assert sizes(cfg, "tile") == [
        [-1, 1, 1], [-1, 2, 1], [-1, 4, 1], [-1, 1, 2], [-1, 2, 2], [-1, 1, 4]
    ]  # fmt: skip


def test_split_policies_choose_their_factors() -> None:
    cfg = ConfigSpace()
    cfg.define_split("f", 12, policy="factors", num_outputs=2)
    cfg.define_split("p", 12, policy="power2", num_outputs=2)
    cfg.define_split("v", 12, policy="verbose", num_outputs=2)
    cfg.define_split("c", 12, policy="candidate", candidate=[[-1, 3], [2, 6]], num_outputs=2)
    cfg.define_split("m", 12, num_outputs=2, max_factor=4, filter=lambda e: e.size[-1] > 1)
    cfg.define_split("n", 12, policy="power2", num_outputs=2, no_tail=True)
    assert [size[1] for size in sizes(cfg, "f")] == [1, 2, 3, 4, 6, 12]
    assert [size[1] for size in sizes(cfg, "p")] == [1, 2, 4, 8]
    assert [size[1] for size in sizes(cfg, "v")] == [1, 2, 3, 4, 6, 8, 12]
    assert sizes(cfg, "c") == [[-1, 3], [2, 6]]
    assert [size[1] for size in sizes(cfg, "m")] == [2, 3, 4]
    assert [size[1] for size in sizes(cfg, "n")] == [1, 2, 4]


def test_split_misuse_is_rejected() -> None:
    cfg = ConfigSpace()
    with pytest.raises(RuntimeError, match="Invalid policy: thirds"):
        cfg.define_split("t", 12, policy="thirds", num_outputs=2)
    with pytest.raises(ValueError, match="num_outputs"):
        cfg.define_split("t", 12)
    with pytest.raises(ValueError, match="no value"):
        cfg.define_split("t", 12, num_outputs=2, filter=lambda e: False)
    with pytest.raises(TypeError, match="'nums'"):
        cfg.define_split("t", 12, num_outputs=2, nums=3)


def test_a_split_is_applied_to_a_schedule() -> None:
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] + 1, name="b")
    s = te.create_schedule(b.op)
    parts = SplitEntity([-1, 4, 8]).apply(s, b, b.op.axis[0])
    assert list(s[b].leaf_iter_vars) == parts
    assert len(parts) == 3


def test_reorder_policies() -> None:
    cfg = ConfigSpace()
    x, y, z = [cfg.axis(n) for n in (2, 3, 4)]

    def perms(name: str, axes: Any, policy: str, **options: Any) -> list[list[int]]:
        cfg.define_reorder(name, axes, policy, **options)
        return [list(e.perm) for e in cfg.space_map[name].entities]

    assert perms("i", [x, y, z], "identity") == [[0, 1, 2]]
    assert perms("a", [x, y, z], "all") == [list(p) for p in itertools.permutations(range(3))]
    assert perms("v", [x, y, z], "interval_all", interval=(1, 3)) == [[0, 1, 2], [0, 2, 1]]
    assert perms("c", [x, y, z], "candidate", candidate=[[z, x, y]]) == [[2, 0, 1]]
    assert len(perms("l", [x, y, z], "interleave", spatial=[[x, y]], reduce=[[z]])) == 2
    assert perms("u", [x, y, z], "interleave_cuda", spatial=[[x, y]], reduce=[[z]]) == [[0, 2, 1]]


def test_axes_that_a_split_made_can_be_reordered() -> None:
    cfg = ConfigSpace()
    yo, yi = cfg.define_split("y", 8, num_outputs=2)
    xo, xi = cfg.define_split("x", 8, num_outputs=2)
    cfg.define_reorder("order", [yo, xo, yi, xi], "candidate", candidate=[[yo, xo, xi, yi]])
    assert list(cfg["order"].perm) == [0, 1, 3, 2]


def test_annotations_vectorize_one_axis_at_most() -> None:
    cfg = ConfigSpace()
    axes = [cfg.axis(4), cfg.axis(8)]
    cfg.define_annotate("ann", axes, policy="try_unroll_vec")
    found = [tuple(e.anns) for e in cfg.space_map["ann"].entities]
    assert len(found) == 8
    assert ("vec", "vec") not in found
    cfg.define_annotate("gpu", axes * 2, policy="bind_gpu")
    assert cfg["gpu"].anns == ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]
    cfg.define_annotate("virtual", axes * 2, policy="bind_gpu_virtual")
    assert cfg["virtual"].anns == ["fuse", "blockIdx.x", "vthread", "threadIdx.x"]
    cfg.define_annotate("cache", axes, policy="locate_cache", num_anchor=1)
    assert [list(e.anns) for e in cfg.space_map["cache"].entities] == [[0], [1]]
    with pytest.raises(RuntimeError, match="Invalid policy"):
        cfg.define_annotate("bad", axes, policy="try_fly")


def test_annotations_are_applied_within_their_limits() -> None:
    a = te.placeholder((4, 8), name="a")
    b = te.compute((4, 8), lambda i, j: a[i, j] + 1, name="b")
    s = te.create_schedule(b.op)
    cfg = ConfigSpace()
    AnnotateEntity(["unroll", "vec"]).apply(
        s, b, b.op.axis, axis_lens=[4, 8], max_unroll=16, vec_size=[8], cfg=cfg
    )
    assert cfg.valid()
    AnnotateEntity(["unroll", "none"]).apply(
        s, b, b.op.axis, axis_lens=[4, 8], max_unroll=2, cfg=cfg
    )
    assert cfg.errors == ["Too large factor for unrolling"]
    assert not cfg.valid()


def three_knobs() -> ConfigSpace:
    cfg = ConfigSpace()
    cfg.define_split("tile", cfg.axis(8), num_outputs=2)
    cfg.define_knob("unroll", [0, 16, 64])
    cfg.define_knob("vec", [True, False])
    return cfg


def test_indices_count_the_first_knob_fastest() -> None:
    cfg = three_knobs()
    assert (len(cfg), cfg.dims, cfg.range_length) == (24, [4, 3, 2], 24)
    assert cfg.point2knob(17) == [1, 1, 1]
    assert cfg.knob2point([1, 1, 1]) == 17
    assert all(cfg.knob2point(cfg.point2knob(i)) == i for i in range(24))
    entity = cfg.get(17)
    assert (entity["tile"].size, entity["unroll"].val, entity["vec"].val) == ([-1, 2], 16, False)
    assert str(entity) == "[('tile', [-1, 2]), ('unroll', 16), ('vec', False)],None,17"
    with pytest.raises(IndexError, match="size 24, got index 24"):
        cfg.get(24)
    with pytest.raises(KeyError, match="unrol"):
        entity["unrol"]


def test_a_space_prints_its_knobs() -> None:
    assert str(three_knobs()) == (
        "ConfigSpace (len=24, range_length=24, space_map=\n"
        "   0 tile: Split(policy=factors, product=8, num_outputs=2) len=4\n"
        "   1 unroll: OtherOption([0, 16, 64]) len=3\n"
        "   2 vec: OtherOption([True, False]) len=2\n)"
    )


def test_a_filter_leaves_points_out() -> None:
    cfg = three_knobs()
    cfg.multi_filter(lambda e: e["tile"].size[-1] * max(e["unroll"].val, 1) >= 64)
    valid = [i for i in range(24) if cfg.is_index_valid(i)]
    wanted = [i for i in range(24) if [1, 2, 4, 8][i % 4] * [1, 16, 64][i // 4 % 3] >= 64]
    assert valid == wanted
    assert (len(cfg), cfg.range_length) == (len(wanted), 24)
    assert cfg.get_next_index(valid[0]) == valid[1]
    assert cfg.get_next_index(valid[0], 2) == valid[2]
    assert cfg.get_next_index(valid[2], -1) == valid[1]
    assert cfg.get_next_index(valid[-1]) is None
    assert sorted(cfg.sample_ints(len(valid))) == valid
    assert {cfg.random_walk(valid[0]) for _ in range(50)} <= set(valid) - {valid[0]}
    assert cfg.get_rand_index(to_exclude=valid[1:]) == valid[0]
    with pytest.raises(IndexError, match="valid config"):
        cfg.get(0)


def test_a_walk_changes_one_knob() -> None:
    np.random.seed(0)
    cfg = three_knobs()
    start = cfg.point2knob(9)
    for _ in range(40):
        walked = cfg.point2knob(cfg.random_walk(9))
        assert sum(a != b for a, b in zip(start, walked, strict=True)) == 1


def test_samples_of_a_huge_space_are_different_points() -> None:
    cfg = ConfigSpace()
    for axis in range(6):
        cfg.define_knob(f"k{axis}", list(range(1000)))
    points = cfg.sample_ints(50)
    assert len(set(points)) == 50
    assert all(0 <= p < 10**18 for p in points)
    with pytest.raises(ValueError, match="24 points"):
        three_knobs().sample_ints(25)


def test_configurations_are_written_in_the_classic_json_form() -> None:
    entity = ConfigEntity(
        7,
        "ab",
        {
            "t": SplitEntity([-1, 4]),
            "r": ReorderEntity([1, 0]),
            "a": AnnotateEntity(["none", "vec"]),
            "o": OtherOptionEntity(16),
        },
        [],
    )
    written = entity.to_json_dict()
    assert written == {
        "index": 7,
        "code_hash": "ab",
        "entity": [
            ("t", "sp", [-1, 4]), ("r", "re", [1, 0]), ("a", "an", ["none", "vec"]), ("o", "ot", 16)
        ],
    }  # fmt: skip
    assert str(ConfigEntity.from_json_dict(written)) == str(entity)
    assert entity.get_other_option() == {"o": 16}
    assert entity.get_flatten_feature()[:2].tolist() == [-1, 4]
    with pytest.raises(RuntimeError, match="Invalid config knob type"):
        ConfigEntity.from_json_dict({"index": 0, "code_hash": None, "entity": [("x", "zz", 1)]})


def test_an_entity_defines_nothing_but_yields_the_same_axes() -> None:
    entity = three_knobs().get(3)
    assert len(entity.define_split("tile", 8, num_outputs=2)) == 2
    assert len(entity.define_reorder("r", [1, 2, 3], "all")) == 3
    assert entity["tile"].size == [-1, 8]


@pytest.mark.parametrize(
    ("length", "bounds", "sizes"),
    [(128, [-1, 8, 4], [4, 8, 4]), (49, [-1, 8, 4], [7, 7, 1]), (6, [-1, -1], [1, 6])],
)
def test_fallback_splits_take_the_longest_parts(
    length: int, bounds: list[int], sizes: list[int]
) -> None:
    cfg = FallbackConfigEntity()
    cfg.define_split("t", length, num_outputs=len(bounds))
    cfg.fallback_split("t", bounds)
    assert cfg["t"].size == sizes
    assert cfg.is_fallback


def test_a_bound_that_no_part_fits_is_rejected() -> None:
    cfg = FallbackConfigEntity()
    cfg.define_split("t", 49, num_outputs=3)
    with pytest.raises(RuntimeError, match="Cannot find feasible fallback split entity for node t"):
        cfg.fallback_split("t", [-1, 1, 0])
    with pytest.raises(ValueError, match="needs 3 bounds, got 2"):
        cfg.fallback_split("t", [-1, 1])


def test_a_value_set_before_the_definition_stays_in_a_fallback() -> None:
    cfg = FallbackConfigEntity()
    cfg["t"] = SplitEntity([-1, 16])
    cfg.define_split("t", 64, num_outputs=2)
    assert cfg["t"].size == [-1, 16]


def test_a_reference_log_gives_the_most_similar_record() -> None:
    records = []
    for length, inner in ((56, 7), (64, 16)):
        space = ConfigSpace()
        space.define_split("t", length, num_outputs=2, filter=lambda e, i=inner: e.size[1] == i)
        space.define_knob("u", [inner])
        task = autotvm.task.Task("reference", (length,))
        records.append((autotvm.MeasureInput(None, task, space.get(0)), None))
    cfg = FallbackConfigEntity()
    cfg.define_split("t", 128, num_outputs=2)
    cfg.define_knob("u", [0])
    cfg.fallback_with_reference_log(records)
    assert (cfg["t"].size, cfg["u"].val) == ([8, 16], 16)


def test_spaces_are_pickled() -> None:
    cfg = three_knobs()
    copy = pickle.loads(pickle.dumps(cfg))
    assert str(copy.get(5)) == str(cfg.get(5))


def test_the_filter_sees_each_point_once_until_it_is_forgotten() -> None:
    cfg = three_knobs()
    seen: list[int] = []

    def is_small(entity: ConfigEntity) -> bool:
        seen.append(entity.index)
        return entity["tile"].size[-1] < 4

    cfg.multi_filter(is_small)
    assert len(cfg) == len(cfg) == 12
    assert cfg.subrange_length(0, 12) == 6
    assert seen == list(range(24))
    cfg.clear_cache()
    assert len(cfg) == 12
    assert len(seen) == 48
    cfg.define_knob("more", [1, 2])
    assert len(cfg) == 24
