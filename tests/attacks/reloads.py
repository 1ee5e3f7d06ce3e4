#!/usr/bin/env python3
"""Replaces the server's certificates and callers again and again while callers call.

  reloads.py --start-gemmd build/host/server/gemmd --times 100 --report docs/results/reloads.md

The files are renamed, written in place, at once and in pieces, or turned by a link; some are wrong
first, and then nothing may change. Most times SIGHUP tells the server, else it looks by itself.
Callers that are in all versions call meanwhile, on open and on new connections, over streams, by
token and by certificate: no call of theirs may fail. After each replacement the server shows the
new certificate, lets the new caller in, and the one that was removed gets UNAUTHENTICATED, on its
open connection, on its open stream, on a new connection, and whenever it tries again later.
Exit status 1 where one of these does not hold.
"""

import argparse
import collections
import os
import pathlib
import random
import signal
import ssl
import statistics
import sys
import tempfile
import time

import attacks  # noqa: F401  (says which modules are missing)
import reload_callers
import reload_files
import sockets
import strangers
import watcher
import wire
from server import Server

IN_FORCE_SECONDS = 30  # the server looks once a second
TWO_CALLS_SECONDS = 2 * reload_callers.CALL_SECONDS
WRONG_FIRST = 0.25     # of the replacements
TOLD = 0.85            # by SIGHUP
EARLIER_TOKENS = 3     # that are tried again after each replacement
INFO = wire.SERVICE + "GetServerInfo"


class Guest:
    """A caller of one version, on a connection and a stream that stay open."""

    def __init__(self, access):
        self.access = access
        self.channel = wire.channel(access)
        self.stream = reload_callers.Stream(access)
        self.began = [self.call(), self.stream.job()]

    def call(self):
        return strangers.status_of(self.channel, INFO, seconds=reload_callers.CALL_SECONDS)

    def everywhere(self):
        """{where: status} of a call on each kind of connection."""
        return {"its open connection": self.call(), "its open stream": self.stream.job(),
                "a new connection": call_anew(self.access)}

    def close(self):
        self.stream.close()
        self.channel.close()


def call_anew(access):
    with wire.channel(access) as channel:
        return strangers.status_of(channel, INFO, seconds=reload_callers.CALL_SECONDS)


class Reloads:
    def __init__(self, server, files, rng):
        self.server, self.files, self.rng = server, files, rng
        self.violations, self.seconds = [], collections.defaultdict(list)
        self.wrong = collections.Counter()
        self.earlier = []  # tokens that were removed
        self.in_force = None
        self.guest = None
        names = [files.caller(name, server.address) for name in reload_files.STAYING]
        self.callers = [kind(names[i % len(names)]) for i, kind in enumerate(reload_callers.KINDS)]
        trainer = files.trainer(server.address)
        self.callers += [kind(trainer) for kind in reload_callers.KINDS[:2]]

    def run(self, times):
        self._take(self.files.version(0), "renamed")
        for caller in self.callers:
            caller.start()
        for number in range(1, times + 1):
            if self.rng.random() < WRONG_FIRST:
                self._try_wrong(number)
            self._take(self.files.version(number), self.rng.choice(list(reload_files.WAYS)))
            self._wait_for_callers()
            if self.violations:
                break
        for caller in self.callers:
            caller.stop()
            kind = f"{type(caller).__doc__}, by {caller.access.who}"
            if caller.failures:
                self._blame(f"failed calls of callers in all versions ({kind}): "
                            f"{len(caller.failures)} of {caller.calls}, 0 allowed; the first: "
                            f"{caller.failures[0]}")

    def _blame(self, text):
        self.violations.append(text)
        print(f"BROKEN: {text}", flush=True)

    def _tell(self):
        told = self.rng.random() < TOLD
        if told:
            os.kill(self.server.pid, signal.SIGHUP)
        return told

    def _take(self, version, way):
        """Puts a version there, and waits until it is in force."""
        begin = time.monotonic()
        reload_files.WAYS[way](self.files, version)
        told = self._tell()
        if not self._wait(lambda: self._is_in_force(version)):
            self._blame(f"version {version.number}, {way}: not in force after "
                        f"{IN_FORCE_SECONDS} s; {self._state(version)}")
            return
        self.seconds[way, told].append(time.monotonic() - begin)
        self.in_force = version
        if self.guest is not None:
            self._check_removed()
        self.guest = Guest(self.files.with_token(version.token, self.server.address))
        if self.guest.began != ["OK", "OK"]:
            self._blame(f"version {version.number}: its caller's first call and job ended with "
                        f"{self.guest.began}, OK needed")

    def _try_wrong(self, number):
        """Files that change nothing."""
        what, of = self.files.put_wrong(self.files.version(number))
        self.wrong[what] += 1
        self._tell()
        current = f'gemmd_identity_current{{what="{of}"}}'
        if not self._wait(lambda: watcher.series(self.server.metrics).get(current) == 0):
            self._blame(f"{what}: {current} is not 0 after {IN_FORCE_SECONDS} s")
        for where, status in self.guest.everywhere().items():
            if status != "OK":
                self._blame(f"{what}: a caller of what is in force got {status} on {where}, "
                            f"OK needed")
        if of == "tls" and self._shown() != certificate_of(self.in_force):
            self._blame(f"{what}: the server does not show the certificate that is in force")

    def _check_removed(self):
        for where, status in self.guest.everywhere().items():
            if status != "UNAUTHENTICATED":
                self._blame(f"a caller that was removed got {status} on {where}, "
                            f"UNAUTHENTICATED needed")
        self.earlier.append(self.guest.access)
        self.guest.close()
        for access in self.rng.sample(self.earlier, min(EARLIER_TOKENS, len(self.earlier))):
            if (status := call_anew(access)) != "UNAUTHENTICATED":
                self._blame(f"a caller that was removed before got {status}, "
                            f"UNAUTHENTICATED needed")

    def _shown(self):
        """The server's certificate, on a new connection."""
        with sockets.open_to(self.files.caller("caller", self.server.address), timeout=30) as s:
            return s.getpeercert(binary_form=True)

    def _state(self, version):
        visitor = call_anew(self.files.visitor(self.server.address))
        current = [name for name, value in watcher.series(self.server.metrics).items()
                   if name.startswith("gemmd_identity_current") and value != 1]
        return {"certificate": self._shown() == certificate_of(version),
                "caller": call_anew(self.files.with_token(version.token, self.server.address)),
                "visitor": (visitor == "OK") == version.visitors, "not current": current}

    def _is_in_force(self, version):
        return self._state(version) == {"certificate": True, "caller": "OK", "visitor": True,
                                        "not current": []}

    def _wait(self, holds, seconds=IN_FORCE_SECONDS):
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _wait_for_callers(self):
        """Until everybody has begun and ended a call since now."""
        before = [caller.calls for caller in self.callers]
        if not self._wait(lambda: all(c.calls > b + 1 for c, b in zip(self.callers, before)),
                          TWO_CALLS_SECONDS):
            self._blame(f"a caller made no 2 calls within {TWO_CALLS_SECONDS} s")


