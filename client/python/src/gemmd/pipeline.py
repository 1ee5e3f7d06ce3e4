"""Many products under way on one stream."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any

from . import checks, ends, errors, product, receiving, shapes
from .futures import ProductFuture, raise_first
from .handle import Owner
from .interrupt import Hold
from .product import Plan
from .receiving import Receiving
from .window import Job

_MATMUL_NAMES = ("timeout", *product.OPTION_NAMES)


class Pipeline(Receiving):
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
        super().__init__(client._connection, window, batch)
        self._client = client
        self._collect = collect
        self._order: deque[Future[Any]] = deque()
        self._pending = 0  # completed futures that as_completed has yet to give
        self._reader: threading.Thread | None = None
        try:
            with Hold():
                client._janitor.start()  # for `__del__`
                own: weakref.ref[Receiving] = weakref.ref(self)
                stream = client._connection.stubs().multiply_stream(partial(receiving.has_left, own))
                self._stream = self._call.track(stream)
                self._call.waits = partial(receiving.waits, own)
                self._call.watch()
                reader = threading.Thread(
                    target=receiving.read, args=(own, stream, self._call), daemon=True,
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
                job = Job(next(self._ids), plan, collect)
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
