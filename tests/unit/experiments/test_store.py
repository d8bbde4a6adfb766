"""The store: kills, parallel writers, claims, merging."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from lanczosnet.experiments import store as stores
from lanczosnet.experiments.store import Store, StoreError, as_text, best_of, select
from line_builders import result_line


def line(name: str, seed: int = 0, finished: str = "2020-01-01", **more):
    return result_line(key_of(name), seed=seed, finished_at=finished, **more)


def key_of(name: str) -> str:
    return name.encode().hex().ljust(16, "0")


def names(lines) -> set[str]:
    """Of the lines of a store."""
    return {bytes.fromhex(key).rstrip(b"\0").decode() for key in lines}


def test_lines_come_back_and_new_ones_are_seen(tmp_path):
    writer, reader = Store(tmp_path / "s"), Store(tmp_path / "s")
    assert reader.lines() == {}
    writer.append(line("a", seconds=0.1 + 0.2))
    assert reader.lines()[key_of("a")]["seconds"] == 0.1 + 0.2
    writer.append(line("b"))
    Store(tmp_path / "s.jsonl").append(line("c"))
    assert names(reader.lines()) == {"a", "b", "c"}


def test_a_torn_last_line_is_ignored_and_gone_after_a_merge(tmp_path):
    store = Store(tmp_path / "s")
    store.append(line("a"))
    store.append(line("b"))
    (path,) = (tmp_path / "s").glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-7])
    again = Store(tmp_path / "s")
    assert names(again.lines()) == {"a"}
    again.append(line("b"))
    assert names(again.lines()) == {"a", "b"}
    assert again.merge() == 2
    assert [json.loads(text)["key"] for text in (tmp_path / "s.jsonl").read_text().splitlines()] == [
        key_of("a"),
        key_of("b"),
    ]
    assert not (tmp_path / "s").exists()
    assert names(again.lines()) == names(Store(tmp_path / "s").lines()) == {"a", "b"}


def test_a_line_that_is_finished_later_is_read_whole(tmp_path):
    store = Store(tmp_path / "s")
    (tmp_path / "s").mkdir()
    text = as_text(line("a")).encode()
    path = tmp_path / "s" / "worker.jsonl"
    path.write_bytes(text[:20])
    assert store.lines() == {}
    path.write_bytes(text)
    assert names(store.lines()) == {"a"}


def test_what_is_no_result_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "s.jsonl").write_text(as_text(line("a")) + '{"key": "1"}\n')
    with pytest.raises(StoreError, match=r"s\.jsonl, line 2: key: expected .*\. Delete this line"):
        Store(tmp_path / "s").lines()


PRELUDE = (
    "import json, sys, time\nfrom lanczosnet.experiments import Store\nstore, name = Store(sys.argv[1]), sys.argv[2]\n"
)
WRITE = """
template = json.loads(sys.argv[3])
for i in range(50):
    store.append(template | {"key": f"{name}{i}".encode().hex().ljust(16, "0"), "hardware": "x" * 3000, "seed": i})
"""
CLAIM_ALL = """
with store.claiming(f"k{i}" for i in range(100)) as mine:
    print(json.dumps(mine), flush=True)
    sys.stdin.readline()
