#!/usr/bin/env python3
"""Attacks a gemmd on loopback, measures what other callers notice, and that all is back after.

  attacks.py --start-gemmd build/host/server/gemmd --devices host --seconds 240
  attacks.py --start-gemmd build/host/server/gemmd --guarded --by stranger
  attacks.py --server 127.0.0.1:50051 --metrics 127.0.0.1:9464 --pid PID --only names --seconds 10

With --guarded the server has TLS, takes certificates of clients, and asks for tokens; the
bystander is a known caller, and the attackers are those of each attack's `by`: strangers, who
must not be served, or other known callers with no more than a role or two.

Beside every attack a bystander multiplies, reads, connects and scrapes, a few times a second. The
attack breaks the server where a bystander's answer is wrong, fails without being a documented
refusal, or takes more than 6 s; where memory, descriptors, threads, staging, jobs or matrices
are not back soon after it; or where anybody is refused then. Each is a sentence that names the
attack, the measure, its value and the bound, and the exit status is 1. A server that an attack
broke is replaced before the next one; one that was started here must end with 0 after SIGTERM.
It is 77 (skipped) where a Python module is missing.
"""

import argparse
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BEFORE_SECONDS = 1.0  # the bystander alone before an attack
SEEN_SECONDS = 10     # in which all that the server holds must have been seen before it
AFTER_SECONDS = 2.0   # and after it: time for a new connection and a scrape
SETTLE_SECONDS = 60   # within which all must be back
ATTACK_GRACE = 25     # an attack that is not over so long after its time is ended


def missing_modules():
    names = ("grpc", "google.protobuf", "numpy")
    return [n for n in names if importlib.util.find_spec(n.split(".")[0]) is None]


if missing_modules():
    print(f"skipped: {sys.executable} has no module {', '.join(missing_modules())}")
    sys.exit(77)

import grpc  # noqa: E402  (they need the modules looked for above)

import access  # noqa: E402
import calls  # noqa: E402
import catalogue  # noqa: E402
import guard  # noqa: E402
import report  # noqa: E402
import warm  # noqa: E402
import watcher  # noqa: E402
import wire  # noqa: E402
from attack import Case  # noqa: E402
from server import Remote, Server  # noqa: E402
from verdict import Seen  # noqa: E402

BY = (guard.NOBODY, guard.STRANGER, guard.FORGED, *guard.ATTACKERS)


class Scene:
    """A server with its bystander and its watcher."""

    def __init__(self, server, stubs, rate, folder):
        self.server, self.folder = server, folder
        try:
            warm.up(server.caller("operator"))
            own = access.save(folder / "bystander", [server.caller("bystander")])
            self.bystander = calls.Bystander(own, server.metrics, stubs, rate)
        except BaseException:
            server.stop()
            raise
        self.watcher = watcher.Watcher(server.pid, server.metrics)

    def close(self):
        """A sentence where the server did not end as it must."""
        self.bystander.stop()
        self.watcher.stop()
        code = self.server.stop()
        if code == 0:
            return []
        return [f"end of the server after SIGTERM: exit code {code}, 0 needed"]


