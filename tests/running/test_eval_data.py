"""fedgm eval on other data: what the run had set stays, all clients are measured, unfit data are refused."""

import pytest

import fedgm
from fedgm.data import hapt
from fedgm.errors import DataError, RefusedError

TINY = [
    "profile=tiny", "rounds=1", "clients.per_round=2", "local.unit=steps", "local.epochs=1",
    "local.batch_size=4", "trainer.workers=1", "track=none",
]  # fmt: skip
SMALL = [
    "model.layers=1",
    "model.heads=1",
    "model.width=8",
    "data.source.block=8",
    "data.source.test_share=0.5",
]
TRAINED, TESTED = "the quick brown fox", "he who brings rubs."


@pytest.fixture(scope="module")
def text_run(tmp_path_factory):
    """Three clients with a file each; only the training text of the first one has the letter z."""
    folder = tmp_path_factory.mktemp("texts")
    write(folder, "z" + TRAINED[1:] * 3)
    words = ["data=text", f"data.path={folder}", "clients.count=3", *SMALL]
    return fedgm.run([*TINY, *words, f"output_dir={tmp_path_factory.mktemp('o')}"]).folder


def write(folder, first):
    folder.mkdir(exist_ok=True)
    for number, trained in enumerate([first, TRAINED * 5, TRAINED]):
        (folder / f"{number}.txt").write_text(trained + (TESTED * 20)[: len(trained)])


def same(measured, expected):
    return measured == {key: pytest.approx(value, rel=1e-6) for key, value in expected.items()}


def test_all_owners_are_measured(text_run):
    assert same(fedgm.evaluate(text_run, ["data.test_samples=null"]), fedgm.evaluate(text_run))


def test_all_people_are_measured(tmp_path):
    try:
        hapt.STORED.content()
    except DataError:
        pytest.skip("HAPT cannot be fetched here")
    run = fedgm.run([*TINY, "data=hapt", "clients.count=4", f"output_dir={tmp_path}"]).folder
    every = fedgm.evaluate(run, ["data.test_samples=null"])
    assert same(every, fedgm.evaluate(run))
    assert not same(fedgm.evaluate(run, ["clients.count=1"]), every)


def test_other_text_is_read_with_the_vocabulary_of_the_run(text_run, tmp_path):
    write(tmp_path / "without_z", "t" + TRAINED[1:] * 3)
    expected = fedgm.evaluate(text_run)  # the test texts are the same
    assert same(fedgm.evaluate(text_run, [f"data.path={tmp_path / 'without_z'}"]), expected)
    write(tmp_path / "with_q", "ß" + TRAINED[1:] * 3)
    with pytest.raises(RefusedError, match=r"^data=text: .* cannot read it \(the character 'ß' is not in"):
        fedgm.evaluate(text_run, [f"data.path={tmp_path / 'with_q'}"])
    with pytest.raises(RefusedError, match="its tokens are bytes, not characters"):
        fedgm.evaluate(text_run, ["data.source.unit=bytes"])
    with pytest.raises(RefusedError, match=r"^data=text: its block is 4, the model has 8"):
        fedgm.evaluate(text_run, ["data.source.block=4"])


def test_what_the_run_had_set_stays_set(tmp_path):
    own = ["data.seed=7", "data.source.distractor=0.3", "data.test_samples=20", "data.train_samples=100"]
    words = [*TINY, "clients.count=5", *own, f"output_dir={tmp_path}"]
    run = fedgm.run(words).folder
    expected = fedgm.evaluate(run)
    assert same(fedgm.evaluate(run, ["data.test_samples=20"]), expected)
    assert not same(fedgm.evaluate(run, ["data.seed=0"]), expected)  # also where it is the usual value
    assert not same(fedgm.evaluate(run, ["data.source.distractor=0.9"]), expected)
    assert (50 * fedgm.evaluate(run, ["data.test_samples=50"])["test/acc"]) % 1 == pytest.approx(0, abs=1e-6)


def test_data_of_another_kind_are_refused(tmp_path, text_run):
    few = ["data.train_samples=100", "clients.count=5"]
    run = fedgm.run([*TINY, *few, f"output_dir={tmp_path}"]).folder
    (tmp_path / "a.txt").write_text(TRAINED * 40)
    with pytest.raises(RefusedError, match=r"^data=text: its num_classes is unknown, the model has 10"):
        fedgm.evaluate(run, ["data=text", f"data.path={tmp_path / 'a.txt'}", "clients.count=2"])
    with pytest.raises(RefusedError, match=r"^data=synthetic: its vocabulary is unknown"):
        fedgm.evaluate(text_run, ["data=synthetic"])
    with pytest.raises(
        RefusedError, match=r"^data=hapt: the run's model=\w+ does not fit it: it takes images"
    ):
        fedgm.evaluate(run, ["data=hapt"])
