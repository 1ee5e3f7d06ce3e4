"""The table of attacks, for a terminal and for docs/results."""

import math
import os
import subprocess


def _milliseconds(seconds):
    return "-" if math.isnan(seconds) else f"{seconds * 1e3:,.0f}"


def _failures(summary):
    parts = [f"{kind} {status} {count}" for (kind, status), count in sorted(summary.failed.items())]
    if summary.wrong:
        parts.append(f"wrong {summary.wrong}")
    return "; ".join(parts) or "0"


def _rise(seen, measure):
    """before, peak, after."""
    return " / ".join(f"{held[measure]:.0f}" if measure in held else "?"
                      for held in (seen.held_before, seen.peak, seen.held_after))


HEAD = ["attack", "calls beside it", "p99 before, ms", "p99 during, ms", "longest, ms",
        "not answered OK", "RSS MiB", "descriptors", "threads", "back after, s", "verdict"]


def row(seen, violations):
    return [seen.case.title, str(seen.during.count), _milliseconds(seen.before.p99),
            _milliseconds(seen.during.p99), _milliseconds(seen.during.longest),
            _failures(seen.during), _rise(seen, "RSS MiB"), _rise(seen, "descriptors"),
            _rise(seen, "threads"), f"{seen.settle_seconds:.1f}",
            "held" if not violations else f"{len(violations)} broken"]


def table(rows):
    """Markdown, its columns aligned, so that it reads as text, too."""
    widths = [max(len(r[i]) for r in [HEAD, *rows]) for i in range(len(HEAD))]

    def line(cells):
        return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths)) + " |"

    return "\n".join([line(HEAD), line(["-" * w for w in widths]), *map(line, rows)])


def attack_lines(seen_list):
    """What each attack did, in its own counts."""
    for seen in seen_list:
        counts = ", ".join(f"{what}: {count:,}" for what, count in
                           sorted(seen.outcome["counts"].items(), key=lambda item: -item[1])[:12])
        yield f"- {seen.case.title} ({seen.attack.subject}): {counts or 'nothing counted'}"


def whole(runner, seconds):
    """Table, what each attack did, and what broke."""
    worst = max((s.during.p99 for s in runner.seen if not math.isnan(s.during.p99)), default=0)
    end = (f"{len(runner.seen)} attacks in {seconds:.0f} s, worst p99 beside one "
           f"{worst * 1e3:.0f} ms, {len(runner.violations)} broken")
    broken = [f"BROKEN: {text}" for text in runner.violations]
    return "\n".join([table(runner.rows), "", *attack_lines(runner.seen), "", end, *broken])


def page(arguments, text):
    """For docs/results."""
    program = arguments.start_gemmd
    version = "" if not program else subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True).stdout.strip() + ", "
    options = [f"--{name} {value}" for name in ("only", "by", "seconds", "rounds", "rate", "seed")
               if (value := getattr(arguments, name))]
    if arguments.guarded:
        options.insert(0, "--guarded")
    return "\n".join([
        "# Attacks" + (", TLS and callers being asked for" if arguments.guarded else ""), "",
        f"`tests/attacks/attacks.py {' '.join(options)}` on {version}devices "
        f"{arguments.devices}, {os.cpu_count()} cores. Written by that program. Memory, "
        "descriptors and threads are before / at most / after.", "", text]) + "\n"
