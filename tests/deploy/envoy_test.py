#!/usr/bin/env python3
"""Runs the configuration of deploy/envoy/ before two gemmds: TLS, long streams, floods, a drain.

  envoy_test.py --gemmd build/host/server/gemmd --envoy .venv/bin/envoy

Exits with 1 and a sentence for each thing that is not as it must be, with 77 (skipped) where a
Python module is missing. Takes less than a minute. Times of the configuration that are minutes
are seconds here (envoy_setup.py).
"""

import argparse
import concurrent.futures
import importlib.util
import os
import pathlib
import ssl
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "attacks")]

MISSING = [n for n in ("grpc", "numpy") if importlib.util.find_spec(n) is None]
if MISSING:
    print(f"skipped: {sys.executable} has no module {', '.join(MISSING)}")
    sys.exit(77)

import envoy_floods  # noqa: E402  (they need the modules looked for above)
import envoy_headers  # noqa: E402
import envoy_report  # noqa: E402
import grpc  # noqa: E402
import numpy  # noqa: E402
from envoy_scene import CALL_SECONDS, Scene, Stream, seen  # noqa: E402
from envoy_setup import DRAIN_DELAY_SECONDS, await_true  # noqa: E402

import wire  # noqa: E402

# Beyond the scaled times of a connection (8 s of age, 15 s without a call), and beyond what
# Envoy gives a route that says nothing (15 s).
LONG_STREAM_SECONDS = 20
IN_FLIGHT = "gemmd_jobs_in_flight"


def check_tls_and_callers(scene):
    """Who is not known to gemmd is refused by it, and who is known is known by name."""
    seen(scene.caller().info().caller.name == "alice", "the token's caller is not alice")
    seen(scene.caller(token="").code() == grpc.StatusCode.UNAUTHENTICATED, "no token, and served")
    seen(scene.caller(token="no").code() == grpc.StatusCode.UNAUTHENTICATED,
         "a wrong token, and served")
    seen(scene.caller(roots=scene.other_roots).code() == grpc.StatusCode.UNAVAILABLE,
         "a client that trusts another CA was served")
    plain = wire.stub(grpc.insecure_channel(scene.envoy.address))
    try:
        plain.GetServerInfo(wire.messages().GetServerInfoRequest(), timeout=CALL_SECONDS)
        raise AssertionError("a connection without TLS was served")
    except grpc.RpcError as error:
        seen(error.code() == grpc.StatusCode.UNAVAILABLE, f"without TLS: {error.code()}")


def check_large_products(scene):
    """Far more than any buffer of the proxy, there and back."""
    n = 1024
    stream = Stream(scene.caller())
    stream.begin(1, n)
    data = numpy.ones((n, n), numpy.float32).tobytes()
    pb = wire.messages()
    for role in (pb.OPERAND_ROLE_A, pb.OPERAND_ROLE_B):
        for offset in range(0, len(data), 1 << 20):
            stream._send(chunk=pb.OperandChunk(job_id=1, operand=role, offset=offset,
                                               data=data[offset:offset + (1 << 20)]))
    received = 0
    for message in stream._call:
        received += len(message.chunk.data) if message.HasField("chunk") else 0
        if message.WhichOneof("message") in ("result", "error"):
            break
    seen(received == len(data), f"{received} bytes of a result of {len(data)} came")
    stream.end()


def check_long_streams(scene):
    """A stream with jobs outlives the time and the age of connections."""
    stream = Stream(scene.caller())
    stream.multiply(1)
    time.sleep(LONG_STREAM_SECONDS)
    stream.multiply(2)
    stream.end()


def check_silent_streams(scene):
    """A stream that nobody uses ends: 30 minutes, 30 s here."""
    stream = Stream(scene.caller())
    stream.multiply(1)
    begin = time.monotonic()
    code = stream.await_end()
    seen(code != grpc.StatusCode.OK, "a silent stream ended with OK")
    seen(time.monotonic() - begin > LONG_STREAM_SECONDS,
         f"a silent stream ended after {time.monotonic() - begin:.0f} s with {code}")


