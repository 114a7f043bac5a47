"""Numbers of pickled pandas frames, without pandas: an unpickler that knows twelve names and no other."""

import io
import pickle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# numpy's own constructor of pickled arrays, found without naming its module, which moved in numpy 2.
_RECONSTRUCT = np.zeros(0, np.uint8).__reduce__()[0]


class Block(NamedTuple):
    """Columns of one kind: ``values[i]`` is the column ``names[i]``."""

    names: tuple[str, ...]
    values: NDArray[Any]


class Frame:
    """What a pickle says of a DataFrame or of the manager of its columns; no code of pandas runs."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _made(kind: Any, base: Any, state: Any) -> Frame:
    del base, state
    if kind is not Frame:
        raise pickle.UnpicklingError(f"it makes a {kind!r}, which is not allowed")
    return Frame()


def _encoded(text: Any, encoding: Any) -> bytes:
    """Protocol 2 has no bytes: they are pickled as latin-1 text."""
    if encoding != "latin1" or not isinstance(text, str):
        raise pickle.UnpicklingError(f"it encodes text as {encoding}, which is not allowed")
    return text.encode("latin-1")


def _index(kind: Any, parts: Any) -> Any:
    del kind
    return parts.get("data")


_KNOWN: dict[str, Any] = {  # by the names of Python 2, which protocol 2 uses
    "copy_reg._reconstructor": _made,
    "__builtin__.object": object,
    "__builtin__.slice": slice,
    "_codecs.encode": _encoded,
    "numpy.core.multiarray._reconstruct": _RECONSTRUCT,
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    "pandas.core.frame.DataFrame": Frame,
    "pandas.core.internals.managers.BlockManager": Frame,
    "pandas.core.indexes.base._new_Index": _index,
    "pandas.core.indexes.base.Index": Frame,
    "pandas.core.indexes.range.RangeIndex": Frame,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = f"{module_name}.{global_name}"
        if name not in _KNOWN:
            raise pickle.UnpicklingError(f"it asks for {name}, which is not allowed")
        return _KNOWN[name]


def unpickled(data: bytes) -> Any:
    """The pickled tree with its frames as :class:`Frame`; anything else that is not plain is refused."""
    return _Unpickler(io.BytesIO(data)).load()


def blocks(frame: Any) -> list[Block]:
    """A frame's columns, in the blocks in which pandas keeps them: those of one kind are one array."""
    if not isinstance(frame, Frame):
        raise pickle.UnpicklingError(f"a {type(frame).__name__} where a frame belongs")
    manager = frame.state["_data"]
    _, arrays, names = manager.state[:3]
    return [Block(tuple(map(str, n)), array) for n, array in zip(names, arrays, strict=True)]
