#!/usr/bin/env python3
"""A real Prometheus scrapes a real gemmd, and every dashboard query finds data.

Starts gemmd on the host device, with callers and with /metrics open to other
machines, and Debian's Prometheus with deploy/prometheus/ and a token on free
ports; multiplies, moves matrices and fails on purpose through gemmctl, and then
asks Prometheus. Needs nothing outside the standard library.

    tests/telemetry/prometheus_test.py --gemmd build/dev/.../gemmd --gemmctl .../gemmctl

Exit status: 0 passed, 1 failed, 77 skipped, with the reason on standard output.
"""

import argparse
import contextlib
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
START_SECONDS = 30
QUERY_SECONDS = 60
# In place of the variables that Grafana fills in.
RATE_INTERVAL = "30s"
INSTANCE = ".*"
# Callers: name, roles. A caller's token is its name.
CALLERS = {"operator": "all", "scraper": "metrics", "bounded": "call"}
QUOTAS = "bounded jobs=0\n"


def free_port():
    """A TCP port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, token=None):
    """The body of a GET, as text."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return answer.read().decode()


def eventually(what, seconds, attempt):
    """The first true value of attempt(), or an error that says what never came."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if value := attempt():
                return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.2)


def launch(log, *command):
    """Starts a program that writes to the file `log`: the process, and `log`."""
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT), log


@contextlib.contextmanager
def said_in(process, log):
    """Where the block fails, ends the process and adds what it wrote to the error."""
    try:
        yield
    except AssertionError as error:
        process.kill()
        process.wait()
        raise AssertionError(f"{error}; {log.name}:\n{log.read_text()}") from error


def dashboard_queries():
    """(panel title, query, what the panel says without data) of every target, with Grafana's
    variables filled in."""
    dashboard = json.loads((ROOT / "deploy/grafana/dashboards/gemmd.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", RATE_INTERVAL)
            query = query.replace("$instance", INSTANCE)
            yield panel["title"], query, panel["fieldConfig"]["defaults"].get("noValue")


class Server:
    """A gemmd on the host device, and gemmctl to talk to it."""

    def __init__(self, gemmd, gemmctl, folder):
        self.address = f"127.0.0.1:{free_port()}"
        self.metrics = f"127.0.0.1:{free_port()}"
        self.gemmctl = gemmctl
        callers = folder / "callers"
        callers.write_text("".join(
            f"{name} {roles} sha256:{hashlib.sha256(name.encode()).hexdigest()}\n"
            for name, roles in CALLERS.items()))
        quotas = folder / "quotas"
        quotas.write_text(QUOTAS)
        self.process, self.log = launch(
            folder / "gemmd.log",
            gemmd,
            "--devices=host",
            f"--address={self.address}",
            f"--metrics-address={self.metrics.replace('127.0.0.1', '0.0.0.0')}",
            f"--callers-file={callers}",
            f"--quotas-file={quotas}",
        )
        with said_in(self.process, self.log):
            eventually("gemmd's /metrics", START_SECONDS, self.scrape)

    def scrape(self):
        return fetch(f"http://{self.metrics}/metrics", token="scraper")

    def ctl(self, *words, token="operator", fails=False):
        """Runs gemmctl; its output. `fails`: the server must refuse."""
        command = [self.gemmctl, f"--address={self.address}", "--deadline=20s", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | {"GEMMCTL_TOKEN": token})
        if (done.returncode == 1) != fails or done.returncode > 1:
            raise AssertionError(f"{command}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def stop(self):
        """Ends the server; its exit status."""
        self.process.terminate()
        return self.process.wait(timeout=60)


class Prometheus:
    """Debian's Prometheus with the project's configuration, aimed at `target`."""

    def __init__(self, target, folder):
        self.url = f"http://127.0.0.1:{free_port()}"
        config = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
        (folder / "token").write_text("scraper\n")
        for old, new in (
            ("gemmd:9464", target),
            ("scrape_interval: 5s", "scrape_interval: 1s"),
            ("/etc/prometheus-secrets/token", str(folder / "token")),
        ):
            if config.count(old) != 1:
                raise AssertionError(f"prometheus.yml: {old!r} stands in it {config.count(old)}x")
            config = config.replace(old, new)
        (folder / "prometheus.yml").write_text(config)
        shutil.copy(ROOT / "deploy/prometheus/alerts.yml", folder)
        self.process, self.log = launch(
            folder / "prometheus.log",
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address={self.url.removeprefix('http://')}",
        )
        with said_in(self.process, self.log):
            eventually("Prometheus", START_SECONDS, lambda: fetch(f"{self.url}/-/ready"))

    def query(self, expression):
        """The instant vector of an expression: (labels, value) of each series."""
        text = urllib.parse.urlencode({"query": expression})
        try:
            answer = json.loads(fetch(f"{self.url}/api/v1/query?{text}"))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        return [(row["metric"], float(row["value"][1])) for row in answer["data"]["result"]]

    def value(self, expression):
        """The value of an expression's only series; None where there is none."""
        series = self.query(expression)
        return series[0][1] if len(series) == 1 else None

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


