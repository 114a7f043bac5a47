"""One browser for all tests of this folder."""

import pytest

from tests.dashboard.chromium import Chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()
