"""The two apps of a deployment: a ServerApp that serves a run, a ClientApp that does its orders."""
# pyright: reportMissingImports=false

import shlex
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid, ServerApp

from fedgm.errors import FedGMError
from fedgm.flower.post import Answer, Kind, Terms

PARCEL = "parcel"
PARTITION = "partition-id"
# Errors after which the same work may be asked for again; all others are an app's own.
LOST = (
    ErrorCode.UNKNOWN,
    ErrorCode.MESSAGE_UNAVAILABLE,
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE,
    ErrorCode.NODE_UNAVAILABLE,
    ErrorCode.CLIENT_APP_CRASHED,
)


class FlowerPost:
    """:class:`fedgm.flower.post.Post` over Flower's grid."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid

    def nodes(self) -> dict[int, str]:
        """Nodes that are online; a name is given when a node's key is registered."""
        return {int(node.node_id): str(node.name) for node in self.grid.get_nodes()}

    def push(self, node: int, kind: Kind, parcel: bytes, ttl: float) -> str:
        """One message."""
        message = Message(content=enclosed(parcel), dst_node_id=node, message_type=kind, ttl=ttl)
        (name,) = list(self.grid.push_messages([message]))
        if not name:
            raise FedGMError(f"the SuperLink does not take a message of {len(parcel):,} bytes")
        return name

    def pull(self, ids: Iterable[str]) -> list[Answer]:
        """What has come."""
        return [_answer(message) for message in self.grid.pull_messages(list(ids))]


def enclosed(parcel: bytes) -> RecordDict:
    """A parcel as Flower carries it: raw bytes, which nobody unpickles on the way."""
    array = Array(dtype="uint8", shape=(len(parcel),), stype="fedgm.parcel", data=parcel)
    return RecordDict({PARCEL: ArrayRecord({PARCEL: array})})


def parcel_in(content: Any) -> bytes:
    """The parcel of a message."""
    try:
        return content[PARCEL][PARCEL].data
    except (KeyError, TypeError, AttributeError):
        raise FedGMError("it is not a message of fedgm (there is no parcel in it)") from None


def _answer(message: Message) -> Answer:
    name = str(message.metadata.reply_to_message_id)
    if message.has_error():
        code, reason = message.error.code, str(message.error.reason).strip() or "no reason given"
        return Answer(name, error=f"{reason.splitlines()[0][:300]} (code {code})", lost=code in LOST)
    try:
        return Answer(name, parcel_in(message.content))
    except FedGMError as error:
        return Answer(name, error=str(error))


def server_app() -> ServerApp:
    """Serves the run that ``words`` of the run configuration names; the same words continue it.

    Also read from there: wait, timeout and min-replies (:class:`fedgm.flower.post.Terms`), and log, a file
    for what a command line would print.
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        from fedgm.flower.server import serve
        from fedgm.screen import Screen

        given = context.run_config
        terms = Terms(
            float(given.get("wait", Terms.wait)),
            float(given.get("timeout", Terms.timeout)),
            int(given.get("min-replies", Terms.min_replies)),
        )
        log = str(given.get("log", ""))
        console = Screen(file=Path(log).open("a", buffering=1) if log else None)  # noqa: SIM115 - until the end
        try:
            with warnings.catch_warnings():  # who is missing in a round is one: Flower's log alone hides it
                warnings.showwarning = lambda message, *_, **__: console.say(f"warning: {message}")
                serve(FlowerPost(grid), words_in(given), terms, console)
        except FedGMError as error:
            console.say(f"error: {error}")
            raise

    return app


def client_app() -> ClientApp:
    """Trains the node's client; ``partition-id`` of the node configuration says which one it is.

    Also read from there: state, a folder for what its client keeps, and words, for this node alone (where its
    data are).
    """
    app = ClientApp()

    @app.train()
    def train(message: Message, context: Context) -> Message:
        from fedgm.flower.node import STATE, work

        node = context.node_config
        state, own = Path(str(node.get("state", STATE))), words_in(node)
        client = int(node[PARTITION]) if PARTITION in node else None
        parcel = work(parcel_in(message.content), words_in(context.run_config), state, own, client)
        return Message(content=enclosed(parcel), reply_to=message)

    @app.query()
    def query(message: Message, context: Context) -> Message:
        if PARTITION not in context.node_config:
            raise FedGMError(f"it has no {PARTITION}. Try flower-supernode --node-config '{PARTITION}=0'")
        who = str(context.node_config[PARTITION]).encode()
        return Message(content=enclosed(who), reply_to=message)

    return app


def words_in(given: Any) -> list[str]:
    """The words of a command line that a configuration holds as one text."""
    return shlex.split(str(given.get("words", "")))
