"""One federated run, or many with ``-m``. Start here: python run.py --help."""

from fedgm.main import main

if __name__ == "__main__":
    main()
