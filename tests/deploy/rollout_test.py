#!/usr/bin/env python3
"""Rolls three gemmds behind one DNS name under load, then kills one: gRPC's own clients go on.

  rollout_test.py --gemmd build/host/server/gemmd [--report PAGE]

The servers have the flags and times of the Helm chart, TLS and callers; each is in a network
namespace of its own, and a new one has a new address. Clients are plain ones of gRPC with the policy
round_robin. Half of them have a retry policy, too; none of their calls may fail. Of the others the
failed calls are reported. Every product is compared.

Exits with 1 and a sentence for each thing that is not as it must be, with 77 (skipped) where it is
not run by root, or a tool or Python module is missing. Takes about four minutes.
"""

import argparse
import collections
import datetime
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "attacks")]

MISSING = [n for n in ("grpc", "numpy") if importlib.util.find_spec(n) is None]
MISSING += [n for n in ("ip", "unshare", "dnsmasq") if shutil.which(n) is None]
if MISSING or os.geteuid() != 0:
    print(f"skipped: missing are {', '.join(MISSING)}" if MISSING else "skipped: needs root")
    sys.exit(77)

import grpc  # noqa: E402  (looked for above)
import numpy  # noqa: E402
import rollout_fleet  # noqa: E402

import wire  # noqa: E402

SIZE = 3
CLIENTS = 4  # of each kind, with a channel each
PAUSE_SECONDS = 0.02  # of a client, between its calls
CALL_SECONDS = 20
STEADY_SECONDS = 15
# CANCELLED may be a call that arrives while gRPC closes the server's connections.
CODES = ["UNAVAILABLE", "CANCELLED"]
RETRIES = {"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
    "retryableStatusCodes": CODES}}]}
KINDS = ("with retries", "without")


class Calls:
    """What the calls of one kind of client gave, phase by phase."""

    def __init__(self):
        self.seconds, self.codes, self.wrong = [], collections.Counter(), 0

    def percentile(self, percent):
        return float(numpy.percentile(self.seconds, percent)) * 1000


class Load:
    """Clients that multiply until they are stopped."""

    def __init__(self, fleet):
        self._fleet, self._over, self._lock = fleet, threading.Event(), threading.Lock()
        self.phases = {}  # {(phase, kind): Calls}
        self._phase = None
        self._threads = [threading.Thread(target=self._run, args=(kind, number))
                         for kind in KINDS for number in range(CLIENTS)]

    def begin(self, phase):
        with self._lock:
            for kind in KINDS:
                self.phases[phase, kind] = Calls()
            self._phase = phase
        if not self._threads[0].is_alive():
            for thread in self._threads:
                thread.start()

    def end(self):
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _stub(self, kind, number):
        options = [*wire.UNLIMITED, ("gemm.channel", f"{kind} {number}"), ("grpc.lb_policy_name", "round_robin"),
                   ("grpc.ssl_target_name_override", "localhost")]
        options += ([("grpc.service_config", json.dumps(RETRIES))] if kind == KINDS[0]
                    else [("grpc.enable_retries", 0)])
        channel = grpc.secure_channel(
            self._fleet.address(), grpc.ssl_channel_credentials(self._fleet.roots), options)
        return wire.stub(channel)

    def _run(self, kind, number):
        stub, pb = self._stub(kind, number), wire.messages()
        random = numpy.random.default_rng(number)
        while not self._over.wait(PAUSE_SECONDS):
            # Integers, so that the product is exact.
            a, b = (random.integers(-8, 8, (64, 64)).astype(numpy.float32) for _ in range(2))
            operands = [pb.Operand(shape=wire.shape(64, 64), data=each.tobytes()) for each in (a, b)]
            request = pb.MultiplyUnaryRequest(product=pb.Product(a=operands[0], b=operands[1]))
            begin, code, right = time.monotonic(), grpc.StatusCode.OK, True
            try:
                answer = stub.MultiplyUnary(request, timeout=CALL_SECONDS,
                                            metadata=[("authorization", f"Bearer {rollout_fleet.TOKEN}")])
                right = numpy.array_equal(numpy.frombuffer(answer.data, numpy.float32).reshape(64, 64), a @ b)
            except grpc.RpcError as error:
                code = error.code()
            seconds = time.monotonic() - begin
            with self._lock:
                calls = self.phases[self._phase, kind]
                calls.seconds.append(seconds)
                calls.codes[code.name] += 1
                calls.wrong += not right


