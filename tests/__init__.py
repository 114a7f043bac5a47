"""Helpers of tests are imported from here: ``from tests.study.made_curves import made``."""
