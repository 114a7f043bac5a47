"""Alg. 4 on nodes: every update that was stored is applied once, and the simulator replays the same bytes."""

import json
from collections import Counter

import pytest

import fedgm
from fedgm.errors import FedGMError, RefusedError
from fedgm.flower.parcel import unpack
from fedgm.flower.post import Answer, Terms
from fedgm.flower.server import serve
from tests.conftest import quick
from tests.flower.memory_post import WORDS, Killed, MemoryPost
from tests.flower.test_remote_runs import model, nan, rows

LIVE = ["participation=live", "clients.count=4", "clients.per_round=2", "rounds=8", "eval.every=8"]
QUICK = Terms(wait=0.5, poll=0.0)
pytestmark = pytest.mark.filterwarnings("ignore:client .: ")


def served(post, tmp_path, *words, terms=QUICK):
    return serve(post, [*WORDS, *LIVE, *words, f"output_dir={tmp_path / 'served'}"], terms)


def memory(tmp_path, *words):
    post = MemoryPost([*WORDS, *LIVE, *words], tmp_path / "nodes", clients=4)
    post.slow = {0: 1, 1: 2, 2: 3, 3: 8}  # one is much slower
    return post


def replayed(folder, tmp_path, *words):
    rest = [word for word in LIVE if word != "participation=live"]
    words = [*WORDS, *rest, *(word for word in words if not word.startswith("participation."))]
    words += ["participation=replay", f"participation.arrivals={folder}", "trainer.workers=1"]
    return fedgm.run([*words, f"output_dir={tmp_path / 'replayed'}"]).folder


def arrivals(folder):
    path = folder / "arrivals.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def require_each_once(folder, rounds=8, per_round=2):
    stored = arrivals(folder)
    assert [row["round"] for row in stored] == list(range(1, rounds + 1))
    numbers = Counter(number for row in stored for number in row["numbers"])
    assert len(numbers) == rounds * per_round
    assert set(numbers.values()) == {1}
    works = Counter((task[0], row["round"] - task[1]) for row in stored for task in row["tasks"])
    assert set(works.values()) == {1}  # no client's work on one model counts twice


