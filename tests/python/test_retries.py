"""When calls are tried again: what the server says, the waits, and the budget."""

import dataclasses
import threading
import time

import gemmd
import grpc
import numpy as np
import pytest
from gemmd import errors, retries
from gemmd.contract import pb

from conftest import SMALL, Server

A = np.random.default_rng(2).standard_normal((40, 30))
BIG = np.ones((2600, 2600))
SLOW = {"kernel": "host_reference"}  # seconds for BIG


def details(*delays):
    """The metadata of a status with a RetryInfo for each delay."""
    status = pb.StatusDetails(code=8, message="not now")
    other = status.details.add(type_url="type.googleapis.com/google.rpc.QuotaFailure")
    other.value = pb.QuotaFailure(violations=[{"subject": "server"}]).SerializeToString()
    for seconds in delays:
        info = pb.RetryInfo()
        info.retry_delay.FromNanoseconds(int(seconds * 1e9))
        status.details.add(
            type_url="type.googleapis.com/google.rpc.RetryInfo", value=info.SerializeToString()
        )
    return [("other", "x"), ("grpc-status-details-bin", status.SerializeToString())]


def refusal(seconds):
    error = errors.ResourceExhausted("not now")
    error.retry_after = seconds
    return error


def test_the_delay_is_read_from_the_status():
    assert retries.after_metadata(details(1.5)) == 1.5
    assert retries.after_metadata(details()) is None
    assert retries.after_metadata(None) is None
    assert retries.after_metadata([("grpc-status-details-bin", b"\xff\xff")]) is None


def test_a_wait_is_what_the_server_says_and_a_random_part_of_a_bound_that_doubles():
    retry = gemmd.Retry(first_seconds=0.1, longest_seconds=1, attempts=10)
    for made, bound in ((1, 0.1), (2, 0.2), (3, 0.4), (5, 1.0), (9, 1.0)):
        waits = [retries.wait(retry, made, refusal(0.5)) for _ in range(500)]
        assert min(waits) >= 0.5
        assert max(waits) <= 0.5 + bound
        assert min(waits) < 0.5 + 0.1 * bound, "full jitter"
        assert max(waits) > 0.5 + 0.9 * bound
    assert retries.wait(retry, 10, refusal(0.5)) is None
    assert retries.wait(retry, 1, refusal(1.5)) is None, "longer than longest_seconds"


