"""The real chats from their real source; the first run on a machine fetches eight megabytes."""

import hashlib
import io
import json
import zipfile

import pytest

from fedgm.config import compose, validate
from fedgm.data import chitchat
from fedgm.data.fetching import silent
from fedgm.data.tokens import unigram_entropy
from fedgm.errors import ConfigError, DataError
from fedgm.running.parts import load_clients
from tests.e2e.commands import TINY


@pytest.fixture(scope="module")
def senders():
    try:
        return chitchat.load()
    except DataError as error:
        if "cannot be fetched" in str(error):
            pytest.skip("the chats cannot be fetched here")
        raise


def wheel(conversations: object) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("chitchat_dataset/dataset.json", json.dumps(conversations))
    return file.getvalue()


def said(sender: str, time: str, text: str) -> dict[str, str]:
    return {"sender": sender, "timestamp": f"2018-05-02T19:38:{time}Z", "text": text}


def test_the_real_senders(senders):
    assert senders.count == 463
    assert (len(senders.train.tokens), len(senders.test.tokens)) == (11_031_640, 1_225_511)
    assert len(senders.vocabulary.symbols) == 96  # printable ASCII, and the end of a message
    assert unigram_entropy(senders.test.tokens) == pytest.approx(3.1097, abs=1e-4)
    content = senders.train.tokens.tobytes() + senders.test.tokens.tobytes()
    assert hashlib.sha256(content).hexdigest() == (
        "140103d0603fa41d29e1270b62bc665e5cc618059c33aeb9c1afff891967d030"
    )


def test_messages_of_a_sender_stand_in_the_order_of_time():
    content = {
        "b": {"messages": [[said("y", "05", "later"), said("x", "06", "end")], [said("y", "01", "first")]]},
        "a": {"messages": [[said("x", "02", "hello")]]},
    }
    assert chitchat.read_wheel(wheel(content), silent) == b"\fx\nhello\nend\n\fy\nfirst\nlater\n"


@pytest.mark.parametrize("archive", [b"PK no", wheel([1]), wheel({"a": {"messages": [[{"text": "x"}]]}})])
def test_a_wheel_of_another_content_is_refused(archive):
    with pytest.raises(DataError, match=r"is not the package chitchat-dataset==0\.9\.0"):
        chitchat.STORED.decoded(archive, silent)


def test_a_run_has_the_senders_that_were_asked_for(senders):
    words = [*TINY, "data=chitchat"]
    assert validate(compose(words)).clients.count == 463
    few = load_clients(validate(compose([*words, "clients.count=8", "clients.per_round=2"])))
    assert few.count == 8
    assert few.facts == {"vocabulary": 96, "block": 64}
    assert all(len(few.held_out(client)) for client in range(8))
    with pytest.raises(ConfigError, match=r"clients\.count=464: expected 1\.\.463"):
        load_clients(validate(compose([*words, "clients.count=464"])))
    with pytest.raises(ConfigError, match=r"data\.source\.min_characters=3"):
        load_clients(validate(compose([*words, "data.source.min_characters=3"])))
