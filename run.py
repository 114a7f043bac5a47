"""One federated run, or many with ``-m``. Start here: python run.py --help."""

from fedgm.cli.starting import quietly

if __name__ == "__main__":
    quietly()  # before the imports, which take seconds
    from fedgm.job.main import main

    main()