class PrometheusTest(unittest.TestCase):
    gemmd = ""
    gemmctl = ""

    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder = folder
        self.server = Server(self.gemmd, self.gemmctl, folder)
        self.addCleanup(self.server.process.kill)
        self.prometheus = Prometheus(self.server.metrics, folder)
        self.addCleanup(self.prometheus.stop)

    def work(self):
        """One round of everything that a panel shows; how many products ended well."""
        result = str(self.folder / "c.npy")
        drawn = ("multiply", "random:96x64:f32:1", "random:64x80:f32:2", "-o", result)
        sent = ("multiply", result, "random:80x64:f32:3", "-o", str(self.folder / "d.npy"))
        self.server.ctl(*drawn)
        self.server.ctl(*sent, "--kernel=host_reference", "--check=always")
        self.server.ctl(*drawn, "--kernel=no_such_kernel", fails=True)
        self.server.ctl(*drawn, token="bounded", fails=True)
        self.server.ctl("kernels", token="nobody's", fails=True)
        self.server.ctl("matrix", "put", result, "--name=probe")
        self.server.ctl("matrix", "get", "@probe", "-o", str(self.folder / "back.npy"))
        self.server.ctl("matrix", "rm", "@probe")
        return 2

    def has_data(self, query):
        return any(math.isfinite(value) for _, value in self.prometheus.query(query))

    def may_be_empty(self, query, no_value):
        """Whether the panel says why, and what the query counts has not happened."""
        metric = re.search(r"(?:gemmd|process)_[a-z_]+", query)[0]
        return no_value is not None and not self.prometheus.query(metric)

    def missing_of(self, queries):
        return [each for each in queries
                if not self.has_data(each[1]) and not self.may_be_empty(*each[1:])]

    def test_prometheus_sees_the_server(self):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            fetch(f"http://{self.server.metrics}/metrics")
        self.assertEqual(refused.exception.code, 401)
        eventually("up", START_SECONDS, lambda: self.prometheus.value('up{job="gemmd"}') == 1)
        queries = missing = list(dashboard_queries())
        self.assertGreater(len(queries), 20)
        products = 0
        deadline = time.monotonic() + QUERY_SECONDS
        while missing and time.monotonic() < deadline:
            products += self.work()
            missing = self.missing_of(queries)
        self.assertEqual(missing, [], "dashboard queries without data")
        self.check_scrape()
        self.check_counts(products)
        self.assertEqual(self.prometheus.query('ALERTS{alertstate="firing"}'), [])
        self.assertEqual(self.server.stop(), 0)
        eventually("down", START_SECONDS, lambda: self.prometheus.value('up{job="gemmd"}') == 0)

    def check_scrape(self):
        """promtool finds nothing to complain of in what the server serves."""
        checked = subprocess.run(
            ["promtool", "check", "metrics"],
            input=self.server.scrape(),
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def check_counts(self, products):
        """What Prometheus counted is what was done, with labels from the catalogue only."""
        done = 'sum(gemmd_jobs_total{outcome="OK"})'
        eventually(done, START_SECONDS, lambda: self.prometheus.value(done) == products)
        self.assertEqual(
            self.prometheus.value("sum(gemmd_flop_total)"), products * 2 * 96 * 80 * 64
        )
        self.assertEqual(self.prometheus.value("gemmd_jobs_in_flight"), 0)
        self.assertEqual(self.prometheus.value("gemmd_admitted_bytes"), 0)
        kernels = {labels["kernel"] for labels, _ in self.prometheus.query("gemmd_products_total")}
        listed = set(re.findall(r"[a-z0-9_]+", self.server.ctl("kernels", "--json")))
        self.assertLessEqual(kernels, listed | {"none"})
        self.assertIn("host_reference", kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gemmd", required=True, help="the server's program")
    parser.add_argument("--gemmctl", required=True, help="the client's program")
    arguments = parser.parse_args()
    for tool in ("prometheus", "promtool"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed (package prometheus)")
            return SKIPPED
    PrometheusTest.gemmd = arguments.gemmd
    PrometheusTest.gemmctl = arguments.gemmctl
    result = unittest.main(argv=[sys.argv[0]], exit=False).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
