"""kombu's own tests of transports, t/integration/common.py of its sources, with tq://."""

import common
import kombu
import pytest

import tq.kombu  # noqa: F401


@pytest.fixture
def connection():
    return kombu.Connection("tq://")


@pytest.fixture
def invalid_connection():
    return kombu.Connection("tq://localhost:1")


@pytest.fixture
def failover_connection():
    return kombu.Connection("tq://localhost:1;tq://", connect_timeout=10)


for name, value in list(vars(common).items()):
    if isinstance(value, type) and value.__module__ == "common":
        globals()["Test" + name] = type("Test" + name, (value,), {})
