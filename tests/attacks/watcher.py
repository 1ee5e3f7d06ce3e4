"""What the server holds: memory, descriptors and threads from /proc, gauges from /metrics."""

import http.client
import os
import threading
import time

MIB = 1 << 20
# Families whose series are added up, by the name they have here.
GAUGES = {"jobs": "gemmd_jobs_in_flight", "queued": "gemmd_queue_depth",
          "admitted bytes": "gemmd_admitted_bytes", "staging bytes": "gemmd_staging_bytes",
          "device bytes": "gemmd_device_memory_bytes", "store bytes": "gemmd_store_bytes",
          "matrices": "gemmd_matrices", "streams": "gemmd_streams_in_use"}
# Those and what process() has.
MEASURES = (*GAUGES, "RSS MiB", "threads", "descriptors")
# How far a measure may lie above where it was once an attack is over. The allocator keeps
# some of what it was given back, gRPC some of the threads it needed, and the bystander's own
# connections come and go.
# gRPC 1.51's two executors grow to two threads a core each, and never shrink.
ALLOWANCES = {"RSS MiB": 96, "descriptors": 8, "threads": 8 + 4 * (os.cpu_count() or 1)}
SCRAPE_SECONDS = 2


def series(metrics, kind=""):
    """{series: value} of ours; nothing where the endpoint does not answer in time.

    `kind`, such as "gauge": of families of that type alone.
    """
    host, port = metrics.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=SCRAPE_SECONDS)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    except (OSError, http.client.HTTPException):
        return {}
    finally:
        connection.close()
    lines = text.splitlines()
    types = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE "))
    samples = (line.rpartition(" ") for line in lines if line.startswith("gemmd_"))
    return {name: float(value) for name, _, value in samples
            if not kind or types.get(name.split("{")[0]) == kind}


def gauges(metrics):
    """The families of GAUGES, added up."""
    sums = {}
    for name, value in series(metrics).items():
        family = name.split("{")[0]
        sums[family] = sums.get(family, 0.0) + value
    return {name: sums[family] for name, family in GAUGES.items() if family in sums}


def process(pid):
    """RSS, descriptors and threads; nothing once the process is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            fields = dict(line.split(":", 1) for line in status)
        return {"RSS MiB": int(fields["VmRSS"].split()[0]) / 1024,
                "threads": int(fields["Threads"]),
                "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}
    except (OSError, KeyError):
        return {}


class Watcher:
    """Samples the server from its construction to stop()."""

    def __init__(self, pid, metrics, period=0.25):
        self.pid, self.metrics, self.period = pid, metrics, period
        self.samples = []  # (time.monotonic, {measure: value})
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(look,), daemon=True)
                         for look in (lambda: process(self.pid), lambda: gauges(self.metrics))]
        for thread in self._threads:
            thread.start()

    def _watch(self, look):
        while not self._stop.wait(self.period):
            if seen := look():
                self.samples.append((time.monotonic(), seen))

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def extreme(self, choose, begin, end=float("inf")):
        """min or max of each measure over the samples of [begin, end)."""
        values = {}
        for at, seen in list(self.samples):
            if begin <= at < end:
                for measure, value in seen.items():
                    values.setdefault(measure, []).append(value)
        return {measure: choose(v) for measure, v in values.items()}

    def wait_until_seen(self, begin, seconds):
        """Waits until every measure has a sample since `begin`, on a busy machine too."""
        end = time.monotonic() + seconds
        while set(MEASURES) - set(self.extreme(min, begin)) and time.monotonic() < end:
            time.sleep(self.period)

    def wait_until_back(self, before, seconds):
        """Waits until every measure was seen where it was `before`, or a little above.

        Returns the least of each since now, and how long it took. A bystander's job counts
        while it runs, so the least is what an idle moment showed.
        """
        begin = time.monotonic()
        while True:
            time.sleep(self.period)
            least = self.extreme(min, begin)
            took = time.monotonic() - begin
            if took > seconds or not overshoots(before, least):
                return least, took


def overshoots(before, after):
    """[(measure, value, bound)] of what is not back where it was."""
    found = []
    for measure, value in before.items():
        bound = value + ALLOWANCES.get(measure, 0)
        if measure not in after:
            found.append((measure, float("nan"), bound))
        elif after[measure] > bound:
            found.append((measure, after[measure], bound))
    return found
