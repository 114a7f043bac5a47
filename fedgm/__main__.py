"""The ``fedgm`` command, also as ``python -m fedgm``."""

from fedgm.starting import quietly


def command() -> None:
    """Guard the imports, then hand over to :mod:`fedgm.cli`."""
    quietly()
    from fedgm.cli import main

    main(prog_name="fedgm")


if __name__ == "__main__":
    command()
