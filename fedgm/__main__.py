"""The ``fedgm`` command, also as ``python -m fedgm``."""

from fedgm.starting import quietly, with_output


@with_output()
def command() -> None:
    """Guard the imports, then hand over to :mod:`fedgm.commands`."""
    quietly()
    from fedgm.commands import main

    main(prog_name="fedgm")


if __name__ == "__main__":
    command()
