"""Callers in all versions of the files, who call without a pause: no call of theirs may fail."""

import threading
import time

import grpc

import wire

CALL_SECONDS = 60
EXTENT = 16


def _product():
    return wire.generated_product(EXTENT, EXTENT, EXTENT)


class OneCaller:
    """A kind of caller, each of whose rounds is call() in a thread."""

    def __init__(self, access):
        self.access = access
        self.calls, self.failures = 0, []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(CALL_SECONDS + 10)

    def _run(self):
        while not self._stop.is_set():
            begin = time.monotonic()
            try:
                self.call()
            except grpc.RpcError as error:
                self.failures.append(f"{error.code().name} after {time.monotonic() - begin:.1f} s: "
                                     f"{error.details()[:200]}")
                time.sleep(0.1)
            self.calls += 1

    def call(self):
        raise NotImplementedError


class OpenConnection(OneCaller):
    """products on an open connection"""

    def __init__(self, access):
        super().__init__(access)
        self._stub = wire.stub(wire.channel(access))

    def call(self):
        request = wire.messages().MultiplyUnaryRequest(product=_product())
        self._stub.MultiplyUnary(request, timeout=CALL_SECONDS)


class NewConnections(OneCaller):
    """a connection for each call"""

    def call(self):
        with wire.channel(self.access) as channel:
            wire.stub(channel).GetServerInfo(wire.messages().GetServerInfoRequest(),
                                             timeout=CALL_SECONDS)


class Uploads(OneCaller):
    """uploads and downloads on an open connection"""

    def __init__(self, access):
        super().__init__(access)
        self._stub = wire.stub(wire.channel(access))

    def call(self):
        pb = wire.messages()
        reference = pb.MatrixRef(id=wire.put_generated(self._stub, "", EXTENT, EXTENT,
                                                       CALL_SECONDS).id)
        for _ in self._stub.GetMatrix(pb.GetMatrixRequest(matrix=reference), timeout=CALL_SECONDS):
            pass
        self._stub.DeleteMatrix(pb.DeleteMatrixRequest(matrix=reference), timeout=CALL_SECONDS)


class Stream:
    """A Multiply stream that stays open; jobs one after the other."""

    def __init__(self, access):
        self._sent, self._more, self._job = [], threading.Semaphore(0), 0
        self._channel = wire.channel(access)
        self._answers = wire.stub(self._channel).Multiply(self._requests())

    def _requests(self):
        while True:
            self._more.acquire()
            if not self._sent:
                return
            yield self._sent.pop(0)

    def job(self):
        """The name of the code with which the next job ends."""
        self._job += 1
        self._sent.append(wire.multiply_header(self._job, _product()))
        self._more.release()
        try:
            for answer in self._answers:
                if answer.HasField("error"):
                    return grpc_name(answer.error.code)
                if answer.HasField("result"):
                    return "OK"
        except grpc.RpcError as error:
            return f"the stream's end with {error.code().name}: {error.details()}"
        return "the stream's end"

    def close(self):
        self._more.release()
        self._channel.close()


def grpc_name(number):
    return {code.value[0]: code.name for code in grpc.StatusCode}.get(number, str(number))


class OpenStream(OneCaller):
    """jobs of an open stream"""

    def __init__(self, access):
        super().__init__(access)
        self._stream = Stream(access)

    def call(self):
        code = self._stream.job()
        if code != "OK":
            self.failures.append(f"a job ended with {code}")


KINDS = (OpenConnection, NewConnections, Uploads, OpenStream)
