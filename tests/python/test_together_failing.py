"""What batches of a pipeline's products meet: refusals, deadlines, the end of the stream, signals."""

import signal
import sys
import threading
import time

import gemmd
import gemmd.contract
import numpy as np
import pytest
from gemmd import together

from conftest import Server
from test_together import drawn


def refuse_first(pipeline, code, wait=None):
    """Has the first result of `pipeline` arrive as an error. The list of the refused messages."""
    refused, take = [], pipeline._succeed

    def once(result):
        if refused:
            return take(result)
        refused.append(result.job_id)
        refusal = gemmd.contract.pb.JobError(job_id=result.job_id, code=code, message="refused")
        if wait is not None:
            refusal.retry_info.retry_delay.FromMilliseconds(round(1000 * wait))
        return pipeline._refused(refusal)

    pipeline._succeed = once
    return refused


@pytest.mark.parametrize("code, wait, kind", [
    (4, None, gemmd.DeadlineExceeded), (14, None, gemmd.Unavailable), (1, None, gemmd.Cancelled),
    (8, 0.001, gemmd.ResourceExhausted),
])  # fmt: skip
def test_what_one_product_would_meet_too_is_not_tried_again(held, code, wait, kind):
    a = drawn(4, 6, 5)
    b = drawn(5, 7)
    refuse_first(held, code, wait)
    held._budget.take = lambda: False
    sent, message = [], held._messages_of
    held._messages_of = lambda job, chunk: sent.append(job) or message(job, chunk)
    futures = [held.matmul(one, b, timeout=60) for one in a]
    held.go()
    for future in futures:
        with pytest.raises(kind):
            future.result(60)
    assert not sent


def test_a_refused_batch_waits_as_long_as_the_server_says(held, monkeypatch):
    a, b = drawn(7, 6, 5), drawn(5, 7)
    monkeypatch.setattr(together, "most", lambda *_: 3)
    refuse_first(held, 8, wait=1.0)
    futures = [held.matmul(one, b) for one in a]
    ended = {}
    for i, future in enumerate(futures):
        future.add_done_callback(lambda _, i=i: ended.update({i: time.monotonic()}))
    begin = time.monotonic()
    held.go()
    for future, one in zip(futures, a):
        np.testing.assert_array_equal(future.result(60), one @ b)
    # Those that were not refused do not take them along.
    assert min(ended[i] for i in range(3)) - begin > 0.9


def test_the_end_of_the_server_ends_each_and_writes_no_out(own_server):
    a = drawn(6, 6)
    outs = [np.full((6, 6), 7, np.float32) for _ in range(20)]
    with gemmd.connect(own_server.address) as client, client.pipeline() as p:
        p.matmul(a, a).result(60)
        may_go, p._may_go = p._may_go, lambda job: False
        futures = [p.matmul(a, a, out=out) for out in outs]
        p._take = lambda message: None  # no answer arrives
        p._may_go = may_go
        p._send()
        assert len(p._batches) == 1
        own_server.kill()
        for future in futures:
            with pytest.raises(gemmd.Unavailable):
                future.result(60)
        assert not p._batches
    assert all((out == 7).all() for out in outs)


def test_a_callback_that_ends_the_program_leaves_no_future_open(held):
    a = drawn(5, 6, 6)
    futures = [held.matmul(one, one) for one in a]
    futures[1].add_done_callback(lambda _: sys.exit(3))
    held.go()
    for future in futures:
        future.exception(20)
    assert all(future.done() for future in futures)


def test_callbacks_add_products(held):
    a = drawn(40, 6, 6)
    more = []
    futures = [held.matmul(one, one) for one in a]
    for i, future in enumerate(futures):
        future.add_done_callback(lambda _, i=i: more.append((i, held.matmul(a[i], a[0]))))
    held.go()
    for future, one in zip(futures, a):
        np.testing.assert_array_equal(future.result(60), one @ one)
    deadline = time.monotonic() + 20
    while len(more) < len(a) and time.monotonic() < deadline:
        time.sleep(0.01)
    for i, future in more:
        np.testing.assert_array_equal(future.result(60), a[i] @ a[0])
    assert len(more) == len(a)


@pytest.mark.parametrize("place", ["close", "result"])
def test_ctrl_c_while_a_batch_is_under_way(g, place):
    a = drawn(6, 6)
    p = g.pipeline()
    p.matmul(a, a).result(60)
    p._may_go = lambda job: False
    futures = [p.matmul(a, a) for _ in range(5)]
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(
        threading.main_thread().ident, signal.SIGINT))  # fmt: skip
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        with p:
            if place == "result":
                futures[0].result(60)
    assert all(future.done() for future in futures)
    np.testing.assert_array_equal(g.matmul(a, a), a @ a)


def test_results_bound_a_batch_too(g):
    with g.pipeline() as p:
        plan = p._plan(drawn(200, 1), drawn(1, 200), None, {})
        assert together.most(g._connection, plan) * plan.shape.nbytes <= g._connection.chunk_bytes


def test_no_batch_is_sent_where_the_server_checks_a_share():
    server = Server("--verify=sampled", "--verify-sample-rate=0.01")
    try:
        with gemmd.connect(server.address) as client:
            assert client.info().verify == "sampled"
            a = drawn(6, 6)
            for _ in range(5):
                with client.pipeline() as p:
                    futures = [p.matmul(a, a) for _ in range(30)]
                assert {future.report.batch for future in futures} == {1}
    finally:
        server.kill()


def test_a_client_that_has_seen_a_check_of_an_older_server_sends_no_batch():
    server = Server("--verify=sampled", "--verify-sample-rate=0.5")
    try:
        with gemmd.connect(server.address) as client:
            client._connection.server.ClearField("verify")  # which it does not say
            a = drawn(6, 6)
            for _ in range(40):
                with client.pipeline() as p:
                    [p.matmul(a, a) for _ in range(10)]
            for _ in range(5):
                with client.pipeline() as p:
                    futures = [p.matmul(a, a) for _ in range(30)]
                assert {future.report.batch for future in futures} == {1}
            assert any(future.report.check for future in futures)
    finally:
        server.kill()
