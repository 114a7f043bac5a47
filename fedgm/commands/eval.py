"""A stored model on new data."""

from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, metavar="[data=...]... [clients.count=N] [trust=[PACKAGE]]")
@click.option(
    "--weights", type=click.Path(path_type=Path), help="A checkpoint of callbacks=model_checkpoint."
)
def command(run: Path, words: tuple[str, ...], weights: Path | None) -> None:
    """Measure the model of RUN on its test data, or on the test data of another source.

    \b
    fedgm eval RUN                                   # as the run did after its last round
    fedgm eval RUN data=npz data.path=new.npz        # on data of yours: x_test, y_test
    fedgm eval RUN data.test_samples=null            # on the whole test set
    fedgm eval RUN --weights RUN/model_checkpoint/best.ckpt

    What is not typed is as the run had it, unless data= names other data.
    Of data that belong to clients, the test data of all of the run's clients
    are measured; clients.count=N takes another number. Text is read with the
    vocabulary of the run. Pixels are normalised with the training images of
    the data that are named.
    """
    from fedgm.config.trust import trusted_words
    from fedgm.results.find import one
    from fedgm.running.evaluation import evaluate
    from fedgm.screen import Screen

    given = [word for word in words if not word.startswith("trust=")]
    measured = evaluate(run, given, trusted_words(words), weights)
    board, screen = one(str(run)).board, Screen()
    for column, value in measured.items():
        screen.say(f"{column}: {board.metric(column).show(value)}")