def test_a_budget_ends_and_calls_pay_into_it():
    budget = retries.Budget(2, 0.5)
    assert [budget.take() for _ in range(3)] == [True, True, False]
    budget.on_call()
    assert not budget.take()
    budget.on_call()
    assert budget.take()
    for _ in range(100):
        budget.on_call()
    assert [budget.take() for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize("option", ["attempts", "first_seconds", "longest_seconds", "budget"])
def test_options_are_checked(option):
    with pytest.raises(gemmd.InvalidArgument, match=rf"retry\.{option} is -1"):
        gemmd.connect("127.0.0.1:1", retry=gemmd.Retry(**{option: -1}))


class Lost(grpc.RpcError):
    """As of a connection that gRPC closes in a forked child."""

    def code(self):
        return grpc.StatusCode.UNKNOWN

    def details(self):
        return "Stream removed (Closed on fork)"


def test_a_connection_lost_without_a_status_is_tried_again(server):
    with gemmd.connect(server.address) as client:
        connection, losses = client._connection, [Lost(), Lost()]
        info = connection.stubs().info

        class Losing:
            def future(self, request, timeout=None):
                if losses:
                    raise losses.pop()
                return info.future(request, timeout=timeout)

        connection._all = [dataclasses.replace(one, info=Losing()) for one in connection._all]
        assert client.info().version
        assert not losses


@pytest.fixture
def busy():
    """A server that takes one job at a time."""
    running = Server("--max-jobs=1")
    yield running
    running.kill()


def test_a_refusal_says_when_to_try_again(busy):
    once = gemmd.Retry(attempts=1)
    with (
        gemmd.connect(busy.address) as client,
        gemmd.connect(busy.address, retry=once) as other,
        client.pipeline() as p,
    ):
        first = p.matmul(BIG, BIG, **SLOW)
        with pytest.raises(gemmd.ResourceExhausted) as unary:
            while not first.done():
                other.matmul(A, A.T)
        assert unary.value.retry_after == pytest.approx(0.1)
        with pytest.raises(gemmd.ResourceExhausted) as streamed:
            while not first.done():
                other.matmul(BIG[:700], BIG[:, :700])
        assert streamed.value.retry_after == pytest.approx(0.1)
        first.result()


def test_a_call_without_a_budget_is_not_tried_again(busy):
    # The server asks for 0.1 s each time.
    poor = gemmd.Retry(
        attempts=1000, first_seconds=0.01, longest_seconds=0.15, budget=3, budget_per_call=0
    )
    with (
        gemmd.connect(busy.address) as client,
        gemmd.connect(busy.address, retry=poor) as other,
        client.pipeline() as p,
    ):
        first = p.matmul(BIG, BIG, **SLOW)
        with pytest.raises(gemmd.ResourceExhausted):
            while not first.done():
                other.matmul(A, A.T)
        begun = time.monotonic()
        with pytest.raises(gemmd.ResourceExhausted):
            while not first.done():
                other.matmul(A, A.T)
        assert time.monotonic() - begun < 5, "nothing is left of the budget"
        first.result()


def test_a_pipeline_wider_than_the_server_ends_well(busy):
    retry = gemmd.Retry(attempts=100, first_seconds=0.01, longest_seconds=0.5)
    with gemmd.connect(busy.address, retry=retry) as client, client.pipeline(window=16) as p:
        futures = [p.matmul(A, A.T) for _ in range(64)]
        for future in futures:
            np.testing.assert_allclose(future.result(120), A @ A.T)


class Refused(grpc.RpcError):
    """A call that the server refuses: of PutMatrix, once the calls of `after` have ended."""

    def __init__(self, after=()):
        super().__init__("refused")
        self.after = after

    def result(self):
        for rpc in self.after:
            rpc.result()
        raise self

    def __iter__(self):
        raise self

    def code(self):
        return grpc.StatusCode.RESOURCE_EXHAUSTED

    def details(self):
        return "streams: no more"

    def trailing_metadata(self):
        return details(0.01)

    def add_done_callback(self, callback):
        if not self.after:
            callback(self)

    def cancel(self):
        return False


class Stalled:
    """A PutMatrix call that ends when it is cancelled."""

    def __init__(self):
        self.cancelled = threading.Event()

    def result(self):
        assert self.cancelled.wait(60), "nobody has cancelled it"
        raise grpc.FutureCancelledError

    def code(self):
        return grpc.StatusCode.CANCELLED

    def add_done_callback(self, callback):
        pass

    def cancel(self):
        self.cancelled.set()
        return True


class Puts:
    """PutMatrix of all channels: `instead(number)` may take the place of a call."""

    def __init__(self, client, instead):
        connection = client._connection
        self.rpcs = []
        self._instead = instead
        connection._all = [
            dataclasses.replace(stubs, put=self._method(stubs.put)) for stubs in connection._all
        ]

    def _method(self, real):
        puts = self

        class Method:
            def future(self, messages, timeout=None):
                rpc = puts._instead(len(puts.rpcs)) or real.future(messages, timeout=timeout)
                puts.rpcs.append(rpc)
                return rpc

        return Method()


class Later:
    """The RPC of a number, which is yet to be begun."""

    def __init__(self, puts, number):
        self.puts = puts
        self.number = number

    def result(self):
        return self.puts.rpcs[self.number].result()


STRIPED = np.arange(4096.0).reshape(64, 64)  # three stripes


def test_of_a_split_upload_that_is_refused_in_part_nothing_stays(server):
    retry = gemmd.Retry(attempts=2, first_seconds=0.01)
    landed = []
    with gemmd.connect(server.address, retry=retry, **SMALL) as client:
        puts = Puts(client, lambda number: Refused(landed) if number == 0 else None)
        # The two others of the first attempt.
        landed.append(Later(puts, 1))
        landed.append(Later(puts, 2))
        kept = client.put(STRIPED, name="refused-in-part")
        try:
            np.testing.assert_array_equal(kept.numpy(), STRIPED)
            assert len(puts.rpcs) == 3 + 1 + 3, "the end of the first attempt, and the second"
        finally:
            client.delete("refused-in-part")


def test_a_stripe_that_is_refused_ends_the_others(server):
    once = gemmd.Retry(attempts=1)
    stalled = [Stalled(), Stalled()]
    with gemmd.connect(server.address, retry=once, **SMALL) as client:
        Puts(client, {0: stalled[0], 1: Refused(), 2: stalled[1]}.get)
        with pytest.raises(gemmd.ResourceExhausted, match="streams: no more"):
            client.put(STRIPED)
    assert all(rpc.cancelled.is_set() for rpc in stalled)


def test_a_striped_product_that_is_refused_is_tried_again_as_one_stream(server):
    once = gemmd.Retry(attempts=1)
    with gemmd.connect(server.address, retry=once, **SMALL) as client:
        Puts(client, lambda _: Refused())
        with pytest.raises(gemmd.ResourceExhausted, match="streams: no more"):
            client.matmul(STRIPED, STRIPED)
    retry = gemmd.Retry(attempts=2, first_seconds=0.01)
    with gemmd.connect(server.address, retry=retry, **SMALL) as client:
        puts = Puts(client, lambda _: Refused())
        np.testing.assert_allclose(client.matmul(STRIPED, STRIPED), STRIPED @ STRIPED)
        assert len(puts.rpcs) == 6, "two operands of three stripes, once"


def test_a_benchmark_that_is_refused_is_tried_again(server):
    retry = gemmd.Retry(attempts=3, first_seconds=0.01)
    with gemmd.connect(server.address, retry=retry) as client:
        connection, refusals = client._connection, [Refused(), Refused()]
        benchmark = connection.stubs().benchmark

        def refuse(request, timeout=None):
            return refusals.pop() if refusals else benchmark(request, timeout=timeout)

        connection._all = [dataclasses.replace(one, benchmark=refuse) for one in connection._all]
        assert client.bench([8], iterations=1, warmup=0).rows
        assert not refusals
        refusals += [Refused() for _ in range(3)]
        with pytest.raises(gemmd.ResourceExhausted, match="streams: no more"):
            client.bench([8])
