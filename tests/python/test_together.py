"""Products of a pipeline that are alike and wait together go as one batch."""

from concurrent.futures import CancelledError

import gemmd
import gemmd.contract
import numpy as np
import pytest

from conftest import Server

RNG = np.random.default_rng(7)


def drawn(*shape):
    return RNG.integers(-3, 4, shape).astype(np.float32)


def test_each_has_its_own_result_and_report(g, held):
    a, b, c, bias = drawn(9, 6, 5), drawn(9, 5, 7), drawn(9, 6, 7), drawn(9, 7)
    outs = [np.zeros((6, 7), np.float32) for _ in a]
    other = held.matmul(a[0, :3], b[0])
    with g.put(b[0]) as w:
        futures = [held.matmul(*operands, c=add, bias=row, out=out, return_report=True)
                   for *operands, add, row, out in zip(a, b, c, bias, outs)]  # fmt: skip
        shared = [held.matmul(one, w) for one in a]
        assert not any(future.done() for future in [other, *futures, *shared])
        held.go()
        for future, left, right, add, row, out in zip(futures, a, b, c, bias, outs):
            result, report = future.result(60)
            assert result is out and report is future.report
            assert (report.batch, report.m, report.n, report.k) == (9, 6, 7, 5)
            np.testing.assert_array_equal(result, left @ right + add + row)
        for future, left in zip(shared, a):
            np.testing.assert_array_equal(future.result(60), left @ b[0])
            assert future.report.batch == 9
    np.testing.assert_array_equal(other.result(60), a[0, :3] @ b[0])
    assert other.report.batch == 1


def test_what_goes_by_itself(held):
    a, b = drawn(6, 5), drawn(5, 7)
    ways = [{"kernel": "host_openblas"}, {"verify": "sampled"}, {"alpha": 2.0}, {"timeout": 60}]
    alone = [held.matmul(a, b, **options) for options in ways]
    alone += [held.matmul(np.asfortranarray(a), b), held.matmul(a[None].repeat(2, 0), b)]
    held.go()
    for future, scale in zip(alone[:4], (1, 1, 2, 1)):
        np.testing.assert_array_equal(future.result(60), scale * (a @ b))
    assert [future.report.batch for future in alone if future.result(60) is not None] == [
        1, 1, 1, 1, 1, 2
    ]  # fmt: skip


def test_one_that_is_cancelled_before_leaves_the_others(held):
    a, b = drawn(4, 6, 5), drawn(4, 5, 7)
    futures = [held.matmul(left, right) for left, right in zip(a, b)]
    assert futures[0].cancel() and futures[2].cancel()
    held.go()
    for i in (1, 3):
        np.testing.assert_array_equal(futures[i].result(60), a[i] @ b[i])
        assert futures[i].report.batch == 2


def test_a_batch_that_is_refused_is_sent_again_one_by_one(g, held, monkeypatch):
    a, w = drawn(3, 6, 5), g.put(drawn(5, 7))
    futures = [held.matmul(left, w) for left in a]
    w.free()
    held.go()
    for future in futures:
        with pytest.raises(gemmd.LostHandle):
            future.result(60)
    good = held.matmul(a[0], a[0].T)
    np.testing.assert_array_equal(good.result(60), a[0] @ a[0].T)


def test_a_batch_that_meets_a_bound_waits_and_goes_again(held):
    a, b = drawn(3, 6, 5), drawn(3, 5, 7)
    refusals, take = [], held._succeed

    def once(result):
        if refusals:
            return take(result)
        refusals.append(result.job_id)
        refusal = gemmd.contract.pb.JobError(job_id=result.job_id, code=8, message="full")
        refusal.retry_info.retry_delay.nanos = 1000
        return held._refused(refusal)

    held._succeed = once
    futures = [held.matmul(left, right) for left, right in zip(a, b)]
    held.go()
    for future, left, right in zip(futures, a, b):
        np.testing.assert_array_equal(future.result(60), left @ right)
    # One fewer at a time than the server refused.
    assert sorted(future.report.batch for future in futures) == [1, 2, 2]
    assert len(refusals) == 1


def test_cancelling_the_pipeline_ends_each(g):
    a = drawn(6, 6)
    with g.pipeline() as p:
        p.matmul(a, a).result(60)
        p._may_go = lambda job: False
        futures = [p.matmul(a, a) for _ in range(5)]
        p.cancel()
    for future in futures:
        assert future.done()
        with pytest.raises((gemmd.Cancelled, CancelledError)):
            future.result(0)


def test_nothing_is_a_batch_where_the_server_checks():
    server = Server("--verify=always")
    try:
        with gemmd.connect(server.address) as client, client.pipeline() as p:
            a = drawn(6, 6)
            futures = [p.matmul(a, a) for _ in range(40)]
            for future in futures:
                np.testing.assert_array_equal(future.result(60), a @ a)
                assert future.report.batch == 1 and future.report.check.result == "passed"
    finally:
        server.kill()


def test_none_is_a_batch_where_the_caller_wants_none(g):
    a = drawn(100, 8, 8)
    with g.pipeline(batch=False) as p:
        futures = [p.matmul(one, one) for one in a]
    assert {future.report.batch for future in futures} == {1}
    with pytest.raises(gemmd.InvalidType, match="batch"):
        g.pipeline(batch="no")


def test_many_in_a_row_are_fewer_messages(g):
    a = drawn(500, 8, 8)
    with g.pipeline() as p:
        futures = [p.matmul(one, one) for one in a]
        for future, one in zip(futures, a):
            np.testing.assert_array_equal(future.result(60), one @ one)
    assert sum(1 / future.report.batch for future in futures) < 400
