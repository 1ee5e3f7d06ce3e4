"""What kills.py saw, for a terminal and for docs/results."""

import dataclasses
import os
import subprocess

import calls


@dataclasses.dataclass
class Leg:
    kills: int            # until its end
    held: dict            # of the process, by watcher.process
    seconds: float = 0.0  # until all gauges were back
    last: list = ()       # those that were the last
    off: dict = ()        # those that were not
    removed: int = 0      # matrices with a time to live, deleted rather than waited for

    def text(self):
        return (f"RSS {self.held.get('RSS MiB', 0):.0f} MiB, {self.held.get('descriptors')} "
                f"descriptors, {self.held.get('threads')} threads, all gauges back after "
                f"{self.seconds:.1f} s" + (f", but {sorted(self.off)}" if self.off else ""))

    def row(self):
        return (f"| {self.kills} | {self.held.get('RSS MiB', 0):.0f} | "
                f"{self.held.get('descriptors')} | {self.held.get('threads')} | "
                f"{self.seconds:.1f} | {self._last()} | {self.removed} | {len(self.off)} |")

    def _last(self):
        return ", ".join(sorted({name.split("{")[0] for name in self.last})) or "-"


class Report:
    def __init__(self, arguments, start, legs, kills, bystander_calls, ended_calls):
        self.arguments, self.start, self.legs, self.kills = arguments, start, legs, kills
        self.bystander, self.ended_calls = bystander_calls, ended_calls
        self.violations = kills.violations
        self.seconds = 0.0

    def text(self):
        """Tables and verdict."""
        lines = ["| kills so far | RSS, MiB | descriptors | threads | all gauges back after, s | "
                 "the last of them | matrices removed | gauges not back |",
                 "| ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
                 *(leg.row() for leg in self.legs), "",
                 "| client | killed | had ended before |", "| --- | ---: | ---: |"]
        for kind in self.kills.kinds:
            lines.append(f"| {kind.replace('_', ' ')} | {self.kills.killed[kind]} | "
                         f"{self.kills.ended[kind]} |")
        seen = calls.Summary(self.bystander)
        failed = ", ".join(f"{kind} {status} {count}"
                           for (kind, status), count in sorted(seen.failed.items())) or "none"
        ends = ", ".join(f"{code} {count:,}" for code, count in self.ended_calls.most_common())
        lines += ["", f"Calls that the server ended, by status: {ends}.", "", f"The bystander made {seen.count} calls; not answered OK: {failed}; wrong: "
                  f"{seen.wrong}; p50 {seen.p50 * 1e3:.0f} ms, p99 {seen.p99 * 1e3:.0f} ms, longest "
                  f"{seen.longest * 1e3:.0f} ms.", "",
                  f"{sum(self.kills.killed.values())} kills in {self.seconds:.0f} s, "
                  f"{len(self.violations)} broken"]
        return "\n".join(lines + [f"BROKEN: {text}" for text in self.violations])

    def page(self):
        program = self.arguments.start_gemmd
        version = subprocess.run([program, "--version"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        families = sorted({name.split("{")[0] for name in self.start})
        return "\n".join([
            "# Clients killed at random points", "",
            f"`tests/attacks/kills.py --kills {self.arguments.kills} --seed "
            f"{self.arguments.seed}` on {version}, a machine with {os.cpu_count()} cores. TLS and "
            "tokens are on. Written by that program; what it does is in its head.", "",
            "The first row is the server before the first kill. A client that is killed between "
            "two steps of a split product leaves matrices with a time to live of minutes: they "
            "are deleted after each leg rather than waited for, and counted.", "",
            self.text(), "",
            f"Gauges that were compared, each of their series: "
            f"{', '.join(f'`{name}`' for name in families)}."]) + "\n"
