#!/usr/bin/env python3
"""Kills clients at random points of their calls, and looks whether the server gives all back.

  kills.py --start-gemmd build/host/server/gemmd --gemmctl build/host/client/ctl/gemmctl --kills 50

The server has TLS and asks for tokens. Several clients work at a time, of gemmctl and of Python's
grpcio: single products, streams, uploads, split uploads, downloads. Each gets SIGKILL at a random
moment and another takes its place, while a bystander's calls are checked. After each leg every
gauge of the server must be where it was before the first one: jobs, queue, admission, staging,
device memory, store, matrices, connections, whatever /metrics has. Resident memory may rise by
no more from leg to leg than the allocator keeps. Exit status 1 where one of these does not hold.
"""

import argparse
import collections
import functools
import multiprocessing
import os
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

import attacks  # noqa: F401  (says which modules are missing)
import calls
import guard
import kill_report
import victims
import warm
import watcher
import wire
from access import save
from server import Server

AT_A_TIME = 6
LONGEST_DELAY = 0.6       # of a kill, seconds after the client's calls began
LONGEST_LIFE = 0.4        # of a gemmctl, which does not say when they begin
TRIES = 40                # of a kind that ends before its kill, each time with a shorter life
BEGIN_SECONDS = 60
# A split upload of which some parts came waits so long for the others. Nor is a job refused because
# others are ahead of it: gemmctl would end.
TIMEOUTS = ["--upload-timeout=10s", "--max-queue-wait=1h"]
SETTLE_SECONDS = 60
# A matrix that expires within this time is waited for.
SOON_SECONDS = 10
# What a killed client may leave with a time to live of minutes: operands and result of a split
# product; operands of a load test, and the results that it keeps.
STRIPED = "gemmctl multiply, striped"
MAY_LEAVE = {STRIPED: 3, "gemmctl loadtest, resident and kept": 16}
RATE = 3                  # the bystander's products a second
RSS_ALLOWANCE_MIB = 96
DESCRIPTOR_ALLOWANCE = 8


class Client:
    """A process to kill: of victims.KINDS, or of gemmctl."""

    def __init__(self, context, kind, access, seed):
        self.begun = context.Event()
        self.process = context.Process(target=victims.run, daemon=True,
                                       args=(kind, access, seed, self.begun))
        self.process.start()

    def wait(self, rng, _):
        """Until the random moment; False where it did not get to work."""
        if not self.begun.wait(BEGIN_SECONDS):
            return False
        time.sleep(LONGEST_DELAY * rng.random()**2)
        return True

    def kill(self):
        """False where it had ended before."""
        # Its exit code is no proof: the fork server may lose it, and says 255.
        self._alive = self.process.is_alive()
        self.process.kill()
        self.process.join()
        return self._alive

    def failure(self):
        """Its exit code, where it ended by itself: what the server refuses it tries again."""
        return "" if self._alive else f"exit code {self.process.exitcode} before its kill"


class Command:
    def __init__(self, commands, kind):
        self._errors = tempfile.TemporaryFile()
        self.process = commands.start(kind, self._errors)

    def wait(self, rng, tries):
        time.sleep(LONGEST_LIFE * rng.random() / (1 + tries))
        return True

    def kill(self):
        self.process.kill()
        return self.process.wait() == -9

    def failure(self):
        """The exit code and what it said, where it failed by itself."""
        with self._errors:
            if self.process.returncode in (0, -9):
                return ""
            self._errors.seek(0)
            text = self._errors.read().decode(errors="replace").strip()
        return f"exit code {self.process.returncode} before its kill, 0 needed: {text[-300:]}"