CASES = {
    "fedgm": [],
    "scaffold": ["client=scaffold", "participation.staleness=polynomial"],
    "uneven work": ["participation.epochs=[1,3]", "participation.anchor=current"],
    "topk": ["upload=topk", "upload.share=0.1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_replay_ends_with_the_same_bytes(words, tmp_path):
    folder = served(memory(tmp_path, *words), tmp_path, *words).folder
    require_each_once(folder)
    ages = [task[1] for row in arrivals(folder) for task in row["tasks"]]
    assert max(ages) > 0
    assert any(task[0] == 3 for row in arrivals(folder) for task in row["tasks"])  # the slow one came, too
    assert model(replayed(folder, tmp_path, *words)) == model(folder)
    assert not (folder / "checkpoints").exists()  # nor the stored arrivals


@pytest.mark.slow
def test_work_that_got_lost_leaves_no_trace_in_what_a_client_keeps(tmp_path):
    post, came = memory(tmp_path, "client=scaffold"), Counter()

    def every_second(parcel):
        came[0] += 1
        return Answer("", error="the node is gone", lost=True) if came[0] % 2 == 0 else parcel

    post.faults = {0: every_second, 1: every_second}
    with pytest.warns(UserWarning, match="the node is gone"):
        folder = served(post, tmp_path, "client=scaffold").folder
    assert came[0] > 4
    assert model(replayed(folder, tmp_path, "client=scaffold")) == model(folder)


@pytest.mark.slow
def test_60_arrivals_one_node_ten_times_slower_one_killed_twice_and_the_server_too(tmp_path):
    long = ["rounds=30", "eval.every=30", "participation.max_staleness=20"]
    came = Counter()

    def killed_twice(parcel):
        came[1] += 1
        if came[1] not in (3, 7):
            return parcel
        post.replace(1)
        return Answer("", error="the node is gone", lost=True)

    for kill_at in (9, 14, None):  # looks of one server after the other
        post = memory(tmp_path, *long)
        post.slow[3] = 20  # looks; the others take 2 on average
        post.faults, post.kill_at = {1: killed_twice}, kill_at
        if kill_at is None:
            folder = served(post, tmp_path, *long).folder
        else:
            with pytest.raises(Killed):
                served(post, tmp_path, *long)
    require_each_once(folder, rounds=30)
    who = Counter(task[0] for row in arrivals(folder) for task in row["tasks"])
    assert who.total() == 60
    assert came[1] > 7  # it was killed twice, and came back
    assert 0 < who[3] < min(who[0], who[1], who[2])
    assert model(replayed(folder, tmp_path, *long)) == model(folder)


@pytest.mark.parametrize("look", quick([4, 9], 9))
def test_a_killed_server_loses_and_doubles_nothing(look, tmp_path):
    post = memory(tmp_path)
    post.kill_at = look
    with pytest.raises(Killed):
        served(post, tmp_path)
    (folder,) = (tmp_path / "served").glob("*/*/seed=0")
    stored = {path.stem: path.read_bytes() for path in (folder / "checkpoints" / "arrivals").glob("*")}
    again = served(memory(tmp_path), tmp_path)
    assert again.folder == folder
    require_each_once(folder)
    used = {f"{number:08d}" for row in arrivals(folder) for number in row["numbers"]}
    assert set(stored) <= used  # whatever was stored before the kill has been applied
    assert model(replayed(folder, tmp_path)) == model(folder)


@pytest.mark.slow
def test_rounds_after_the_last_checkpoint_are_computed_again_from_the_same_arrivals(tmp_path):
    words = ["checkpoint.every=4"]
    post = memory(tmp_path, *words)
    post.kill_when = lambda: len(stored_rows(tmp_path)) == 6  # two rounds after the checkpoint
    with pytest.raises(Killed):
        served(post, tmp_path, *words)
    (folder,), before = (tmp_path / "served").glob("*/*/seed=0"), stored_rows(tmp_path)
    there = sorted((folder / "checkpoints" / "arrivals").glob("*"))
    rounds = [unpack(path.read_bytes().partition(b"\n")[2])[1]["round"] for path in there]  # behind the seal
    assert max(rounds) > 5  # one that was trained on a model which must be computed again
    served(memory(tmp_path, *words), tmp_path, *words)
    require_each_once(folder)
    assert arrivals(folder)[:6] == before  # rounds 5 and 6, from what was stored
    used = {number for row in arrivals(folder) for number in row["numbers"]}
    assert {int(path.stem) for path in there} <= used
    assert model(replayed(folder, tmp_path, *words)) == model(folder)


def stored_rows(tmp_path):
    return [row for path in (tmp_path / "served").glob("*/*/seed=0") for row in arrivals(path)]


def waiting(tmp_path):
    """Files of arrivals that no round has used."""
    used = {number for row in stored_rows(tmp_path) for number in row["numbers"]}
    there = sorted((tmp_path / "served").glob("*/*/seed=0/checkpoints/arrivals/*.safetensors"))
    return [path for path in there if int(path.stem) not in used]


def test_a_damaged_arrival_is_named_and_the_run_goes_on(tmp_path):
    post = memory(tmp_path)
    post.kill_when = lambda: bool(waiting(tmp_path)) and len(stored_rows(tmp_path)) > 2
    with pytest.raises(Killed):
        served(post, tmp_path)
    damaged = waiting(tmp_path)[0]
    content = bytearray(damaged.read_bytes())
    content[-5] ^= 1
    damaged.write_bytes(content)
    with pytest.warns(UserWarning, match=f"{damaged.name} is damaged, and its update is lost"):
        folder = served(memory(tmp_path), tmp_path).folder
    require_each_once(folder)


@pytest.mark.slow
def test_a_node_that_keeps_failing_is_left_out_and_too_few_end_the_run(tmp_path):
    post = memory(tmp_path)
    post.faults = {2: nan}
    with pytest.warns(UserWarning, match="client 2: its update is not finite; it gets no more work"):
        folder = served(post, tmp_path).folder
    assert 2 not in {task[0] for row in arrivals(folder) for task in row["tasks"]}
    assert post.trained().count(2) == QUICK.tries
    broken = memory(tmp_path, "seed=1")
    broken.faults = dict.fromkeys((0, 1, 2), lambda parcel: Answer("", error="no disk"))
    gone = pytest.warns(UserWarning, match="client 1: no disk; it gets no more work")
    with gone, pytest.raises(FedGMError, match=r"of 2 updates have come") as error:
        served(broken, tmp_path, "seed=1")
    assert "client 0: no disk; client 1: no disk; client 2: no disk" in str(error.value)


def gone_at_most(times):
    """A fault that loses all work, and ends the test where that is asked for too often."""
    asked = Counter()

    def gone(parcel):
        asked["times"] += 1
        if asked["times"] > times:
            raise Killed
        return Answer("", error="the node is gone", lost=True)

    return gone


def test_where_all_work_gets_lost_the_run_ends(tmp_path):
    post = memory(tmp_path)
    post.faults = dict.fromkeys(range(4), gone_at_most(4 * QUICK.tries))
    warned = pytest.warns(UserWarning, match="client 1: the node is gone; it gets no more work")
    with (
        warned,
        pytest.raises(FedGMError, match=r"0 of 2 updates have come, no more can \(client 0: the node is"),
    ):
        served(post, tmp_path)


def test_a_reason_is_forgotten_when_the_client_comes_again(tmp_path):
    post, came = memory(tmp_path), Counter()

    def first_lost(parcel):
        came[0] += 1
        return Answer("", error="a hiccup", lost=True) if came[0] == 1 else parcel

    post.faults = {0: first_lost} | dict.fromkeys((1, 2, 3), lambda parcel: Answer("", error="no disk"))
    with pytest.warns(UserWarning, match="a hiccup"), pytest.raises(FedGMError) as error:
        served(post, tmp_path)
    assert "client 1: no disk" in str(error.value)
    assert "hiccup" not in str(error.value)


def test_a_node_beyond_the_clients_of_the_run_gets_no_work(tmp_path):
    post = memory(tmp_path)
    post.online |= {107: 7, 108: 8, 109: 9}
    assert served(post, tmp_path).status == "finished"
    assert set(post.trained()) == {0, 1, 2, 3}
    few = memory(tmp_path, "seed=1")
    few.online = {107: 7}
    with pytest.raises(FedGMError, match=r"node 107: it is client 7, and clients\.count=4 are 0 to 3"):
        served(few, tmp_path, "seed=1", terms=Terms(wait=0.1, poll=0.01))


def test_old_updates_are_discarded(tmp_path):
    post = memory(tmp_path, "participation.max_staleness=1")
    folder = served(post, tmp_path, "participation.max_staleness=1").folder
    assert sum(row["cohort/stale"] for row in rows(folder)) > 0
    assert max(task[1] for row in arrivals(folder) for task in row["tasks"]) <= 1


@pytest.mark.parametrize("nodes", [0, 1])
def test_with_too_few_nodes_it_ends(nodes, tmp_path):
    post = memory(tmp_path)
    post.online = {100 + client: client for client in range(nodes)}
    with pytest.raises(FedGMError, match="too few nodes online"):
        served(post, tmp_path, terms=Terms(wait=0.1, poll=0.01))


def test_only_a_deployment_has_a_real_clock(tmp_path):
    with pytest.raises(RefusedError, match=r"^participation=live: its clients arrive on a real clock"):
        fedgm.run([*WORDS, *LIVE, f"output_dir={tmp_path}"])


def test_mifa_is_refused(tmp_path):
    with pytest.raises(RefusedError, match=r"^client=mifa"):
        served(memory(tmp_path, "client=mifa"), tmp_path, "client=mifa")


@pytest.mark.parametrize("content", [None, "", "{}\n", '{"round": 2}\n', "[1]\n"])
def test_a_replay_of_nothing_is_refused(content, tmp_path):
    path = tmp_path / "arrivals.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RefusedError, match=r"^participation.arrivals="):
        replayed(tmp_path, tmp_path)


@pytest.mark.slow
def test_a_replay_has_no_more_rounds_than_arrivals(tmp_path):
    folder = served(memory(tmp_path), tmp_path).folder
    with pytest.raises(RefusedError, match=r"^rounds=9: .* has the arrivals of 8 rounds"):
        replayed(folder, tmp_path, "rounds=9")
