"""A browser for the tests of this folder, started once."""

import pytest
from tests.system.chromium import Chromium


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()
