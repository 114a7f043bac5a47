"""Random command lines from the schema: right, wrong, extreme and misspelt."""

import random
from functools import cache

import yaml
from omegaconf import OmegaConf

from fedgm.config import compose, conf_dir
from fedgm.config.refusals import keys

# Small enough for a second, with every kind of state that a run can keep.
SMALL = (
    "profile=tiny", "track.mode=disabled", "trainer.workers=1", "rounds=3", "data.train_samples=200",
    "data.test_samples=20", "eval.train_samples=20", "clients.count=6", "clients.per_round=2",
    "local.unit=steps", "local.epochs=1", "checkpoint.sync=false",
)  # fmt: skip
# Not touched: where results go, what asks the network, and Hydra's own.
APART = ("output_dir", "track.mode", "hydra", "winners", "best", "figure", "data.root", "data.path", "name")
GROUPS = (
    "algorithm", "schedule", "participation", "client", "upload", "model", "callbacks", "task", "data",
    "profile", "trainer", "track",
)  # fmt: skip
FETCHED = (
    "cifar10",
    "shakespeare",
    "hapt",
    "chitchat",
    "mnist",
    "fashion_mnist",
)  # data that would be asked of the network
VALUES = {
    "number": ("-1", "0", "1", "2", "3", "5", "1000000000", "1000000000000", "9223372036854775808", "1e30"),
    "real": ("0.5", "-0.5", "0.9999999", "1e-300", "1e300", "1e400", "nan", "inf", "-inf", "0.0", "1.0"),
    "other": (
        "null", "true", "false", "abc", "''", "[]", "[1]", "[1,2,3]", "{}", "{a:1}", "${seed}", "${nothing}",
        "${oc.env:HOME}", "???", "é", "'a b'", "../../x", "[[1]]", "0x10", "1_000", "-", "[null]", "[0,0]",
        "'$(id)'", "{_target_:os.getcwd}",
    ),
}  # fmt: skip


def random_words(draw: random.Random) -> list[str]:
    """One to three words after the small run's own."""
    chosen = [group_word(draw) for _ in range(draw.choice((0, 0, 1, 1, 2)))]
    known = [*_plain_keys(), *(key for word in chosen for key in _own_keys(word) * 8)]
    free = [key for key in known if not any(key == name or key.startswith(f"{name}.") for name in APART)]
    words = [value_word(draw, free) for _ in range(draw.choice((1, 1, 2)))]
    if any("profile" in word for word in chosen):  # other profiles bring data that would be fetched
        chosen.append("data=synthetic")
    return [*chosen, *[spoiled(draw, word) if draw.random() < 0.25 else word for word in words]]


@cache
def _plain_keys() -> list[str]:
    return keys(compose(SMALL))


@cache
def _own_keys(word: str) -> list[str]:
    """The keys that a group's option brings along."""
    group, _, option = word.partition("=")
    path = conf_dir() / group / f"{option}.yaml"
    return [f"{group}.{key}" for key in yaml.safe_load(path.read_text())] if path.is_file() else []


def group_word(draw: random.Random) -> str:
    group = draw.choice(GROUPS)
    options = sorted(path.stem for path in (conf_dir() / group).glob("*.yaml") if path.stem not in FETCHED)
    word = f"{group}={draw.choice(options)}"
    return spoiled(draw, word) if draw.random() < 0.15 else word


def value_word(draw: random.Random, known: list[str]) -> str:
    """A key with a value near its own, which mostly trains, or with any value, which mostly does not."""
    key = draw.choice(known)
    if draw.random() < 0.6:
        return f"{key}={near(draw, _own_value(key))}"
    kind = draw.choice(("number", "number", "real", "other"))
    return f"{key}={draw.choice(VALUES[kind])}"


def near(draw: random.Random, value: object) -> str:
    """Half, double, one more, one less, the other truth; anything else as it is."""
    if isinstance(value, bool):
        return str(draw.random() < 0.5).lower()
    if isinstance(value, int):
        return str(draw.choice((value, value + 1, value - 1, 2 * value, value // 2, value + 0.5)))
    if isinstance(value, float):
        return str(draw.choice((value, 2 * value, value / 2, value / 10, -value)))
    if isinstance(value, list):
        return f"[{','.join(near(draw, each) for each in value)}]"
    return "null" if value is None else str(value)


@cache
def _own_value(key: str) -> object:
    """What the small run, or the option that brings the key, has there; null where it is a reference."""
    value = OmegaConf.select(compose(SMALL), key)
    if value is None:
        group, _, rest = key.partition(".")
        parts = [yaml.safe_load(path.read_text()) for path in sorted((conf_dir() / group).glob("*.yaml"))]
        found = [part[rest] for part in parts if isinstance(part, dict) and rest in part]
        value = next((each for each in found if not isinstance(each, str | dict)), None)
    return OmegaConf.to_object(value) if OmegaConf.is_config(value) else value


def spoiled(draw: random.Random, word: str) -> str:
    """A misspelling, or a sign that does not belong there."""
    key, _, value = word.partition("=")
    place = draw.randrange(len(key))
    return draw.choice(
        (
            f"{key[:place]}{key[place + 1 :]}={value}",
            f"{key[:place]}x{key[place:]}={value}",
            f"{word[:-1]}",
            f"{word}x",
            f"+{word}",
            f"++{word}",
            f"~{key}",
            f"+{key}x={value}",
            key,
            f"{key}.x={value}",
            f"{word},{value}",
            f"{key}@{word}",
            f"{key}=={value}",
        )
    )