class Runner:
    def __init__(self, arguments, stubs, folder):
        self.arguments, self.stubs, self.folder = arguments, stubs, folder
        self.guard = guard.Guard(folder / "guard") if arguments.guarded else None
        self.scene = None
        self.started = 0
        self.seen, self.violations, self.rows = [], [], []

    def _scene(self, descriptors=0):
        a = self.arguments
        if not a.start_gemmd:
            server = Remote(a.server, a.metrics, a.pid)
        else:
            self.started += 1
            server = Server(a.start_gemmd, a.devices, self.folder / f"gemmd.{self.started}.log",
                            descriptors, self.guard)
        return Scene(server, self.stubs, a.rate, self.folder)

    def _blame(self, violations):
        self.violations += violations
        for text in violations:
            print(f"BROKEN: {text}", flush=True)

    def run(self, case, seconds):
        """One attack on the server there is, or on one of its own."""
        attack = case.attack
        if attack.descriptors and not self.arguments.start_gemmd:
            print(f"skipped: {attack.name}: needs --start-gemmd, for a server with "
                  f"{attack.descriptors} descriptors", flush=True)
            return
        own = attack.descriptors > 0
        if self.scene is None and not own:
            self.scene = self._scene()
        scene = self._scene(attack.descriptors) if own else self.scene
        begin = time.monotonic()
        seen = self._measure(scene, case, seconds)
        violations = seen.violations()
        if violations and scene.server.log():
            print(f"the server's last lines:\n{scene.server.log()}", flush=True)
        if own or violations and self.arguments.start_gemmd:
            ends = scene.close()
            violations += [f"{case.title}: {text}" for text in ends]
            if not own:
                self.scene = None
        seen.seconds = time.monotonic() - begin
        self._blame(violations)
        self.seen.append(seen)
        self.rows.append(report.row(seen, violations))
        verdict = "BROKEN" if violations else "held"
        print(f"{case.title}: {verdict}, p99 beside it "
              f"{seen.during.p99 * 1e3:.0f} ms, {seen.seconds:.0f} s", flush=True)

    def _measure(self, scene, case, seconds):
        begin = time.monotonic()
        time.sleep(BEFORE_SECONDS)
        scene.watcher.wait_until_seen(begin, SEEN_SECONDS)
        attacked = time.monotonic()
        outcome = self._attack(scene.server, case, seconds)
        ended = time.monotonic()
        before = scene.watcher.extreme(min, begin, attacked)
        after, settle = scene.watcher.wait_until_back(before, SETTLE_SECONDS)
        settled = time.monotonic()
        time.sleep(AFTER_SECONDS)
        over = time.monotonic()
        answered = scene.bystander.wait_for_all(attacked, over, self.arguments.rate)
        during = scene.bystander.between(attacked, ended)
        later = scene.bystander.between(settled, over)
        return Seen(case, attacked, calls.Summary(scene.bystander.between(begin, attacked)),
                    calls.Summary(during), calls.Summary(later), during, later, before,
                    scene.watcher.extreme(max, attacked, settled), after, settle, outcome,
                    answered, scene.server.alive())

    def _attack(self, server, case, seconds):
        """What the attack's own process tells."""
        attackers = access.save(self.folder / "attackers", server.attackers(case.by))
        command = [sys.executable, str(HERE / "one_attack.py"), case.attack.name, "--access",
                   attackers, "--metrics", server.metrics, "--stubs", self.stubs,
                   "--seconds", str(seconds), "--seed", str(self.arguments.seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True,
                                  timeout=seconds + ATTACK_GRACE, check=False)
            return json.loads(done.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"counts": {}, "faults": [],
                    "mistakes": [f"ended by force after {seconds + ATTACK_GRACE:.0f} s"]}
        except (IndexError, json.JSONDecodeError):
            raise RuntimeError(f"{case.title} said no outcome: {done.stderr[-2000:]}") from None

    def round(self, cases, seconds, limit):
        """All of them once. What is left of the time beyond the least is shared evenly."""
        deadline = time.monotonic() + seconds
        for i, case in enumerate(cases):
            if time.monotonic() > limit:
                self._blame([f"{case.title}: not begun within --limit="
                             f"{self.arguments.limit:.0f} seconds"])
                continue
            rest = cases[i:]
            least = sum(c.attack.seconds + BEFORE_SECONDS + AFTER_SECONDS + 1 for c in rest)
            more = max(0.0, deadline - time.monotonic() - least) / len(rest)
            self.run(case, case.attack.seconds + min(more, seconds / len(cases)))

    def close(self):
        if self.scene is not None:
            self._blame(self.scene.close())


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start-gemmd", metavar="PATH", help="start this program and attack it")
    parser.add_argument("--devices", default="host", help="of the started server")
    parser.add_argument("--server", help="or attack the gRPC address of a running one")
    parser.add_argument("--metrics", help="its HTTP address")
    parser.add_argument("--pid", type=int, help="its process")
    parser.add_argument("--stubs", default="", help="the contract's Python stubs; made where "
                        "left out")
    parser.add_argument("--seconds", type=float, default=240,
                        help="of a round of attacks, about; no less than they need")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=math.inf,
                        help="seconds after which no attack begins; one left out counts as broken")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--guarded", action="store_true", help="with --start-gemmd: with TLS, "
                        "certificates of clients and tokens")
    parser.add_argument("--by", default="", help="with --guarded: only attacks of these, "
                        f"separated by commas, of {', '.join(BY)}")
    parser.add_argument("--rate", type=float, default=5, help="the bystander's products a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="where the figures go")
    parser.add_argument("--report", help="a page of Markdown to write")
    parser.add_argument("--list", action="store_true", help="name the attacks")
    arguments = parser.parse_args()
    if not arguments.list and not arguments.start_gemmd and not (
            arguments.server and arguments.metrics and arguments.pid):
        parser.error("needs --start-gemmd, or --server, --metrics and --pid")
    for option, text, known in (("--only", arguments.only, catalogue.BY_NAME),
                                ("--by", arguments.by, BY)):
        if set(filter(None, text.split(","))) - set(known):
            parser.error(f"{option} is '{text}': there are {', '.join(known)}")
    if (arguments.guarded or arguments.by) and not (arguments.start_gemmd and arguments.guarded):
        parser.error("--guarded needs --start-gemmd, and --by needs --guarded")
    if not arguments.list and not chosen_cases(arguments):
        parser.error("no attack: " + ("--by names no one who makes those of --only"
                                      if arguments.guarded else "--only names those of --guarded"))
    return arguments


def chosen_cases(arguments):
    """What is asked for, in the catalogue's order."""
    only, by = (list(filter(None, text.split(","))) for text in (arguments.only, arguments.by))
    attacks = [a for a in catalogue.ATTACKS if not only or a.name in only]
    if not arguments.guarded:
        return [Case(a) for a in attacks if not a.guarded_only]
    return [Case(a, who) for a in attacks for who in a.by if not by or who in by]


def describe(error):
    """On one line."""
    if isinstance(error, grpc.RpcError):
        return f"{error.code().name}: {error.details()}"
    return str(error)


def write_json(path, runner):
    entries = []
    for seen in runner.seen:
        by_kind = {kind: calls.Summary([c for c in seen.calls_during if c["kind"] == kind]).p99
                   for kind in calls.KINDS}
        entries.append({
            "attack": seen.case.title, "seconds": seen.seconds, "calls": seen.during.count,
            "p99_before": seen.before.p99, "p50_during": seen.during.p50,
            "p99_during": seen.during.p99, "p99_during_by_kind": by_kind, "longest_during": seen.during.longest,
            "held_before": seen.held_before, "peak": seen.peak, "held_after": seen.held_after,
            "settle_seconds": seen.settle_seconds, "outcome": seen.outcome})
    text = json.dumps({"attacks": entries, "violations": runner.violations}, indent=1,
                      default=str)
    pathlib.Path(path).write_text(text.replace("NaN", "null") + "\n", encoding="utf-8")


def main():
    arguments = parse_arguments()
    if arguments.list:
        for attack in catalogue.ATTACKS:
            print(f"{attack.name:18} {', '.join(attack.by):24} {attack.subject}")
        return 0
    chosen = chosen_cases(arguments)
    stubs = wire.load_stubs(arguments.stubs)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        runner = Runner(arguments, stubs, pathlib.Path(folder))
        try:
            for _ in range(arguments.rounds):
                runner.round(chosen, arguments.seconds, begin + arguments.limit)
        except (RuntimeError, OSError, grpc.RpcError) as error:
            # What was measured until then is told all the same.
            runner.violations.append(f"the rest was not run: {describe(error)}")
        finally:
            runner.close()
    text = report.whole(runner, time.monotonic() - begin)
    print("\n" + text)
    if arguments.report:
        pathlib.Path(arguments.report).write_text(report.page(arguments, text), encoding="utf-8")
    if arguments.json:
        write_json(arguments.json, runner)
    return 1 if runner.violations else 0


if __name__ == "__main__":
    sys.exit(main())