"""


def process(path, code: str, name: str) -> subprocess.Popen:
    command = [sys.executable, "-c", PRELUDE + code, str(path), name, json.dumps(line("a"))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_parallel_writers_lose_and_mix_nothing(tmp_path):
    for writer in [process(tmp_path / "s", WRITE, name) for name in "abcd"]:
        writer.communicate()
        assert writer.returncode == 0
    assert names(Store(tmp_path / "s").lines()) == {f"{name}{i}" for name in "abcd" for i in range(50)}


def test_no_two_workers_get_the_same_run(tmp_path):
    workers = [process(tmp_path / "s", CLAIM_ALL, name) for name in "abcd"]
    claimed = [key for worker in workers for key in json.loads(worker.stdout.readline())]
    for worker in workers:
        worker.communicate("done\n")
    assert sorted(claimed) == sorted(f"k{i}" for i in range(100))
    assert Store(tmp_path / "s").running() == set()


def test_a_claim_holds_until_its_block_ends(tmp_path):
    one, two = Store(tmp_path / "s"), Store(tmp_path / "s")
    with one.claiming(["a", "b"]) as first:
        assert first == ["a", "b"]
        assert two.running() == {"a", "b"}
        with two.claiming(["b", "c"]) as second:
            assert second == ["c"]
    with two.claiming(["a"]) as third:
        assert third == ["a"]


def test_the_claim_of_a_killed_worker_is_taken_over(tmp_path):
    worker = process(tmp_path / "s", CLAIM_ALL, "a")
    assert "k7" in worker.stdout.readline()
    store = Store(tmp_path / "s")
    with store.claiming(["k7"]) as mine:
        assert mine == []
    worker.kill()
    worker.communicate()
    assert store.running() == set()
    with store.claiming(["k7"]) as mine, Store(tmp_path / "s").claiming(["k7"]) as other:
        assert (mine, other) == (["k7"], [])
    assert not list((tmp_path / "s" / "claims").glob("k7.*"))


KILLED_WHILE_IT_CLAIMS = """
import os, pathlib, signal
def killed(*arguments, **options): os.kill(os.getpid(), signal.SIGKILL)
{place} = killed
with store.claiming(["a"]): pass
"""


@pytest.mark.parametrize("place", ["os.link", "pathlib.Path.unlink"], ids=["before", "after"])
def test_a_worker_that_is_killed_while_it_claims_leaves_a_claim_with_an_owner_or_none(tmp_path, place):
    worker = process(tmp_path / "s", KILLED_WHILE_IT_CLAIMS.format(place=place), "a")
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    store = Store(tmp_path / "s")
    assert store.running() == set()
    with store.claiming(["a"]) as mine:
        assert mine == ["a"]
    store.append(line("a"))
    store.merge()
    assert not (tmp_path / "s").exists()


def test_claims_do_without_hard_links(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    one, two = Store(tmp_path / "s"), Store(tmp_path / "s")
    with one.claiming(["a"]) as first, two.claiming(["a", "b"]) as second:
        assert (first, second) == (["a"], ["b"])
        assert one.running() == {"a", "b"}
    monkeypatch.setattr(stores, "_is_alive", lambda path: False)
    with one.claiming(["a"]) as first:
        assert first == ["a"]


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"host": 5}', '{"host": "here", "process": 1e400}', "\xff", "x" * 9999]
)
def test_a_claim_that_nobody_can_read_holds_until_it_is_stale(tmp_path, content):
    claim = tmp_path / "s" / "claims" / "a.0"
    claim.parent.mkdir(parents=True)
    claim.write_text(content)
    store = Store(tmp_path / "s")
    assert store.running() == {"a"}
    os.utime(claim, (1, 1))
    with store.claiming(["a"]) as mine:
        assert mine == ["a"]


def test_a_claim_from_the_future_holds_no_run(tmp_path):
    claim = tmp_path / "s" / "claims" / "a.0"
    claim.parent.mkdir(parents=True)
    claim.write_text(json.dumps({"host": "elsewhere", "process": 1}))
    os.utime(claim, (time.time() + 60,) * 2)  # of a machine whose clock is a minute ahead
    store = Store(tmp_path / "s")
    assert store.running() == {"a"}
    os.utime(claim, (time.time() + 10 * 365 * 86400,) * 2)
    assert store.running() == set()
    with store.claiming(["a"]) as mine:
        assert mine == ["a"]


def test_a_claim_from_elsewhere_is_stale_when_it_was_not_renewed(tmp_path):
    (tmp_path / "s" / "claims").mkdir(parents=True)
    claim = tmp_path / "s" / "claims" / "a.0"
    claim.write_text(json.dumps({"host": "elsewhere", "process": 1}))
    store = Store(tmp_path / "s")
    assert store.running() == {"a"}
    long_ago = time.time() - stores.STALE - 1
    os.utime(claim, (long_ago, long_ago))
    assert store.running() == set()
    with store.claiming(["a"]) as mine:
        assert mine == ["a"]


def test_a_living_worker_renews_its_claims(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "BEAT", 0.02)
    store = Store(tmp_path / "s")
    with store.claiming(["a"]):
        claim = tmp_path / "s" / "claims" / "a.0"
        os.utime(claim, (1, 1))
        deadline = time.monotonic() + 5
        while claim.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert store.running() == {"a"}


def test_duplicates_are_resolved_alike_in_any_order():
    early, late = line("a", finished="2020-01-01"), line("a", finished="2021-01-01")
    failed, again = line("a", finished="2019-01-01", error="x"), line("a", finished="2022-01-01", error="y")
    for order in ([early, late, failed, again], [again, late, early, failed], [failed, early, again, late]):
        assert best_of(order)[key_of("a")] is early
    assert best_of([failed, again])[key_of("a")] is best_of([again, failed])[key_of("a")] is again


def test_merging_is_the_union_and_the_same_bytes_in_any_order(tmp_path):
    for name, keys in (("one", "ab"), ("two", "bc")):
        store = Store(tmp_path / name)
        for key in keys:
            store.append(line(key, seed=ord(key), finished=f"202{len(name)}-01-0{ord(key) - 96}"))
    for target, sources in (("x", ("one", "two")), ("y", ("two", "one"))):
        assert Store(tmp_path / target).merge([Store(tmp_path / source) for source in sources]) == 3
    assert (tmp_path / "x.jsonl").read_bytes() == (tmp_path / "y.jsonl").read_bytes()
    assert names(Store(tmp_path / "one").lines()) == {"a", "b"}


def test_a_store_with_runs_under_way_is_not_merged(tmp_path):
    store = Store(tmp_path / "s")
    with store.claiming(["a"]), pytest.raises(StoreError, match=r"1 runs of .* are under way"):
        Store(tmp_path / "s").merge()


def test_a_reader_notices_that_a_file_was_replaced(tmp_path):
    reader = Store(tmp_path / "s")
    Store(tmp_path / "s").append(line("m", seed=1, hardware="x" * 50))
    Store(tmp_path / "s").merge()
    assert names(reader.lines()) == {"m"}
    for key in "abc":
        Store(tmp_path / "s").append(line(key))
    Store(tmp_path / "s").merge()
    assert names(reader.lines()) == set("abcm")


def test_merging_spares_the_file_of_a_worker_that_lives(tmp_path):
    worker = process(tmp_path / "s", WRITE + "print('ready', flush=True); sys.stdin.readline()" + WRITE, "a")
    assert worker.stdout.readline() == "ready\n"
    assert Store(tmp_path / "s").merge() == 50
    assert len(list((tmp_path / "s").glob("*.jsonl"))) == 1
    worker.communicate("go\n")
    assert Store(tmp_path / "s").merge() == 50
    assert not (tmp_path / "s").exists()


def test_a_folder_of_stores_is_read_as_one(tmp_path):
    Store(tmp_path / "r" / "one").append(line("a"))
    Store(tmp_path / "r" / "two").append(line("b"))
    Store(tmp_path / "r" / "two").merge()
    assert names(Store(tmp_path / "r").lines()) == {"a", "b"}


def test_lines_are_queried_by_their_fields():
    lines = [line("a", seed=0), line("b", seed=1), line("c", seed=1, model="n")]
    assert [found["key"] for found in select(lines, seed=[1], model=["m", "k"])] == [key_of("b")]
    assert select(lines, seed=None) == lines
    assert select([{"key": "torn out"}], table=["qm8"]) == []
