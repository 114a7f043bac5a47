"""The clients' hardware and habits: drawn laws, windows, and speeds from a file."""

import numpy as np
import pytest

from fedgm.errors import ConfigError
from fedgm.participation.devices import Devices, read_speeds

# Devices ---------------------------------------------------------------------------------------------


def test_drawn_properties_follow_their_laws():
    some = Devices(seed=0, step_time=2.0, speed_sigma=0.5, network=3.0, available=0.25, dropout=0.1)
    logs = np.log([some.speed(client) for client in range(4000)])
    assert (logs.mean(), logs.std()) == pytest.approx((0.0, 0.5), abs=0.03)
    delays = [some.seconds(7, 0, work) for work in range(4000)]
    assert np.mean(delays) == pytest.approx(3.0, rel=0.06)
    assert np.mean([some.opening(client, 123.0) == 123.0 for client in range(4000)]) == pytest.approx(
        0.25, abs=0.03
    )
    assert np.mean([some.drops(7, work) for work in range(4000)]) == pytest.approx(0.1, abs=0.02)
    assert Devices(seed=0, step_time=2.0).seconds(7, 5, 0) == 10.0


def test_windows_open_once_a_period():
    some = Devices(seed=0, available=0.25, period=100.0)
    opening = some.opening(3, 0.0) or some.opening(3, 50.0)
    assert some.opening(3, opening + 24.0) == opening + 24.0
    assert some.opening(3, opening + 26.0) == pytest.approx(opening + 100.0)


@pytest.mark.parametrize("name", ["speeds.txt", "speeds.csv", "speeds.npy"])
def test_speeds_from_a_file_are_cycled(tmp_path, name):
    path = tmp_path / name
    if name.endswith("npy"):
        np.save(path, np.array([1.0, 2.0, 4.0]))
    else:
        path.write_text("speed\n1\n2.0\n4e0  # fast\n\n" if name.endswith("csv") else "1\n2\n4\n")
    some = Devices(seed=0, speeds=str(path))
    assert [some.speed(client) for client in range(5)] == [1, 2, 4, 1, 2]
    assert some.seconds(2, steps=8, work=0) == 2.0


@pytest.mark.parametrize("text", ["", "speed\n", "1\ntwo\n", "1\n0\n", "1\n-2\n", "1,2\n", "nan\n1\n-1\n"])
def test_a_file_without_speeds_is_refused(tmp_path, text):
    path = tmp_path / "speeds.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"participation\.speeds=.*one positive number a client"):
        read_speeds(str(path))
