"""Matrices without a name live as long as their client, and not for ever behind it."""

import subprocess
import sys
import time

import gemmd
import numpy as np
import pytest
from gemmd.renewals import Renewals

from conftest import Server

ONE = np.ones((4, 4))
KILLED = """
import sys, gemmd, numpy as np
g = gemmd.connect(sys.argv[1])
held = g.put(np.ones((4, 4)))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def brief():
    running = Server("--unnamed-ttl=3s")
    yield running
    running.kill()


def killed_with_a_matrix(server):
    client = subprocess.Popen(
        [sys.executable, "-c", KILLED, server.address],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert client.stdout.readline() == b"ready\n"
    client.kill()
    client.communicate()


def test_what_a_killed_client_held_expires_and_what_others_hold_stays(brief):
    with gemmd.connect(brief.address) as g:
        assert g.info().limits.unnamed_ttl == 3
        before = g.info().matrices_expired
        held = [g.put(ONE), g.keep(ONE, ONE), g.random((4, 4))]  # the oldest
        own = g.put(ONE, ttl=1)  # which is not renewed
        detached = g.put(ONE).detach()
        named = g.put(ONE, name="stays")
        killed_with_a_matrix(brief)
        del detached
        while g.info().matrices_expired < before + 3:
            time.sleep(0.05)
        ids = {matrix.id for matrix in g.matrices()}
        assert ids == {handle.id for handle in [*held, named]}
        with pytest.raises(gemmd.LostHandle):
            own.numpy()
        g.delete("stays")


def test_of_a_server_without_such_a_time_nothing_expires():
    server = Server("--unnamed-ttl=0")
    try:
        with gemmd.connect(server.address) as client:
            client.put(ONE)
            handle = client.put(ONE)
            assert client._janitor.renewals.wait() is None
            assert [m.expires for m in client.matrices() if m.id == handle.id] == [None]
    finally:
        server.kill()


def test_the_default_is_an_hour(g):
    with g.put(ONE) as handle:
        assert g.info().limits.unnamed_ttl == 3600
        (found,) = (matrix for matrix in g.matrices() if matrix.id == handle.id)
        assert 3500 < (found.expires - found.created).total_seconds() < 3700


def test_renewals_that_take_long_keep_no_deletion_waiting(brief, monkeypatch):
    def slowly(self, refs):
        time.sleep(0.3 * len(refs))
        return True

    monkeypatch.setattr(Renewals, "_use", slowly)
    with gemmd.connect(brief.address) as g:
        held = [g.put(ONE, name=f"slow{i}") for i in range(20)]
        for handle in held:  # six seconds of renewals in each quarter of three
            g._janitor.renewals.add(handle)
        time.sleep(1)
        g._janitor.delete(held[0]._ref)
        begun = time.monotonic()
        while g.exists("slow0"):
            assert time.monotonic() < begun + 2
            time.sleep(0.05)
        g.delete(prefix="slow")


def test_several_are_under_way_at_a_time(g):
    begun = []

    class Answer:
        def __iter__(self):
            assert len(begun) in (4, 6)
            return iter(())

    def get(request, timeout):
        begun.append(request.matrix.id)
        return Answer()

    class Connection:
        closed = forked = False
        server = g._connection.server

        def stubs(self):
            return type("Stubs", (), {"get": staticmethod(get)})

    renewals = Renewals(Connection())
    held = [g.put(ONE) for _ in range(6)]
    for handle in held:
        renewals.add(handle)
    renewals.beat()
    assert len(begun) == 4 and renewals.wait() == 0
    renewals.beat()
    assert sorted(begun) == sorted(handle.id for handle in held)
