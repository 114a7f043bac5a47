"""Files that are whole at every moment."""

import os
from pathlib import Path


def write_atomically(path: Path, content: str | bytes | memoryview) -> None:
    """Write beside the target, then replace it: a reader, or a kill, sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    data = content.encode() if isinstance(content, str) else content
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
