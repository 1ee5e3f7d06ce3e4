#!/usr/bin/env python3
"""Measures gemmctl loadtest beside what is known: delays, a capacity, a slowdown, a stop.

    loadtest_truth.py --gemmctl GEMMCTL --server TIMED_SERVER [--only PART...] [--runs N]

Parts: percentiles, find-rate, compare, ceiling, stop. Prints a line for each figure, and ends with
status 1 if one misses its bound. Needs a few minutes and a machine that is not overloaded, so no
test runs it; docs/results/loadtest.md has its figures.
"""
import argparse
import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Of 1,000 requests, as many as these take these milliseconds: each percentile of the report lies in
# the middle of its share.
# They are long beside the wake-ups of a busy machine, which come on top.
DELAYS = [(700, 300), (225, 600), (50, 900), (20, 1200), (5, 1500)]
EXPECTED = {"p50": 300, "p90": 600, "p95": 900, "p99": 1200, "p99.9": 1500}

failures = 0


def say(name: str, figure: str, ok: bool) -> None:
    global failures
    failures += not ok
    print(f"{'ok  ' if ok else 'MISS'}  {name}: {figure}", flush=True)


@contextlib.contextmanager
def serving(server: str, *words: str):
    with subprocess.Popen([server, "serve", *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"127.0.0.1:{process.stdout.readline().strip()}", process
        finally:
            process.kill()


def loadtest(gemmctl: str, address: str, *words: str) -> dict:
    ran = subprocess.run([gemmctl, "--address", address, "loadtest", "--json", "--shape", "8x8x8",
                          *words], capture_output=True, text=True)
    if not ran.stdout:
        sys.exit(f"gemmctl loadtest {' '.join(words)}: {ran.stderr}")
    return json.loads(ran.stdout)


def save(gemmctl: str, address: str, path: str, *words: str) -> None:
    pathlib.Path(path).write_text(json.dumps(loadtest(gemmctl, address, *words)))


def percentiles(gemmctl: str, server: str, runs: int) -> None:
    del runs
    # Spread, so that every stretch of the test has its share.
    delays = sorted((index / count + milliseconds / 1e6, milliseconds)
                    for count, milliseconds in DELAYS for index in range(count))
    words = ",".join(str(milliseconds) for _, milliseconds in delays)
    with serving(server, "--service-ms", words) as (address, _):
        result = loadtest(gemmctl, address, "--rate", "100", "--duration", "40s",
                          "--concurrency", "256", "--warmup", "0")["result"]
    for name, expected in EXPECTED.items():
        measured = 1000 * result["latency_seconds"][name]
        off = measured / expected - 1
        say(f"delay at {name}", f"{expected} ms injected, {measured:.2f} ms measured, {off:+.2%}",
            abs(off) <= 0.01)


def find_rate(gemmctl: str, server: str, runs: int) -> None:
    del runs
    for milliseconds in (20, 8):
        capacity = 1000 / milliseconds
        with serving(server, "--in-turn", "--service-ms", str(milliseconds)) as (address, _):
            found = loadtest(gemmctl, address, "--find-rate", "--slo", "p99<80ms,errors<0.1%",
                             "--duration", "6s", "--rate", str(capacity * 0.7))["find_rate"]
        rate = found["highest_rate_per_second"]
        off = rate / capacity - 1
        say(f"capacity {capacity:g}/s",
            f"--find-rate gives {rate:.2f}/s, {off:+.2%}, in {len(found['trials'])} trials",
            abs(off) <= 0.03)


def compare(gemmctl: str, server: str, runs: int) -> None:
    words = ["--duration", "5s", "--warmup", "500ms", "--concurrency", "4"]
    with tempfile.TemporaryDirectory() as folder:
        old = str(pathlib.Path(folder) / "old.json")
        for milliseconds, expected in ((20, "the same"), (22, "slower")):
            verdicts, ratios = [], []
            for _ in range(runs):
                with serving(server, "--service-ms", "20") as (address, _):
                    save(gemmctl, address, old, *words)
                with serving(server, "--service-ms", str(milliseconds)) as (address, _):
                    comparison = loadtest(gemmctl, address, *words, "--compare", old)["comparison"]
                verdicts.append(comparison["verdict"])
                ratios.append(comparison["figures"][0]["ratio"])
            right = verdicts.count(expected)
            say(f"20 ms, then {milliseconds} ms",
                f"{expected} in {right} of {runs}; ratios of p50 {min(ratios):.3f} to "
                f"{max(ratios):.3f}", right == runs)


def ceiling(gemmctl: str, server: str, runs: int) -> None:
    """Turns of both, so that other work on the machine meets them alike."""
    rates: dict[str, list[float]] = {"loadtest": [], "bare": []}
    with serving(server) as (address, _):
        for _ in range(runs):
            bare = subprocess.run([server, "calls", "--address", address, "--seconds", "3"],
                                  capture_output=True, text=True, check=True).stdout
            rates["bare"].append(float(bare))
            result = loadtest(gemmctl, address, "--concurrency", "4", "--duration", "3s",
                              "--warmup", "300ms")["result"]
            rates["loadtest"].append(result["requests_per_second"])
    middle = {name: sorted(each)[len(each) // 2] for name, each in rates.items()}
    ratio = middle["loadtest"] / middle["bare"]
    say("ceiling", f"loadtest {middle['loadtest']:.0f}/s, a bare stub {middle['bare']:.0f}/s, "
        f"{ratio:.2f} (medians of {runs})", ratio >= 0.9)


def stop(gemmctl: str, server: str, runs: int) -> None:
    del runs
    with serving(server, "--service-ms", "2") as (address, process):
        def pause() -> None:
            time.sleep(4)
            process.send_signal(signal.SIGSTOP)
            time.sleep(1)
            process.send_signal(signal.SIGCONT)

        pausing = threading.Thread(target=pause)
        pausing.start()
        # More than the 64 workers are due within the second: the rest starts late.
        result = loadtest(gemmctl, address, "--rate", "200", "--duration", "10s", "--max-delay",
                          "10s", "--timeout", "30s")["result"]
        pausing.join()
    latency = result["latency_seconds"]
    say("stop: every request counts", f"{latency['count']} of 2000", latency["count"] == 2000)
    say("stop: the longest latency", f"{latency['max']:.3f} s", latency["max"] >= 0.95)
    # Those due in the second wait for half of it in the mean: 10% of 10 s, so p95 is near 0.5 s.
    say("stop: p95", f"{latency['p95']:.3f} s, 0.5 s expected", abs(latency["p95"] - 0.5) <= 0.1)


PARTS = {"percentiles": percentiles, "find-rate": find_rate, "compare": compare,
         "ceiling": ceiling, "stop": stop}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemmctl", required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    for part in arguments.only:
        PARTS[part](arguments.gemmctl, arguments.server, arguments.runs)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
