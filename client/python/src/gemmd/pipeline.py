"""Many products under way on one stream."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any

import grpc

from . import checks, ends, errors, multiply, product, retries, shapes, together, wire
from .call import Call
from .contract import pb
from .futures import ProductFuture, raise_first
from .handle import Owner, explain_not_found
from .interrupt import Hold
from .product import ROLES, Plan
from .report import Report
from .results import Target
from .stream import Stream
from .together import Together

# Of the window: how many products end before a caller that waits for room is woken. Waking it
# for each takes the interpreter away from the threads that send and receive.
_BUNCH = 1 / 8
# Messages of products that could be batches under way: one that is computed, one on the wire.
_BATCHES = 2
_MATMUL_NAMES = ("timeout", *product.OPTION_NAMES)


class _Job:
    """One product: its plan until it is sent, its memory until it has arrived."""

    __slots__ = (
        "alike", "collect", "future", "job_id", "not_before", "plan", "sink", "target", "tries",
    )  # fmt: skip

    def __init__(self, job_id: int, plan: Plan, collect: bool) -> None:
        self.collect = collect
        self.job_id = job_id
        self.plan = plan
        self.target: Target = plan.target()
        self.sink = wire.Sink(self.target.memory, 0, len(self.target.memory))
        self.future = ProductFuture()
        # When it is sent: the server may refuse it for a bound that passes.
        self.not_before = 0.0
        self.tries = 1
        # The same for products that may go as one batch.
        self.alike = together.key(plan)

    def again(self, job_id: int, wait: float) -> None:
        """Another attempt. Its number is another one: of the last, something may yet come."""
        self.job_id = job_id
        self.sink = wire.Sink(self.target.memory, 0, len(self.target.memory))
        self.not_before = time.monotonic() + wait
        self.tries += 1


class Pipeline:
    """Products that are sent without waiting for the results of those before.

    `matmul` returns a Future at once, or waits where `window` products are under way. Used
    with `with`: the end of the block waits for every result. One that is dropped without its end
    is cancelled, once no future of it is left that is not done. Thread-safe.

    Small products that are alike and wait together go as one batch: `Report.batch` says how many
    there were. The server may choose another kernel for a batch than for one product, whose results
    may differ in the last bits. Each product has its own future and error. Where the batch is
    refused because it is one, they are sent again one by one. Products that name a kernel or ask
    for a check go by themselves, and so do all where the server checks of its own accord
    (`Client.info().verify`). With `batch=False`, every product goes by itself.

    No failure is lost: the end of the block raises the first error of a product whose result
    nobody asked for, unless an exception is leaving the block already, or `cancel` was called.
    `result()` and `exception()` of its future ask for it, and so do `results` and `map`;
    `close` raises none.

    With `collect`, `results` and `as_completed` give every product, which is held until then.
    Without it only the futures have them, as suits a pipeline that lives long.

        with g.pipeline() as p:
            futures = [p.matmul(a, b) for a, b in pairs]
            for c in p.results():
                ...
    """

    def __init__(
        self, client: Owner, window: int, collect: bool = True, batch: bool = True
    ) -> None:
        batch = checks.flag(batch, "batch")
        limits = client._connection.server.limits
        window = checks.integer(window, "window", 1, limits.max_jobs_per_stream or 1024)
        self._client = client
        self._collect = collect
        self._call = Call(client._connection, "pipeline")
        # A token for each product that may yet be under way.
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._owed = 0  # room that callbacks took before it was there; guarded by _lock
        self._bunch = max(1, int(window * _BUNCH))
        self._budget = retries.Budget(2 * window, 1)
        self._give_room(window)
        self._send_lock = threading.Lock()  # guards the next four; taken before _lock
        self._leaving = False  # a message is under way, or the stream's last one was sent
        self._outgoing = self._messages()
        self._fault: errors.GemmdError | None = None  # no message could be made
        self._in_parts = False  # of a product that takes many messages, some were sent
        self._lock = threading.Lock()  # guards what follows
        self._todo: deque[_Job] = deque()
        # As many at a time as the server took lately: fewer after a refusal, more after
        # products that ended well.
        self._window = self._allowed = float(window)
        self._alarm = False  # a timer will call _send
        self._ids = itertools.count(1)
        self._jobs: dict[int, _Job] = {}
        # Batches under way, by numbers of their own, with their products.
        self._batches: dict[int, tuple[Together, list[_Job]]] = {}
        # Whether products go as batches: where the server checks none of its own accord, as no
        # batch is checked. An older server, which does not say it, shows it by the first report.
        policy = client._connection.server.verify
        self._merges: bool | None = None if policy == pb.VERIFY_UNSPECIFIED else True
        if (
            not batch
            or limits.max_batch_count <= 1
            or policy > pb.VERIFY_OFF
            or client._connection.server_checks
        ):
            self._merges = False
        self._clocked: set[int] = set()  # messages under way that could be batches
        self._order: deque[Future[Any]] = deque()
        self._unseen: dict[int, ProductFuture] = {}  # failures that nobody has asked for
        self._failure: errors.GemmdError | None = None
        self._closed = False
        self._over = False  # the stream has ended
        self._done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._left_room = 0  # by products that have ended, and not yet in _room
        self._pending = 0  # completed futures that as_completed has yet to give
        try:
            with Hold():
                client._janitor.start()  # for `__del__`
                own = weakref.ref(self)
                stream = client._connection.stubs().multiply_stream(partial(_has_left, own))
                self._stream: Stream = self._call.track(stream)
                self._call.waits = partial(_waits, own)
                self._call.watch()
                reader = threading.Thread(
                    target=_read, args=(own, stream, self._call), daemon=True,
                    name="gemmd-pipeline",
                )  # fmt: skip
                reader.start()
                self._reader = reader
                del reader
        except ValueError as error:  # the client was closed meanwhile
            raise self._call.explain(error) from None
        except BaseException:  # of a signal handler
            self.cancel()
            raise

    def __del__(self) -> None:
        # Not from here: gRPC may be on the stack.
        if getattr(self, "_reader", None) is not None and not self._over:
            self._client._janitor.run(self._call.cancel)

    def matmul(
        self, a: Any, b: Any, *, timeout: float | None = None, **options: Any
    ) -> ProductFuture:
        """A Future of what `Client.matmul` gives, which has its `report` once it is done. The
        options are the same, without `cancel` and `keep`.

        timeout: seconds on the server, from the arrival of the product's header.
        The operands must not change until the future is done.

        In a callback of a future (`add_done_callback`) it never waits: the product takes the room
        of one that ends. ResourceExhausted where callbacks have added `window` products more than
        have ended.
        """
        return self._make(a, b, timeout, options, self._collect)

    def _make(
        self, a: Any, b: Any, timeout: float | None, options: dict[str, Any], collect: bool
    ) -> ProductFuture:
        plan = self._plan(a, b, timeout, options)
        if self._in_callback():
            self._owe_room()
        else:
            self._await_room()
        with Hold():
            future = self._enqueue(plan, collect)
            self._send()
        return future

    def _await_room(self) -> None:
        while True:
            try:
                return self._room.get(timeout=1.0)
            except queue.Empty:
                self._check()

    def _owe_room(self) -> None:
        """In a callback, on the thread that makes room: the product takes that of one that ends."""
        with contextlib.suppress(queue.Empty):
            return self._room.get_nowait()
        with self._lock:
            if self._owed >= self._window:
                raise errors.ResourceExhausted(
                    f"window is {self._window:g}, and callbacks have added as many products beyond "
                    "it; a callback may add one for each that ends: add more from another thread"
                )
            self._owed += 1
        return None

    def _in_callback(self) -> bool:
        return threading.current_thread() is self._reader

    def _check_waits(self, what: str) -> None:
        """FailedPrecondition where the thread would wait for what it is to do itself."""
        if self._in_callback():
            raise errors.FailedPrecondition(
                f"{what} in a callback of the pipeline, for a product that is under way: it would "
                "wait for ever; add a callback to that product's future"
            )

    def _plan(self, a: Any, b: Any, timeout: float | None, options: dict[str, Any]) -> Plan:
        checks.keywords(options, _MATMUL_NAMES, "Pipeline.matmul")
        plan = shapes.plan(self._client, a, b, product.Options(**options))
        if timeout is not None:
            timeout = checks.timeout(timeout)
        if timeout is not None:
            plan.proto.timeout.FromMicroseconds(round(timeout * 1e6))
        return plan

    def _enqueue(self, plan: Plan, collect: bool) -> ProductFuture:
        """The caller has taken room for it, and has it sent. Waits for nothing."""
        with self._lock:
            try:
                self._check()
                job = _Job(next(self._ids), plan, collect)
            except BaseException:
                self._give_room(1)
                raise
            job.future._pipeline = self
            self._jobs[job.job_id] = job
            if collect:
                self._order.append(job.future)
                self._pending += 1
            self._todo.append(job)
        return job.future

    def _check(self) -> None:
        self._client._connection.check()
        if self._failure is not None:
            raise type(self._failure)(str(self._failure))
        if self._closed:
            raise errors.ClientClosed("the pipeline was closed; make another one")

    def results(self) -> Iterator[Any]:
        """The results of the products so far, in their order. A failed one raises here."""
        while True:
            with self._lock:
                if not self._order:
                    return
                future = self._order.popleft()
            yield future.result()

    def as_completed(self) -> Iterator[Future[Any]]:
        """The futures of the products so far, as they end."""
        while True:
            with self._lock:
                if not self._pending:
                    return
                if self._done.empty():
                    self._check_waits("as_completed()")
                self._pending -= 1
            yield self._done.get()

    def map(
        self, pairs: Iterable[tuple[Any, Any]], *, timeout: float | None = None, **options: Any
    ) -> Iterator[Any]:
        """The products of pairs of operands, in order, with at most `window` under way. Where it
        is left early, or one of them fails, those behind are cancelled."""
        checks.keywords(options, _MATMUL_NAMES, "Pipeline.map")
        ahead: deque[ProductFuture] = deque()
        try:
            for a, b in pairs:
                ahead.append(self._make(a, b, timeout, options, collect=False))
                while ahead and ahead[0]._ended:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.give_up()

    def close(self) -> None:
        """Waits for the results of all products, then ends the stream."""
        with self._lock:
            self._closed = True
        with Hold(self._call.cancel):
            self._send()
            self._join()

    def cancel(self) -> None:
        """Ends the products under way: their futures raise Cancelled."""
        with Hold():
            with self._lock:
                self._closed = True
            self._call.cancel()
            self._join()

    def _join(self) -> None:
        """Waits for the thread that receives: as long as products are under way, and then for a
        while."""
        reader = self._reader
        if self._in_callback():
            return  # it ends behind that
        if reader is not None and not ends.joined(reader, self._pace):
            ends.left_behind(
                f"a pipeline of {self._client._connection.address}: its thread did not end within "
                f"{ends.BOUND_SECONDS:g} s, with {len(self._jobs)} products under way; it may yet "
                "write into their out"
            )
        # Its end runs callbacks, in which Python loses what a signal handler raises: not after the
        # hold.
        self._reader = None

    def _pace(self) -> object:
        return time.monotonic() if self._jobs and not self._call.cancelled else None

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            return self.cancel()
        try:
            self.close()
        except BaseException:
            self.cancel()
            raise
        if not self._call.cancelled:
            raise_first(self._take_unseen())
        return None

    def _take_unseen(self) -> list[BaseException]:
        """The errors that nobody has asked for so far, by their time. Now they are."""
        # In this order: a thread that has asked takes its future out before it is no asker more.
        left = [
            future for key, future in list(self._unseen.items())
            if not future.is_asked_for() and key in self._unseen
        ]  # fmt: skip
        unseen = [future.exception() for future in left]
        return [error for error in unseen if error is not None]

    # Sending: by the thread that has a product, or by the one that hears that there is room.

    def _send(self) -> None:
        """Sends the next message, unless the one before is still under way."""
        with self._send_lock:
            if self._leaving:
                return
            try:
                message = next(self._outgoing)
            except BaseException as error:
                self._leaving = True
                self._fault = errors.Internal(f"the pipeline failed: {error!r}")
                self._stream.cancel()
                return
            if message is not None:
                self._leaving = True
                self._stream.send(message)
            elif self._ended():
                self._leaving = True
                self._stream.close_sending()

    def _message_left(self) -> None:
        self._call.moved()
        with self._send_lock:
            self._leaving = False
        self._send()

    def _messages(self) -> Iterator[bytes | None]:
        """What is to be sent; None where there is nothing now."""
        chunk = self._client._connection.chunk_bytes
        while True:
            jobs = self._next_jobs()
            if not jobs:
                yield None
                continue
            jobs = self._begun(jobs)
            if len(jobs) > 1:
                yield self._message_of_batch(jobs)
            elif jobs:
                if jobs[0].alike is not None:
                    with self._lock:
                        self._clocked.add(jobs[0].job_id)
                yield from self._messages_of(jobs[0], chunk)
                self._in_parts = False
            del jobs

    def _next_jobs(self) -> list[_Job]:
        """The next one, with those that are alike. Not before its time, where it was refused. Those
        behind it wait too: the server is at its bound."""
        with self._lock:
            free = int(self._allowed) - self._under_way()
            if not self._todo or free < 1:
                return []
            wait = self._todo[0].not_before - time.monotonic()
            if wait > 0:
                if not self._alarm:
                    self._alarm = True
                    timer = threading.Timer(wait, self._wake)
                    timer.daemon = True
                    timer.start()
                return []
            first = next((job for job in self._todo if self._may_go(job)), None)
            if first is None:
                return []
            found = [first]
            if first.alike is not None and self._merges:
                most = min(free, together.most(self._client._connection, first.plan))
                now = time.monotonic()
                alike = (
                    job for job in self._todo
                    if job.alike == first.alike and job is not first and job.not_before <= now
                )  # fmt: skip
                found += itertools.islice(alike, most - 1)
            if len(found) == 1:
                self._todo.remove(first)
            else:
                taken = set(map(id, found))
                self._todo = deque(job for job in self._todo if id(job) not in taken)
            return found

    def _may_go(self, job: _Job) -> bool:
        """Not while others that could be batches are under way, so that those that come meanwhile
        go with it: the sooner, the emptier the stream is."""
        if job.alike is None or self._merges is False:
            return True
        return len(self._clocked) < (_BATCHES if self._merges else 1)

    def _under_way(self) -> int:
        return len(self._jobs) - len(self._todo)

    def _wake(self) -> None:
        with self._lock:
            self._alarm = False
        self._send()

    def _begin(self, job: _Job) -> bool:
        """Whether the product is to be sent: it may have failed or been cancelled."""
        with self._lock:
            alive = job.job_id in self._jobs
            return alive and (job.future.running() or job.future.set_running_or_notify_cancel())

    def _begun(self, jobs: list[_Job]) -> list[_Job]:
        """Those that are to be sent. The others end."""
        begun = []
        for job in jobs:
            if self._begin(job):
                begun.append(job)
            else:
                self._end(job.job_id)
        return begun

    def _ended(self) -> bool:
        """Whether nothing more will be sent: a product may have to be sent again."""
        with self._lock:
            return self._over or self._call.cancelled or (self._closed and not self._jobs)

    def _message_of_batch(self, jobs: list[_Job]) -> bytes:
        batch = Together([job.plan for job in jobs])
        with self._lock:
            number = next(self._ids)
            self._batches[number] = batch, jobs
            self._clocked.add(number)
        return batch.message(number)

    def _messages_of(self, job: _Job, chunk: int) -> Iterator[bytes]:
        plan, job_id = job.plan, job.job_id
        whole = multiply.fits_one_message(self._call, plan, 0)
        if whole:
            yield wire.multiply_header(job_id, plan.with_data())
            return
        self._in_parts = True
        for name, _ in plan.sent:
            plan.operand(name).payload.SetInParent()
        yield wire.multiply_header(job_id, plan.without_data())
        for name, matrix in plan.sent:
            for offset, payload in matrix.pieces(0, matrix.nbytes, chunk):
                if job_id not in self._jobs:
                    return  # the server refused it
                yield wire.operand_chunk(job_id, ROLES[name], offset, payload)

    # The thread that receives.

    def _finish(self, failure: errors.GemmdError) -> None:
        failure = self._fault or failure
        with self._lock:
            left = list(self._jobs.values())
            self._batches.clear()
            self._over = True
            if left or not self._closed:
                self._failure = failure
        for job in left:
            self._fail(job.job_id, failure)

    def _take(self, message: bytes) -> None:
        self._call.moved()
        response = wire.multiply_response(message)
        if isinstance(response, wire.Piece):
            job = self._jobs.get(response.job_id)
            if job is not None:
                job.sink.take(response)
            elif response.job_id in self._batches:
                self._batches[response.job_id][0].sink.take(response)
        elif response.HasField("result"):
            self._clocked.discard(response.result.job_id)
            self._succeed(response.result)
        elif response.HasField("error"):
            self._clocked.discard(response.error.job_id)
            self._refused(response.error)
        if self._closed or self._todo:
            self._send()  # it may have been the last one, or there is room for the next

    def _refused(self, refusal: pb.JobError) -> None:
        error = retries.of_job(refusal)
        with self._lock:
            _, jobs = self._batches.pop(refusal.job_id, (None, None))
        if jobs is not None:
            self._refused_together(jobs, error)
            return
        job = self._jobs.get(refusal.job_id)
        if job is None:
            return
        wait = self._wait_after(job, error)
        if wait is not None:
            self._send_again([job], wait)
            return
        if isinstance(error, errors.NotFound):
            error = explain_not_found(self._call, error, job.plan.handles)
        self._fail(refusal.job_id, error)

    def _refused_together(self, jobs: list[_Job], error: errors.GemmdError) -> None:
        """Where the server was at a bound, all of them wait, as long as there are attempts left.
        What may be of the batch alone has them sent one by one. Anything else is the error of
        each."""
        wait = self._wait_after(jobs[0], error)
        if wait is None:
            if retries.refused(error) or not together.go_alone(error):
                for job in jobs:
                    self._fail(job.job_id, error)
                return
            for job in jobs:
                job.alike = None
        self._send_again(jobs, wait or 0.0)

    def _wait_after(self, job: _Job, error: errors.GemmdError) -> float | None:
        """Seconds before another attempt; None where there is none."""
        if not retries.refused(error):
            return None
        wait = retries.wait(self._client._connection.options.retry, job.tries, error)
        return wait if wait is not None and self._budget.take() else None

    def _send_again(self, jobs: list[_Job], wait: float) -> None:
        with self._lock:
            if wait > 0:
                self._allowed = max(1.0, self._under_way() - 1)
            for job in jobs:
                del self._jobs[job.job_id]
                job.again(next(self._ids), wait)
                self._jobs[job.job_id] = job
                self._todo.append(job)
        self._send()

    def _succeed(self, result: pb.MultiplyResult) -> None:
        if result.report.HasField("check"):
            self._merges = False
            self._client._connection.server_checks = True
        elif self._merges is None:
            self._merges = True
        with self._lock:
            batch, jobs = self._batches.pop(result.job_id, (None, None))
        if batch is None or jobs is None:
            job = self._jobs.get(result.job_id)
            if job is not None:
                self._deliver(job, result.report, None, 0)
            return
        for place, job in enumerate(jobs):
            self._deliver(job, result.report, batch, place)

    def _deliver(
        self, job: _Job, proto: pb.ProductReport, batch: Together | None, place: int
    ) -> None:
        try:
            if batch is None:
                multiply.check_shape(job.plan.shape, proto)
                job.sink.check_complete()
            else:
                batch.check(proto)
                batch.deliver(place, job.target)
            report = Report(proto)
            array = job.plan.result(job.target, report)
        except Exception as error:
            job.future.fail(error, self._unseen)
        else:
            job.future.report = report
            job.future.set_result(array)
            self._budget.on_call()
            with self._lock:
                self._allowed = min(self._window, self._allowed + 0.2 / self._allowed)
        self._end(job.job_id)

    def _fail(self, job_id: int, error: errors.GemmdError) -> None:
        job = self._jobs.get(job_id)
        if job is None:
            return
        if self._begin(job):
            job.future.fail(error, self._unseen)
        self._end(job_id)

    def _end(self, job_id: int) -> None:
        with self._lock:
            job = self._jobs.pop(job_id, None)
            if job is None:
                return
            self._left_room += 1
            if self._left_room == self._bunch:
                self._give_room(self._left_room)
                self._left_room = 0
        job.future._pipeline = None
        if job.collect:
            self._done.put(job.future)

    def _give_room(self, count: int) -> None:
        paid = min(self._owed, count)
        self._owed -= paid
        for _ in range(count - paid):
            self._room.put(None)


# What the threads of a stream call. They hold no pipeline, so that one that was dropped is garbage.


def _has_left(own: weakref.ref[Pipeline]) -> None:
    pipeline = own()
    if pipeline is not None:
        pipeline._message_left()


def _waits(own: weakref.ref[Pipeline]) -> bool:
    pipeline = own()
    return pipeline is not None and bool(pipeline._jobs)


def _read(own: weakref.ref[Pipeline], stream: Stream, call: Call) -> None:
    """The thread that receives."""

    def take(message: bytes) -> None:
        pipeline = own()
        if pipeline is not None:
            pipeline._take(message)
        else:
            call.cancel()

    failure: errors.GemmdError = errors.Internal("the server ended the stream early")
    try:
        stream.run(take)
    except grpc.RpcError as error:
        failure = call.explain(error)
    except errors.GemmdError as error:
        failure = error
    except BaseException as error:
        failure = errors.Internal(f"the pipeline failed: {error!r}")
    finally:
        call.connection.idle_watch.remove(call)
    pipeline = own()
    if pipeline is not None:
        pipeline._finish(failure)