def certificate_of(version):
    return ssl.PEM_cert_to_DER_cert(version.texts["tls.crt"])


def tables(reloads, metrics):
    """Markdown: the replacements, and the callers."""
    lines = ["| files | server is told | times | in force after, s: median | at most |",
             "| --- | --- | ---: | ---: | ---: |"]
    for (way, told), seconds in sorted(reloads.seconds.items()):
        lines.append(f"| {way} | {'SIGHUP' if told else 'nothing'} | {len(seconds)} | "
                     f"{statistics.median(seconds):.2f} | {max(seconds):.2f} |")
    wrong = ", ".join(f"{what}: {count}" for what, count in sorted(reloads.wrong.items()))
    taken = {flag: sum(v for k, v in metrics.items() if k.startswith("gemmd_identity_reloads_total")
                       and f'taken="{flag}"' in k) for flag in ("true", "false")}
    lines += ["", f"Wrong first: {wrong or 'none'}. The server took files {taken['true']:.0f} "
              f"times, and refused them {taken['false']:.0f} times.", "",
              "| caller in all versions | by | calls | failed |", "| --- | --- | ---: | ---: |"]
    for caller in reloads.callers:
        by = "certificate" if caller.access.certificate else "token"
        lines.append(f"| {type(caller).__doc__} | {by} | {caller.calls} | "
                     f"{len(caller.failures)} |")
    lines += ["", f"Callers that were removed, and got UNAUTHENTICATED: {len(reloads.earlier)}."]
    return "\n".join(lines)


def write_report(path, text, arguments, violations):
    head = ["# Certificates and callers, replaced under load", "",
            f"`tests/attacks/reloads.py --times {arguments.times} --seed {arguments.seed}`, on a "
            f"machine with {os.cpu_count()} cores. Written by that program.", ""]
    found = [f"- BROKEN: {text}" for text in violations] or ["All held."]
    pathlib.Path(path).write_text("\n".join([*head, text, "", *found]) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start-gemmd", metavar="PATH", required=True)
    parser.add_argument("--devices", default="host")
    parser.add_argument("--stubs", default="")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", help="a page of Markdown to write")
    arguments = parser.parse_args()
    wire.load_stubs(arguments.stubs)
    rng = random.Random(arguments.seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="reloads-") as folder:
        folder = pathlib.Path(folder)
        files = reload_files.Files(folder / "files", rng)
        server = Server(arguments.start_gemmd, arguments.devices, folder / "gemmd.log", guard=files,
                        timeouts=("--max-queue-wait=1h",))
        reloads = Reloads(server, files, rng)
        try:
            reloads.run(arguments.times)
            text = tables(reloads, watcher.series(server.metrics))
        finally:
            code = server.stop()
        if code != 0:
            reloads.violations.append(f"exit code of the server after SIGTERM: {code}, 0 needed")
        if reloads.violations:
            print(f"the server's last lines:\n{server.log()}")
    print(f"{text}\n\n{arguments.times} replacements in {time.monotonic() - begin:.0f} s, "
          f"{len(reloads.violations)} broken")
    if arguments.report:
        write_report(arguments.report, text, arguments, reloads.violations)
    sys.stdout.flush()
    os._exit(1 if reloads.violations else 0)  # without waiting for streams of what was removed


if __name__ == "__main__":
    main()