def check_new_certificate(scene):
    """The proxy takes a new certificate for new connections; a stream that is open goes on."""
    stream = Stream(scene.caller())
    stream.multiply(1)
    renewed = scene.folder / "renewed"
    scene.ca.issue(renewed)
    wanted = ssl.PEM_cert_to_DER_cert((renewed / "tls.crt").read_text(encoding="ascii"))
    seen(scene.certificate() != wanted, "the proxy shows a certificate that it does not have yet")
    # One after the other: with the new key and the old certificate the old pair stays.
    for name in ("tls.key", "tls.crt"):
        os.replace(renewed / name, scene.envoy.folder / "tls" / name)
    seen(await_true(lambda: scene.certificate() == wanted),
         "the proxy does not show the new certificate")
    seen(scene.caller().info().caller.name == "alice", "the token's caller is not alice")
    stream.multiply(2)
    stream.end()


TOGETHER = (check_tls_and_callers, check_large_products, check_long_streams, check_silent_streams,
            check_new_certificate, envoy_headers.check_headers, *envoy_floods.CHECKS)


def check_drain(scene):
    """One of two servers drains: no call fails, and the job it has ends."""
    caller, stream = scene.caller(), Stream(scene.caller())
    stream.begin(1)
    seen(await_true(lambda: any(s.metric(IN_FLIGHT) == 1 for s in scene.servers)),
         "a job with no payload is in flight nowhere")
    draining = next(s for s in scene.servers if s.metric(IN_FLIGHT) == 1)
    over, failures = threading.Event(), []

    def call_on():
        while not over.is_set():
            try:
                caller.multiply()
                time.sleep(0.02)
            except grpc.RpcError as error:
                failures.append(f"{error.code()}: {error.details()}")

    calling = threading.Thread(target=call_on)
    calling.start()
    try:
        draining.process.terminate()
        stream.stir()
        seen(await_true(lambda: scene.envoy.healthy() == 1), "the proxy did not see the drain")
        for _ in range(DRAIN_DELAY_SECONDS):
            time.sleep(1)
            stream.stir()
        # Now it refuses calls.
        message = stream.finish(1)
        seen(message is not None and message.HasField("result"),
             f"the draining server's job ended with {message or 'the stream'}")
        code = draining.process.wait(CALL_SECONDS)
        seen(code == 0, f"the draining server ended with {code}:\n{draining.log()}")
    finally:
        over.set()
        calling.join()
    seen(not failures, f"{len(failures)} calls failed in the drain, the first: {failures[:1]}")


def run(check, scene):
    begin = time.monotonic()
    faults = []
    try:
        check(scene)
    except Exception as error:  # whatever it is, it is this check's
        faults = [f"{check.__name__}: {type(error).__name__}: {error}"]
    outcome = envoy_report.Outcome(check.__doc__.splitlines()[0], time.monotonic() - begin, faults)
    if not faults:
        print(f"ok: {outcome.what} ({outcome.seconds:.0f} s)", flush=True)
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--envoy", required=True, help="the proxy's program")
    parser.add_argument("--only", default="", help="only checks with this in their name")
    parser.add_argument("--report", help="a page of Markdown to write")
    arguments = parser.parse_args()
    names = [check.__name__ for check in (*TOGETHER, check_drain)]
    if not any(arguments.only in name for name in names):
        parser.error(f"--only is '{arguments.only}': there are {', '.join(names)}")
    if not pathlib.Path(arguments.envoy).is_file():
        print(f"FAILED: there is no {arguments.envoy}: scripts/install-deps.sh test installs it")
        return 1
    wire.load_stubs("")
    with tempfile.TemporaryDirectory(prefix="envoy-test-") as folder:
        scene = Scene(arguments, pathlib.Path(folder))
        try:
            together = [c for c in TOGETHER if arguments.only in c.__name__]
            with concurrent.futures.ThreadPoolExecutor(len(TOGETHER)) as pool:
                outcomes = list(pool.map(lambda check: run(check, scene), together))
            if arguments.only in check_drain.__name__:
                outcomes.append(run(check_drain, scene))
            faults = sum((outcome.faults for outcome in outcomes), [])
            if faults:
                faults.append(f"the proxy's log:\n{scene.envoy.log()}")
        finally:
            faults_of_end = scene.close()
    for fault in [*faults, *faults_of_end]:
        print(f"FAILED: {fault}", flush=True)
    if arguments.report:
        envoy_report.write(arguments, outcomes, bool(faults or faults_of_end))
    return 1 if faults or faults_of_end else 0


if __name__ == "__main__":
    sys.exit(main())
