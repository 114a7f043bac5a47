"""Errors that a user can act on: what failed, with which value, what is allowed, what to type."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path


class FedGMError(Exception):
    """Shown to the user as its message alone, without a traceback."""

    exit_code = 1  # something failed


class RefusedError(FedGMError):
    """What was asked for cannot be done: nothing has been started."""

    exit_code = 2


class ConfigError(RefusedError, ValueError):
    """A configuration value outside its range, named by the whole key that the user typed.

    >>> print(ConfigError("algorithm.beta", 2, "0 <= beta < 1", "algorithm.beta=0.9"))
    algorithm.beta=2: expected 0 <= beta < 1. Try algorithm.beta=0.9
    """

    verb = "expected "

    def __init__(self, key: str, value: object, allowed: str, hint: str) -> None:
        self.key, self.value, self.allowed, self.hint = key, value, allowed, hint
        super().__init__(f"{key}={value}: {self.verb}{allowed}. Try {hint}")

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[str, object, str, str]]:
        """Survive the way back from a joblib worker."""
        return type(self), (self.key, self.value, self.allowed, self.hint)


class ClashError(ConfigError):
    """A value that is fine by itself but not beside the rest; ``allowed`` says why, as a sentence.

    >>> print(ClashError("upload", "topk", "client=mifa needs whole updates", "upload=plain"))
    upload=topk: client=mifa needs whole updates. Try upload=plain
    """

    verb = ""


class DataError(FedGMError):
    """Data that cannot be fetched, read or split as asked."""


class UnfitDataError(RefusedError, DataError):
    """Data that are there, but not of the kind that was asked for."""


class RunLockedError(FedGMError):
    """Another process is working in the run folder."""


DOTTED = "the full dotted path; a module of yours must be installed, or its folder in PYTHONPATH"  # to type


def require(ok: bool, key: str, value: object, allowed: str, hint: str) -> None:
    """Raise :class:`ConfigError` unless ``ok``.

    >>> require(0 <= 2 < 1, "algorithm.beta", 2, "0 <= beta < 1", "algorithm.beta=0.9")
    Traceback (most recent call last):
    fedgm.errors.ConfigError: algorithm.beta=2: expected 0 <= beta < 1. Try algorithm.beta=0.9
    """
    if not ok:
        raise ConfigError(key, value, allowed, hint)


def require_fits(ok: bool, key: str, value: object, reason: str, hint: str) -> None:
    """Raise :class:`ClashError` unless ``ok``: ``reason`` is a sentence, not a range.

    >>> require_fits(False, "upload", "topk", "client=mifa needs whole updates", "upload=plain")
    Traceback (most recent call last):
    fedgm.errors.ClashError: upload=topk: client=mifa needs whole updates. Try upload=plain
    """
    if not ok:
        raise ClashError(key, value, reason, hint)


def near(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that was probably meant: the closest one, or the one whose last dotted word is closest.

    >>> near("algorithm.bata", ["algorithm.eta", "algorithm.beta"])
    'algorithm.beta'
    >>> near("lr", ["seed", "local.lr"])
    'local.lr'
    >>> near("rounds", ["seed"])
    """
    candidates = list(dict.fromkeys(names))
    if closest := get_close_matches(name, candidates, n=1, cutoff=cutoff):
        return closest[0]
    by_last_word = {candidate.rpartition(".")[2]: candidate for candidate in reversed(candidates)}
    closest = get_close_matches(name.rpartition(".")[2], by_last_word, n=1, cutoff=cutoff)
    return by_last_word[closest[0]] if closest else None


def require_working_folder() -> None:
    """Refuse to begin where the folder of the shell has been deleted: paths, Hydra and MKL need one."""
    try:
        Path.cwd()
    except OSError as error:
        raise RefusedError(
            f"the working directory is gone ({error.strerror}). Try cd and the command again"
        ) from None