def rehearse(fleet, load):
    """Sentences of what is not as it must be."""
    load.begin("steady")
    time.sleep(STEADY_SECONDS)
    load.begin("rolled")
    for server in list(fleet.servers):
        code = fleet.replace(server)
        if code != 0:
            yield f"a server ended with {code}:\n{server.log()}"
    load.begin("one killed")
    fleet.kill(fleet.servers[0])
    load.end()
    # All of them are new: a client that did not ask DNS again would have nobody left.
    for server in fleet.servers:
        if server.products() == 0:
            yield f"the server at {server.host} got no product"


def verdict(load):
    for (phase, kind), calls in load.phases.items():
        failed = {code: count for code, count in calls.codes.items() if code != "OK"}
        if calls.wrong:
            yield f"{phase}, {kind}: {calls.wrong} products are wrong"
        if failed and kind == KINDS[0]:
            yield f"{phase}, {kind}: calls failed: {failed}"
        if not calls.codes["OK"]:
            yield f"{phase}, {kind}: no call succeeded"


def rows(load):
    for (phase, kind), calls in load.phases.items():
        failed = ", ".join(f"{count} {code}" for code, count in calls.codes.items() if code != "OK")
        yield [phase, kind, f"{len(calls.seconds)}", failed or "0", f"{calls.wrong}",
               *(f"{calls.percentile(percent):.0f}" for percent in (50, 99, 100))]


HEAD = ["phase", "clients", "calls", "failed", "wrong", "p50, ms", "p99, ms", "longest, ms"]


def table(load):
    lines = [HEAD, ["---"] * len(HEAD), *rows(load)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_report(path, gemmd, load, faults):
    version = subprocess.run([gemmd, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    v = rollout_fleet.value
    pathlib.Path(path).write_text(f"""# Servers rolled behind one name

`tests/deploy/rollout_test.py --gemmd GEMMD --report docs/results/rollout.md`, on {datetime.date.today()}, {version}, a machine with {os.cpu_count()} cores whose load was {os.getloadavg()[0]:.0f} at the end, servers and clients together. Written by that program.

{SIZE} servers on the host device, with TLS and callers, in network namespaces of their own behind one DNS name (dnsmasq, {rollout_fleet.DNS_TTL_SECONDS} s to live). {2 * CLIENTS} clients of gRPC {grpc.__version__} with `round_robin` send 64 x 64 products, one after the other, with {1000 * PAUSE_SECONDS:.0f} ms between them; half of them with gRPC's retry policy for {" and ".join(CODES)}. {"Some checks failed." if faults else "No call with retries failed, and every product is right."}

{table(load)}

- *rolled*: each server in turn leaves the name, gets SIGTERM, serves for {v("delaySeconds")} s (`--drain-delay`), and ends with 0; a new one comes with another address, and serves {v("minReadySeconds")} s before the next one goes.
- *one killed*: SIGKILL; the name has the dead server for {rollout_fleet.readiness_seconds()} s more.

A call that arrives while gRPC closes the connections of a server that ends may be CANCELLED instead of UNAVAILABLE. So a retry policy names both; products may be sent twice.

A killed server shows what the death of the process does. A node that is gone without a word, or a server that is stopped, is not in here: `round_robin` goes on sending to it until the keepalive ends the connection.
""", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--report", help="a page of Markdown to write")
    arguments = parser.parse_args()
    rollout_fleet.enter_own_namespaces()
    wire.load_stubs("")
    with tempfile.TemporaryDirectory(prefix="rollout-test-") as folder:
        fleet = rollout_fleet.Fleet(arguments.gemmd, pathlib.Path(folder), SIZE)
        load = Load(fleet)
        try:
            faults = [*rehearse(fleet, load), *verdict(load)]
        finally:
            load.end()
            fleet.close()
    print(table(load))
    for fault in faults:
        print(f"FAILED: {fault}", flush=True)
    if arguments.report:
        write_report(arguments.report, arguments.gemmd, load, faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
