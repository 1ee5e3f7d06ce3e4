"""The bystander's process, and its calls by the time at which they began."""

import collections
import json
import pathlib
import subprocess
import sys
import threading
import time

_HERE = pathlib.Path(__file__).resolve().parent
KINDS = ("product", "read", "write", "connect", "scrape")
# Longer than any call of the bystander.
LONGEST_CALL_SECONDS = 20
READY_SECONDS = 90


class Bystander:
    def __init__(self, access_file, metrics, stubs, rate):
        self.calls = []
        self._ready = threading.Event()
        self._process = subprocess.Popen(
            [sys.executable, str(_HERE / "bystander.py"), "--access", access_file, "--metrics",
             metrics, "--stubs", stubs, "--rate", str(rate)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        if not self._ready.wait(READY_SECONDS):
            self.stop()
            raise RuntimeError(f"the bystander did not get ready within {READY_SECONDS} s")

    def _read(self):
        for line in self._process.stdout:
            call = json.loads(line)
            if call["kind"] == "ready":
                self._ready.set()
            else:
                self.calls.append(call)

    def between(self, begin, end):
        """Calls that began in [begin, end) and have ended."""
        return [c for c in list(self.calls) if begin <= c["begin"] < end]

    def stop(self):
        """Ends it; every call that it began has ended then."""
        self._process.stdin.close()
        try:
            self._process.wait(LONGEST_CALL_SECONDS + 10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join(5)

    def wait_for_all(self, begin, end, rate, seconds=LONGEST_CALL_SECONDS + 2):
        """Waits until the calls planned in [begin, end) have ended; False where they do not."""
        wanted = int((end - begin) * rate) - 1
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if all(sum(c["kind"] == kind for c in self.between(begin, end)) >= wanted
                   for kind in ("product", "read")):
                return True
            time.sleep(0.1)
        return False


def refused(call):
    """Whether the server said no in time, as opposed to failing."""
    return call["status"] in ("RESOURCE_EXHAUSTED", "UNAVAILABLE")


def percentile(values, share):
    """The least value that `share` of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, int(-(-share * len(ordered) // 1)) - 1))]


class Summary:
    """Latencies and ends of calls."""

    def __init__(self, calls):
        seconds = [c["seconds"] for c in calls if c["status"] == "OK"]
        self.count = len(calls)
        self.p50 = percentile(seconds, 0.5) if seconds else float("nan")
        self.p99 = percentile(seconds, 0.99) if seconds else float("nan")
        self.longest = max((c["seconds"] for c in calls), default=float("nan"))
        self.failed = collections.Counter((c["kind"], c["status"]) for c in calls
                                          if c["status"] != "OK")
        self.wrong = sum(bool(c["wrong"]) for c in calls)
