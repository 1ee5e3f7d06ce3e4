"""Waits at an end whose thread does not end: they have a bound, and the log names what is left."""

import logging
import socket
import threading

import gemmd
import numpy as np
import pytest
from gemmd import connection, ends, janitor, transfer
from gemmd.call import Call
from gemmd.contract import pb
from gemmd.stripes import Stripe

from conftest import Server

ONE = np.ones((4, 4))


@pytest.fixture(scope="module")
def server():
    """Of this module's own: clients leave matrices there."""
    running = Server()
    yield running
    running.kill()


@pytest.fixture
def stuck(monkeypatch):
    """What a thread may wait for; it comes when the test has ended."""
    monkeypatch.setattr(ends, "BOUND_SECONDS", 0.05)
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def client(server, stuck):
    running = gemmd.connect(server.address)
    yield running
    stuck.set()
    running.close()


class Slow:
    """A thread that ends in its tenth join."""

    joins = 0

    def join(self, timeout):
        assert timeout == ends.BOUND_SECONDS
        self.joins += 1

    def is_alive(self):
        return self.joins < 10


def test_a_thread_is_waited_for_while_it_goes_on():
    thread = Slow()
    assert ends.joined(thread, lambda: thread.joins)
    thread = Slow()
    assert not ends.joined(thread, lambda: None)
    assert thread.joins == 1
    thread = Slow()
    assert not ends.joined(thread, lambda: min(thread.joins, 4))
    assert thread.joins == 5


def test_of_a_client_whose_matrices_are_not_deleted(client, stuck, monkeypatch, caplog):
    handles = [client.put(ONE) for _ in range(12)]
    monkeypatch.setattr(janitor, "_delete", lambda connection, ref: stuck.wait())
    with caplog.at_level(logging.WARNING, "gemmd"):
        client.close()
    (record,) = caplog.records
    assert client._connection.address in record.getMessage()
    named = [handle for handle in handles if handle.id in record.getMessage()]
    assert len(named) == 8 and "and 4 more" in record.getMessage()


def test_of_a_client_whose_channels_do_not_close(server, stuck, caplog):
    client = gemmd.connect(server.address)

    class Stuck:
        def close(self):
            stuck.wait()

    closing = client._connection._channels
    client._connection._channels = [Stuck()]
    with caplog.at_level(logging.WARNING, "gemmd"):
        client.close()
    (record,) = caplog.records
    assert f"connections to {server.address} did not close" in record.getMessage()
    for channel in closing:
        channel.close()


def test_of_a_pipeline_whose_thread_is_in_a_callback(client, stuck, caplog):
    reached = threading.Event()

    def callback(future):
        reached.set()
        stuck.wait()

    p = client.pipeline()
    p.matmul(ONE, ONE).add_done_callback(callback)
    reached.wait()
    with caplog.at_level(logging.WARNING, "gemmd"):
        p.cancel()
    (record,) = caplog.records
    assert "a pipeline of" in record.getMessage() and "1 products" in record.getMessage()


def test_a_pipeline_is_closed_in_a_callback(client):
    closed = threading.Event()
    p = client.pipeline()

    def callback(future):
        p.close()
        closed.set()

    p.matmul(ONE, ONE).add_done_callback(callback)
    assert closed.wait(60)
    p.close()


@pytest.mark.parametrize("how", ["cancelled", "no thread"])
def test_of_a_download_whose_threads_do_not_end(client, stuck, caplog, monkeypatch, how):
    call = Call(client._connection, "numpy")
    begun = threading.Barrier(3 if how == "cancelled" else 2)

    def one(stripe):
        begun.wait()
        stuck.wait()

    stripes = [Stripe(0, 0, 8), Stripe(0, 8, 16)]
    if how == "cancelled":
        threading.Thread(target=lambda: (begun.wait(), call.cancel())).start()
    else:
        start, started = threading.Thread.start, []

        def second_fails(thread):
            if started:
                begun.wait()
                raise RuntimeError("can't start new thread")
            started.append(thread)
            start(thread)

        monkeypatch.setattr(transfer.threading.Thread, "start", second_fails)
    with caplog.at_level(logging.WARNING, "gemmd"):
        with pytest.raises(gemmd.Cancelled if how == "cancelled" else RuntimeError):
            transfer._in_threads(call, one, stripes)
    monkeypatch.undo()
    (record,) = caplog.records
    left = 2 if how == "cancelled" else 1
    assert f"numpy: {left} of its threads did not end" in record.getMessage()


def test_names_stand_for_ids_in_the_log(client, stuck, monkeypatch, caplog):
    client._janitor.start()
    monkeypatch.setattr(janitor, "_delete", lambda connection, ref: stuck.wait())
    client._janitor.delete(pb.MatrixRef(name="of-an-upload"))
    with caplog.at_level(logging.WARNING, "gemmd"):
        client.close()
    assert "may be left: of-an-upload" in caplog.text


def test_of_a_connect_in_a_forked_child_that_grpc_does_not_end(server, stuck, monkeypatch):
    late = []

    def ask(call):
        stuck.wait()
        late.append(call.connection)
        left.set()

    left = threading.Event()
    monkeypatch.setattr(connection, "in_forked_child", True)
    monkeypatch.setattr(Call, "ask_server", ask)
    with pytest.raises(gemmd.DeadlineExceeded, match="was forked.*spawn or forkserver"):
        gemmd.connect(server.address, connect_timeout=0.05)
    stuck.set()
    assert left.wait(60)
    monkeypatch.undo()
    with gemmd.connect(server.address) as client:
        while not late[0].closed:
            client.info()


def test_a_forked_child_connects_as_others_do(server, monkeypatch):
    monkeypatch.setattr(connection, "in_forked_child", True)
    with gemmd.connect(server.address) as client:
        assert client.matmul(ONE, ONE)[0, 0] == 4
    with pytest.raises(gemmd.InvalidArgument):
        gemmd.connect("127.0.0.1:1", token="\n")


def test_a_forked_child_has_asked_on_every_channel(server, monkeypatch):
    asked = []
    stubs = connection.Connection.stubs

    def noted(self, channel=None):
        asked.append(channel)
        return stubs(self, channel)

    monkeypatch.setattr(connection, "in_forked_child", True)
    monkeypatch.setattr(connection.Connection, "stubs", noted)
    gemmd.connect(server.address, channels=3).close()
    assert {0, 1, 2} <= set(asked)


def test_a_forked_child_hears_why_its_connect_may_be_late(monkeypatch):
    monkeypatch.setattr(connection, "in_forked_child", True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(
            gemmd.DeadlineExceeded, match=r"timeout of 0\.05 s; .*spawn or forkserver"
        ):
            gemmd.connect(f"127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.05)
