"""One browser for all tests of this folder, and the page that two of them open."""

import pytest

from tests.dashboard.chromium import Chromium
from tests.dashboard.dashboard_runs import store_page, write_grid, write_run


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """The page of a grid, and of two shorter runs."""
    place = tmp_path_factory.mktemp("tools")
    write_grid(place / "runs")
    for name in ("fedavg", "fedgm"):
        write_run(place / "runs" / f"short {name}", name, rounds=50)
    return store_page(place / "runs", place / "page.html")
