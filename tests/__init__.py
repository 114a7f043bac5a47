"""Helpers of tests are imported from here: ``from tests.unit.made_curves import made``."""
