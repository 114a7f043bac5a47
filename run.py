"""One federated run, or many with ``-m``. Start here: python run.py --help."""

from fedgm.starting import quietly

if __name__ == "__main__":
    quietly()  # before the imports, which take seconds
    from fedgm.running.main import main

    main()