class Kills:
    def __init__(self, server, commands, seed):
        self.server, self.commands, self.seed = server, commands, seed
        # Forked from a process that has loaded gRPC and not used it: a client in milliseconds.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["victims"])
        self._access = server.caller("matrices")
        self._lock = threading.Lock()
        self.kinds = [*victims.KINDS, *(commands.kinds if commands else ())]
        # Each of them is killed once before one is drawn.
        self._first = random.Random(seed).sample(self.kinds, len(self.kinds))
        self.killed, self.ended = collections.Counter(), collections.Counter()
        self.violations = []

    def _draw(self, rng):
        with self._lock:
            return self._first.pop() if self._first else rng.choice(self.kinds)

    def _one(self, kind, rng, tries):
        """Starts a client and kills it; True where it was alive until then."""
        if kind in victims.KINDS:
            client = Client(self._context, kind, self._access, rng.getrandbits(32))
        else:
            client = Command(self.commands, kind)
        worked = client.wait(rng, tries)
        killed = client.kill()
        failure = client.failure()
        with self._lock:
            if not worked:
                self.violations.append(f"{kind}: no call answered within {BEGIN_SECONDS} s")
            if failure:
                self.violations.append(f"{kind}: {failure}")
            (self.killed if killed else self.ended)[kind] += 1
        return killed

    def leg(self, number, count):
        """So many kills, AT_A_TIME clients at work."""
        todo = iter(range(count))

        def work(worker):
            rng = random.Random(self.seed * 1_000_003 + number * 1009 + worker)
            while True:
                with self._lock:
                    if next(todo, None) is None or self.violations:
                        return
                kind = self._draw(rng)
                if not any(self._one(kind, rng, tries) or self.violations
                           for tries in range(TRIES)):
                    self.violations.append(f"{kind}: ended before its kill {TRIES} times")

        threads = [threading.Thread(target=work, args=(i,)) for i in range(AT_A_TIME)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def gauges(metrics):
    """{series: value} of every gauge that is the server's own, but for what it has seen."""
    return {name: value for name, value in watcher.series(metrics, "gauge").items()
            if name.startswith("gemmd_") and name != "gemmd_traffic_entries"}


def ended_calls(metrics):
    """Calls that the server has ended, by status."""
    ends = collections.Counter()
    for name, value in watcher.series(metrics).items():
        if name.startswith("gemmd_requests_total{"):
            ends[re.search(r'outcome="(\w+)"', name)[1]] += int(value)
    return ends


def remove_left(operator):
    """Deletes what a client left with a time to live of minutes, as a split product does.

    How many those were, and the names of what has no time to live.
    """
    pb = wire.messages()
    with wire.channel(operator) as channel:
        stub = wire.stub(channel)
        matrices = stub.ListMatrices(pb.ListMatricesRequest(every_owner=True), timeout=30).matrices
        left = [m for m in matrices
                if m.HasField("expires") and m.expires.seconds > time.time() + SOON_SECONDS]
        for matrix in left:
            wire.delete_id(stub, matrix.id)
    return len(left), sorted(m.name or m.id for m in matrices if not m.HasField("expires"))


def check_killed(kills):
    """A sentence for each kind that was not killed, where there were as many kills as kinds."""
    if sum(kills.killed.values()) >= len(kills.kinds):
        for kind in kills.kinds:
            if not kills.killed[kind]:
                yield f"kills of {kind}: 0, at least 1 needed"


def check_removed(kills, removed):
    """A sentence where more was left than killed clients can leave."""
    most = sum(kills.killed[kind] * count for kind, count in MAY_LEAVE.items())
    if removed > most:
        yield f"matrices left with a time to live: {removed}, at most {most} allowed"


def check_striped(server, commands):
    """A sentence where a split product that is not killed fails, or leaves a matrix."""
    code = commands.start(STRIPED).wait()
    left, _ = remove_left(server.caller("operator"))
    if code != 0 or left:
        yield f"{STRIPED}, not killed: exit code {code}, {left} matrices left; 0 of both needed"


def settle(server, start):
    """Waits until every gauge is where it was.

    Seconds, the gauges that are not there, those that were the last, how many matrices were
    removed, and those that stay.
    """
    begin = time.monotonic()
    removed, staying, last = 0, [], {}
    while True:
        now = gauges(server.metrics)
        off = {name: (value, now.get(name)) for name, value in start.items()
               if now.get(name) != value}
        off |= {name: (None, value) for name, value in now.items() if name not in start}
        took = time.monotonic() - begin
        if not off or took > SETTLE_SECONDS or not server.alive():
            return took, off, sorted(last), removed, staying
        last = off
        count, staying = remove_left(server.caller("operator"))
        removed += count
        time.sleep(0.25)


class Bystanders:
    """One bystander a leg, and what all of them saw."""

    def __init__(self, server, stubs, folder):
        self._access = save(folder / "bystander", [server.caller("bystander")])
        self._make = lambda: calls.Bystander(self._access, server.metrics, stubs, RATE)
        self.calls = []

    def beside(self, work):
        one = self._make()
        try:
            work()
        finally:
            one.stop()
            self.calls += one.calls

    def violations(self):
        for call in self.calls:
            if call["wrong"]:
                yield f"the bystander's {call['kind']}: {call['wrong']}"
            elif call["status"] not in ("OK", "RESOURCE_EXHAUSTED"):
                yield (f"the bystander's {call['kind']} ended with {call['status']}: "
                       f"{call.get('text', '')[:160]}")
        if not self.calls:
            yield "the bystander made no call"


def run(arguments, server, folder):
    """A kill_report.Report."""
    token = folder / "token"
    token.write_text(server.guard.tokens["matrices"], encoding="ascii")
    warm.up(server.caller("operator"))
    with wire.channel(server.caller("matrices")) as channel:
        wire.put_generated(wire.stub(channel), victims.DOWNLOADED, victims.DOWNLOADED_EXTENT,
                           victims.DOWNLOADED_EXTENT)
    commands = None
    if arguments.gemmctl:
        commands = victims.Commands(arguments.gemmctl, server.caller("matrices"), str(token), folder)
    kills = Kills(server, commands, arguments.seed)
    if commands:
        kills.violations += check_striped(server, commands)
    bystanders = Bystanders(server, arguments.stubs, folder)
    bystanders.beside(lambda: time.sleep(2))
    time.sleep(1)
    start, ends = gauges(server.metrics), ended_calls(server.metrics)
    legs = [kill_report.Leg(0, watcher.process(server.pid))]
    done = 0
    while done < arguments.kills and not kills.violations:
        count = min(arguments.leg, arguments.kills - done)
        bystanders.beside(functools.partial(kills.leg, len(legs), count))
        done += count
        seconds, off, last, removed, staying = settle(server, start)
        legs.append(kill_report.Leg(done, watcher.process(server.pid), seconds, last, off,
                                    removed))
        print(f"{done} kills: {legs[-1].text()}", flush=True)
        if off:
            kills.violations.append(f"after {done} kills, not where they were {seconds:.0f} s "
                                    f"later: {off}; matrices that stay: {staying}")
    kills.violations += check_process(legs)
    kills.violations += check_killed(kills)
    kills.violations += check_removed(kills, sum(leg.removed for leg in legs))
    kills.violations += list(bystanders.violations())[:10]
    return kill_report.Report(arguments, start, legs, kills, bystanders.calls,
                              ended_calls(server.metrics) - ends)


def check_process(legs):
    """Memory and descriptors may not rise from the first leg to the last."""
    first, last = legs[min(1, len(legs) - 1)].held, legs[-1].held
    bounds = {"RSS MiB": RSS_ALLOWANCE_MIB, "descriptors": DESCRIPTOR_ALLOWANCE}
    for measure, allowance in bounds.items():
        if last.get(measure, float("inf")) > first.get(measure, 0) + allowance:
            yield (f"{measure} after the last leg: {last.get(measure)}, at most {allowance} above "
                   f"{first.get(measure)} of the first one allowed")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start-gemmd", metavar="PATH", required=True)
    parser.add_argument("--gemmctl", metavar="PATH", help="left out: clients in Python alone")
    parser.add_argument("--devices", default="host")
    parser.add_argument("--stubs", default="")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--leg", type=int, default=100, help="kills between two looks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", help="a page of Markdown to write")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    arguments.stubs = wire.load_stubs(arguments.stubs)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = pathlib.Path(name)
        server = Server(arguments.start_gemmd, arguments.devices, folder / "gemmd.log",
                        guard=guard.Guard(folder / "guard"), timeouts=TIMEOUTS)
        try:
            report = run(arguments, server, folder)
        finally:
            code = server.stop()
        if code != 0:
            report.violations.append(f"exit code of the server after SIGTERM: {code}, 0 needed")
        if report.violations:
            print(f"the server's last lines:\n{server.log()}")
    report.seconds = time.monotonic() - begin
    print(report.text())
    if arguments.report:
        pathlib.Path(arguments.report).write_text(report.page(), encoding="utf-8")
    sys.stdout.flush()
    os._exit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
