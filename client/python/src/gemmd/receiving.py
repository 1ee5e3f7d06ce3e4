"""Receives the results of a pipeline's products, and sends those again that were refused."""

from __future__ import annotations

import weakref

import grpc

from . import errors, multiply, retries, together, wire
from .call import Call
from .connection import Connection
from .contract import pb
from .futures import ProductFuture
from .handle import explain_not_found
from .report import Report
from .sending import Sending
from .stream import Stream
from .together import Together
from .window import Job


class Receiving(Sending):
    """Its methods are called on the thread that receives."""

    def __init__(self, connection: Connection, window: int, batch: bool) -> None:
        super().__init__(connection, window, batch)
        self._budget = retries.Budget(2 * window, 1)
        self._failure: errors.GemmdError | None = None
        self._unseen: dict[int, ProductFuture] = {}  # failures that nobody has asked for

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

    def _refused_together(self, jobs: list[Job], error: errors.GemmdError) -> None:
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

    def _wait_after(self, job: Job, error: errors.GemmdError) -> float | None:
        """Seconds before another attempt; None where there is none."""
        if not retries.refused(error):
            return None
        wait = retries.wait(self._call.connection.options.retry, job.tries, error)
        return wait if wait is not None and self._budget.take() else None

    def _send_again(self, jobs: list[Job], wait: float) -> None:
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
            self._call.connection.server_checks = True
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
        self, job: Job, proto: pb.ProductReport, batch: Together | None, place: int
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


# The threads of a stream call these. They hold no pipeline, so a dropped one becomes garbage.


def has_left(own: weakref.ref[Receiving]) -> None:
    pipeline = own()
    if pipeline is not None:
        pipeline._message_left()


def waits(own: weakref.ref[Receiving]) -> bool:
    pipeline = own()
    return pipeline is not None and bool(pipeline._jobs)


def read(own: weakref.ref[Receiving], stream: Stream, call: Call) -> None:
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
