"""Token arrays, windows and people's own text."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedgm.data import text
from fedgm.data.text import IGNORE, TextFederation
from fedgm.data.tokens import choose, tokenize, unigram_entropy
from fedgm.draws import generator
from fedgm.errors import ConfigError, DataError, RefusedError

PRINTABLE = st.text(st.characters(codec="utf-8"), min_size=3, max_size=60)


def digits(*lengths: int) -> dict[str, str]:
    """Client c says 0123456789012..., so that the successor of every token is known."""
    return {f"c{c}": "".join(str(i % 10) for i in range(n)) for c, n in enumerate(lengths)}


@given(st.lists(PRINTABLE, min_size=1, max_size=4), st.sampled_from(["characters", "bytes"]))
def test_every_token_of_every_client_is_in_train_or_test_and_reads_back(texts, unit):
    named = {str(number): words for number, words in enumerate(texts)}
    tokens = tokenize(named, unit, test_share=0.3)
    for client, words in enumerate(texts):
        parts = np.concatenate([tokens.train.of(client), tokens.test.of(client)])
        assert tokens.vocabulary.decode(parts) == words
        assert len(tokens.test.of(client)) == int(0.3 * len(parts))


def test_the_arrays_by_hand():
    tokens = tokenize({"x": "abacabad", "y": "dd"}, test_share=0.25)
    assert tokens.vocabulary.symbols == ("a", "b", "c", "d")
    assert tokens.train.tokens.tolist() == [0, 1, 0, 2, 0, 1, 3, 3]
    assert tokens.train.offsets.tolist() == [0, 6, 8]
    assert tokens.test.tokens.tolist() == [0, 3]
    assert tokens.test.offsets.tolist() == [0, 2, 2]  # a quarter of two tokens is none
    assert tokens.train.tokens.dtype == np.uint8
    assert tokens.train.tokens.base is None  # one array of its own
    many = tokenize({"x": "".join(map(chr, range(300)))})
    assert many.train.tokens.dtype == np.int32
    with pytest.raises(DataError, match="'z' is not in the vocabulary"):
        tokens.vocabulary.encode("az")


def test_unigram_entropy_by_hand():
    # shares 1/2, 1/4, 1/4: ln 2 / 2 + 2 ln 4 / 4 = 1.5 ln 2
    assert unigram_entropy(np.array([0, 0, 1, 2], np.uint8)) == pytest.approx(1.5 * math.log(2), abs=1e-12)


def test_windows_are_drawn_from_seed_round_and_client_and_stay_inside_the_client():
    federation = TextFederation(tokenize(digits(100, 50)), block=8, batch_size=4, seed=3)
    # client 1 has 45 training tokens from place 90 on: 37 starts
    rng = generator(3, "windows", 7, 1)
    for x, y in federation.batches(1, 7, 3):
        starts = rng.integers(37, size=4)
        expected = (starts[:, None] + np.arange(9)) % 10
        assert x.tolist() == expected[:, :-1].tolist()
        assert y.tolist() == expected[:, 1:].tolist()
    assert not torch.equal(next(federation.batches(1, 8, 1))[0], next(federation.batches(1, 7, 1))[0])


def test_the_last_window_is_drawn_and_nothing_beyond_it():
    texts = tokenize(digits(12), test_share=0.2)  # 10 tokens for training: 2 starts
    federation = TextFederation(texts, block=8, batch_size=1)
    drawn = {tuple(x[0].tolist()) for x, _ in federation.batches(0, 1, 50)}
    assert drawn == {tuple(range(8)), tuple(range(1, 9))}


def test_a_text_shorter_than_a_window_is_padded_with_targets_that_do_not_count():
    federation = TextFederation(tokenize(digits(4, 40)), block=6, batch_size=2)
    x, y = next(federation.batches(0, 1, 1))
    assert x.tolist() == [[0, 1, 2, 3, 3, 3]] * 2
    assert y.tolist() == [[1, 2, 3, IGNORE, IGNORE, IGNORE]] * 2


@pytest.mark.parametrize("split", ["test", "train"])
def test_evaluation_predicts_every_token_once_and_never_across_clients(split):
    texts = tokenize(digits(100, 33, 7), test_share=0.4)
    evaluation = TextFederation(texts, block=8, batch_size=1, eval_batch_size=3).evaluations()[split]
    lengths = (texts.test if split == "test" else texts.train).lengths
    found = [evaluation.batch(number) for number in range(len(evaluation))]
    targets = torch.cat([y[y != IGNORE] for _, y in found])
    assert len(targets) == sum(length - 1 for length in lengths)
    for x, y in found:
        counted = y != IGNORE
        assert torch.equal(y[counted], (x[counted] + 1) % 10)
    assert len(evaluation) == math.ceil(sum(math.ceil((n - 1) / 8) for n in lengths) / 3)


def test_a_fixed_part_of_the_evaluation():
    texts = tokenize(digits(1000, 1000))
    sizes = {"block": 8, "batch_size": 1, "eval_batch_size": 5, "test_windows": 5, "train_windows": 7}
    part = TextFederation(texts, **sizes).evaluations()
    assert [len(part[split].places) for split in ("test", "train")] == [5, 7]
    again = TextFederation(texts, **sizes, seed=1).evaluations()
    assert torch.equal(part["test"].batch(0)[0], again["test"].batch(0)[0])  # whatever the seed of training
    other = TextFederation(texts, **sizes, subset_seed=1).evaluations()
    assert not np.array_equal(part["test"].places, other["test"].places)
    with pytest.raises(ConfigError, match=r"data\.test_samples=0"):
        TextFederation(texts, batch_size=1, test_windows=0)


def test_sizes_and_steps_by_hand():
    federation = TextFederation(tokenize(digits(100, 50)), block=8, batch_size=5)
    assert [federation.size(0), federation.size(1)] == [12, 6]  # 89 / 8 and 44 / 8 targets, rounded up
    assert [federation.epoch(0), federation.epoch(1)] == [3, 2]
    assert (federation.count, dict(federation.facts)) == (2, {"vocabulary": 10, "block": 8})


def test_some_of_the_clients_are_drawn_and_keep_their_text():
    tokens = tokenize(digits(*range(20, 40)))
    few = choose(tokens, 5, seed=0)
    assert few.names != choose(tokens, 5, seed=1).names
    for client, name in enumerate(few.names):
        assert np.array_equal(few.train.of(client), tokens.train.of(tokens.names.index(name)))
        assert np.array_equal(few.test.of(client), tokens.test.of(tokens.names.index(name)))
    assert choose(tokens, None, seed=0) is tokens
    with pytest.raises(ConfigError, match=r"clients\.count=21: expected 1\.\.20"):
        choose(tokens, 21, seed=0)


# People's own text ----------------------------------------------------------------------------------------


def test_a_file_in_a_folder_is_a_client(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("bbbbbbbbbb")
    (tmp_path / "sub" / "a.txt").write_text("aaaaaaaaaaaaaaaaaaaa")
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "other.md").write_text("not asked for")
    tokens = text.load(str(tmp_path))
    assert tokens.names == ("b.txt", "sub/a.txt")
    assert tokens.train.lengths.tolist() == [9, 18]
    assert text.load(str(tmp_path), pattern="*.md").names == ("other.md",)
    with pytest.raises(ConfigError, match=r"has 2 files, and each is a client\. Try clients\.count=2"):
        text.load(str(tmp_path), clients=5)


def test_a_file_is_cut_into_equal_clients(tmp_path):
    (tmp_path / "one.txt").write_bytes("a\r\nb\u00e9cdefghij".encode("utf-8-sig"))
    tokens = text.load(str(tmp_path / "one.txt"), clients=3, test_share=0.0)
    whole = tokens.vocabulary.decode(tokens.train.tokens)
    assert whole == "a\r\nb\u00e9cdefghij"  # the byte order mark is gone, nothing else
    assert tokens.train.lengths.tolist() == [4, 4, 5]
    assert text.load(str(tmp_path / "one.txt")).count == 1
    assert len(text.load(str(tmp_path / "one.txt"), unit="bytes").vocabulary.symbols) == 256


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, {}, "there is no such file or folder"),
        (b"abc\xff\xfe", {}, "is not UTF-8 text"),
        (b"abcdefgh", {"clients": 3}, r"clients\.count=3: expected 1\.\.2"),
        (b"abcdefgh", {"unit": "words"}, r"data\.source\.unit=words: expected"),
        (b"abcdefgh", {"test_share": 1.0}, r"data\.source\.test_share=1\.0: expected"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, content, arguments, message):
    path = tmp_path / "own.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RefusedError, match=message):
        text.load(str(path), **arguments)


def test_a_text_of_one_token_is_said(tmp_path):
    (tmp_path / "own.txt").write_bytes(b"a")
    with pytest.raises(DataError, match="has 1 tokens; a prediction needs two"):
        text.load(str(tmp_path / "own.txt"))


def test_a_folder_without_text_and_no_path_at_all(tmp_path):
    with pytest.raises(DataError, match=r"no file below it matches \*\.txt") as caught:
        text.load(str(tmp_path))
    assert caught.value.exit_code == 2  # data that are there, but of no use, are refused
    with pytest.raises(ConfigError, match=r"data\.path=null"):
        text.load(None)
