"""The ``fedgm`` command, also as ``python -m fedgm``."""

from fedgm.cli.starting import quietly


def command() -> None:
    """Guard the imports, then hand over to :mod:`fedgm.cli.group`."""
    quietly()
    from fedgm.cli.group import main

    main(prog_name="fedgm")


if __name__ == "__main__":
    command()
