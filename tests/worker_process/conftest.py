import sys

import pytest


@pytest.fixture(params=["fork", "single"])
def fork(request) -> bool:
    """The two ways in which a worker serves runs."""
    if request.param == "fork" and sys.platform != "linux":
        pytest.skip("workers fork on Linux only")
    return request.param == "fork"
