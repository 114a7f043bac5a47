"""The Hydra entry point behind ``run.py`` and ``fedgm run``."""

import os
import re
import sys
import traceback
from argparse import ArgumentError
from collections.abc import Sequence
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from fedgm import config
from fedgm.config.refusals import ERRORS
from fedgm.errors import FedGMError, RefusedError, RunLockedError, near, require_working_folder
from fedgm.plain import message
from fedgm.starting import with_output

FULL = "HYDRA_FULL_ERROR"  # set by a user: Hydra's own traceback
_begun: list[bool] = []  # whether Hydra has taken the words: what is raised after that is not about them


def task(cfg: DictConfig) -> dict[str, Any]:
    """One job. Alone it ends the process with a message; in a multirun it reports and lets others run."""
    _begun.append(True)
    hydra_config = HydraConfig.get()
    alone = hydra_config.mode != RunMode.MULTIRUN
    from fedgm.running.start import execute
    from fedgm.screen import Screen

    try:
        with with_output():  # here too: of an OSError Hydra would print all words before our line
            result = execute(cfg, list(hydra_config.overrides.task), Screen(), alone)
    except FedGMError as error:
        print(f"error: {message(error)}", file=sys.stderr)
        if alone:
            raise SystemExit(error.exit_code) from None
        return {"status": _end(error), "reason": str(error)}
    except KeyboardInterrupt:
        from fedgm.running.wandb_run import in_sweep_agent

        # Of a multirun, too: who stops one job means all. Of a sweep agent it is the end that early_terminate
        # wants: the agent takes codes above 0 for failures, and gives up after five at its start.
        raise SystemExit(0 if in_sweep_agent() else 130) from None
    except Exception as error:
        if alone:
            raise
        traceback.print_exc()
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    from fedgm.running.terminal import ending
    from fedgm.tasks.metric import scoreboard

    board, final = scoreboard(result.summary), ending(result.summary)["final"] or {}
    return {
        "status": result.status,
        "folder": str(result.folder),
        "metric": board.headline.replace("/", " "),
        "shown": board.show(board.headline, final),
    }


def _end(error: FedGMError) -> str:
    """How a job of a multirun ended that raised this."""
    if isinstance(error, RunLockedError):
        return "busy"
    return "refused" if isinstance(error, RefusedError) else "failed"


@with_output()
def main() -> None:
    """Compose with Hydra and run; what Hydra refuses is reported in our words, with exit code 2."""
    try:
        require_working_folder()
        require_options(sys.argv[1:])
        sys.argv[1:] = config.with_plain_paths(sys.argv[1:])
    except RefusedError as error:
        print(f"error: {message(error)}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    config.register()
    before = os.environ.get(FULL)
    os.environ[FULL] = "1"  # Hydra raises instead of printing
    _begun.clear()
    try:
        hydra.main(version_base="1.3", config_path=str(config.conf_dir()), config_name="config")(task)()
    except KeyboardInterrupt:  # between two jobs, or while the result is drawn
        raise SystemExit(130) from None
    except ERRORS as error:
        words = [word for word in sys.argv[1:] if not word.startswith("-")]
        if before == "1" or (_begun and not isinstance(error, HydraException | OmegaConfBaseException)):
            raise
        print(f"error: {message(config.refusal(error, words))}", file=sys.stderr)
        raise SystemExit(2) from None
    finally:  # processes that this one starts later decide for themselves
        del os.environ[FULL]
        os.environ |= {} if before is None else {FULL: before}


def require_options(words: Sequence[str]) -> None:
    """Refuse an option that Hydra does not have, and name the closest one."""
    from hydra._internal.utils import get_args_parser

    parser = get_args_parser()
    parser.exit_on_error = False
    options = re.findall(r"--[a-z-]+", parser.format_usage())
    try:
        unknown = parser.parse_known_args(list(words))[1]
    except ArgumentError as error:
        raise RefusedError(f"{error}. Try --hydra-help, which lists all options") from None
    for word in unknown:
        name = word.partition("=")[0]
        if not name.startswith("-"):
            raise RefusedError(f"{word}: expected all key=value words side by side. Put options after them")
        hint = near(name, options) or "--hydra-help, which lists all options"
        raise RefusedError(f"{name}: expected one of {', '.join(options)}. Try {hint}")
