"""Hydra's own options, checked before Hydra sees them: it answers a misspelt one with its usage."""

import re
from argparse import ArgumentError
from collections.abc import Sequence
from difflib import get_close_matches

from fedgm.errors import RefusedError


def require_options(words: Sequence[str]) -> None:
    """Refuse an option that Hydra does not have, and name the near one."""
    from hydra._internal.utils import get_args_parser

    parser = get_args_parser()
    parser.exit_on_error = False
    known = re.findall(r"--[a-z-]+", parser.format_usage())
    try:
        unknown = parser.parse_known_args(list(words))[1]
    except ArgumentError as error:
        raise RefusedError(f"{error}. Try --hydra-help, which lists all options") from None
    for word in unknown:
        name = word.partition("=")[0]
        if not name.startswith("-"):
            raise RefusedError(f"{word}: expected all key=value words side by side. Try options behind them")
        meant = get_close_matches(name, known, n=1) or ["--hydra-help, which lists all options"]
        raise RefusedError(f"{name}: expected one of {', '.join(known)}. Try {meant[0]}")
