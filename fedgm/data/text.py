"""People's own text: a folder in which each file is a client, or one file cut into equal clients."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from fedgm.data.tokens import TokenSet, tokenize
from fedgm.data.windows import TextFederation, from_run
from fedgm.errors import ClashError, ConfigError, DataError, UnfitDataError, require, require_fits

if TYPE_CHECKING:
    from fedgm.config import RunConfig

ALLOWED = "a text file, or a folder of text files, each of which is a client"


@dataclass(frozen=True)
class Text:
    """``data=text``: ``clients.count`` is the number of files, or of pieces of the one file."""

    path: str | None
    block: int = 64
    unit: str = "characters"
    test_share: float = 0.1
    pattern: str = "*.txt"

    def federate(self, config: "RunConfig") -> TextFederation:
        """The clients of a run."""
        texts = load(self.path, self.unit, self.test_share, config.clients.count, self.pattern)
        return from_run(texts, self.block, config)


def load(
    path: str | None,
    unit: str = "characters",
    test_share: float = 0.1,
    clients: int | None = None,
    pattern: str = "*.txt",
) -> TokenSet:
    """A folder gives one client per file that matches ``pattern``; a file is cut into ``clients`` pieces.

    The test text is the last ``test_share`` of every client, also where a file is cut.
    """
    if path is None:
        raise ConfigError("data.path", "null", ALLOWED, "data.path=my.txt")
    place = Path(path).expanduser()
    if place.is_dir():
        texts = _folder(place, pattern)
        require_fits(
            clients in (None, len(texts)),
            "clients.count",
            clients,
            f"{place} has {len(texts)} files, and each is a client",
            f"clients.count={len(texts)}",
        )
    elif place.is_file():
        texts = _pieces(_read(place), clients or 1, place.stem)
    else:
        raise ClashError("data.path", path, f"there is no such file or folder; it must be {ALLOWED}", "ls")
    return tokenize(texts, unit, test_share)


def _folder(folder: Path, pattern: str) -> dict[str, str]:
    """Text by path below the folder, sorted; files without text are left out."""
    files = sorted(file for file in folder.rglob(pattern) if file.is_file())
    texts = {file.relative_to(folder).as_posix(): _read(file) for file in files}
    texts = {name: text for name, text in texts.items() if text.strip()}
    if not texts:
        raise UnfitDataError(
            f"data.path={folder}: no file below it matches {pattern}. Try data.source.pattern=*.md"
        )
    return texts


def _pieces(text: str, clients: int, stem: str) -> dict[str, str]:
    """Equal consecutive pieces; sizes differ by one character at most."""
    most = len(text) // 4  # two tokens to train on and two to test on
    require(1 <= clients <= max(most, 1), "clients.count", clients, f"1..{most}", f"clients.count={most}")
    ends = [len(text) * piece // clients for piece in range(clients + 1)]
    return {f"{stem}-{piece}": text[begin:end] for piece, (begin, end) in enumerate(pairwise(ends))}


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnfitDataError(
            f"data.path: {file} is not UTF-8 text ({error.reason} at byte {error.start}).\n"
            f"Convert it: iconv -f latin1 -t utf-8 {file.name} > converted.txt"
        ) from error
    except OSError as error:
        raise DataError(f"data.path: {file} cannot be read: {error.strerror or error}") from error
