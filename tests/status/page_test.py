#!/usr/bin/env python3
"""The status page in headless Chromium, beside a real server under load.

Starts gemmd on the host device with callers, puts 10,000 matrices, multiplies, fails on purpose,
benchmarks, and opens the page. Needs Debian's chromium, chromium-driver, python3-grpcio,
python3-protobuf and protobuf-compiler.

    tests/status/page_test.py --gemmd build/host/server/gemmd --gemmctl .../gemmctl [--pictures DIR]

Exit status: 0 passed, 1 failed, 77 skipped, with the reason on standard output.
"""

import argparse
import base64
import contextlib
import hashlib
import http.client
import importlib
import json
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
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
MATRICES = 10_000
JOBS = 5_000
# A token is its caller's name.
CALLERS = {"operator": "all", "scraper": "metrics", "stranger": "call"}
WAIT_SECONDS = 60
# The share of a core that an open page may cost the server.
MOST_SHARE = 0.005
MEASURED_SECONDS = 30
PANELS = ["kernels", "devices", "latency", "pools", "callers", "connections", "benchmarks", "tuning",
          "jobs", "matrices", "catalogue"]
KERNELS = [word for name in ("host_reference", "host_openblas", "auto") for word in ("--kernel", name)]
# The log's line with the ports that gemmd took.
SERVING = re.compile(r" serving address=(\S+) metrics=0\.0\.0\.0:(\d+) ")
KEYS = {"tab": "\ue004", "enter": "\ue007"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(what, attempt, seconds=WAIT_SECONDS):
    """The first true value of attempt()."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if value := attempt():
                return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.2)


class Server:
    """gemmd on the host device; its figures are for tokens alone."""

    def __init__(self, gemmd, gemmctl, folder):
        self.gemmctl = gemmctl
        callers = folder / "callers"
        callers.write_text("".join(f"{name} {roles} sha256:{hashlib.sha256(name.encode()).hexdigest()}\n"
                                   for name, roles in CALLERS.items()))
        file = folder / "gemmd.log"
        with file.open("wb") as log:
            self.process = subprocess.Popen(
                [gemmd, "--devices=host", "--address=127.0.0.1:0", "--metrics-address=0.0.0.0:0",
                 f"--callers-file={callers}"], stdout=log, stderr=log)
        serving = eventually("gemmd", lambda: SERVING.search(file.read_text(encoding="utf-8")))
        self.address, self.port = serving[1], int(serving[2])
        eventually("/readyz", lambda: self.get("/readyz")[0] == 200)

    def get(self, path, token=None):
        """Status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.headers, body

    def ctl(self, *words, token="operator"):
        return subprocess.Popen([self.gemmctl, f"--address={self.address}", *words], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, env=os.environ | {"GEMMCTL_TOKEN": token})

    def put_matrices(self, folder):
        """MATRICES that the server generates, each of another size."""
        subprocess.run(["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}", "gemm/v1/gemm.proto"], check=True)
        sys.path.insert(0, str(folder))
        import grpc  # noqa: PLC0415
        messages = importlib.import_module("gemm.v1.gemm_pb2")
        with grpc.insecure_channel(self.address) as channel:
            put = channel.stream_unary("/gemm.v1.GemmService/PutMatrix",
                                       request_serializer=messages.PutMatrixRequest.SerializeToString,
                                       response_deserializer=messages.PutMatrixResponse.FromString)
            for i in range(MATRICES):
                header = messages.PutMatrixHeader(
                    shape=messages.MatrixShape(rows=1 + i % 97, cols=16, dtype=messages.DATA_TYPE_F32,
                                               layout=messages.LAYOUT_ROW_MAJOR),
                    keep=messages.Keep(name=f"layer/{i}"), generator=messages.Generator(seed=i))
                header.generator.uniform.high = 1
                put(iter([messages.PutMatrixRequest(header=header)]), timeout=30,
                    metadata=[("authorization", "Bearer operator")])

    def http_seconds(self):
        """CPU time of the thread that serves HTTP."""
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            if (task / "comm").read_text().strip() == "http":
                return int((task / "schedstat").read_text().split()[0]) / 1e9
        raise AssertionError("no thread is named http")

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


class Browser:
    """Headless Chromium, by the WebDriver protocol."""

    def __init__(self, folder):
        self.port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        eventually("chromedriver", lambda: self.call("GET", "/status")["ready"])
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     f"--user-data-dir={folder / 'profile'}", "--force-device-scale-factor=1"]
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": {"args": arguments}}}})
        self.session = f"/session/{session['sessionId']}"

    def call(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def post(self, path, **body):
        return self.call("POST", self.session + path, body)

    def run(self, script):
        return self.post("/execute/sync", script=script, args=[])

    def press(self, *keys):
        self.post("/actions", actions=[{"type": "key", "id": "keys", "actions": [
            {"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]}])

    def devtools(self, command, **params):
        return self.post("/goog/cdp/execute", cmd=command, params=params)

    def errors(self):
        """What the console has said since the last call, but for information."""
        return [line["message"] for line in self.post("/se/log", type="browser") if line["level"] != "INFO"]

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=False)

    def scheme(self, name):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        whole = self.run("return document.documentElement.scrollHeight")
        width = self.run("return document.documentElement.clientWidth")
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=True,
                             clip={"x": 0, "y": 0, "width": width, "height": whole, "scale": 1})
        path.write_bytes(base64.b64decode(shot["data"]))

    def stop(self):
        with contextlib.suppress(OSError):
            self.call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait(timeout=30)


class PageTest(unittest.TestCase):
    options = None

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        folder = pathlib.Path(cls.temporary.name)
        cls.server = Server(cls.options.gemmd, cls.options.gemmctl, folder)
        cls.addClassCleanup(cls.server.stop)
        cls.server.put_matrices(folder)
        cls.browser = Browser(folder)
        cls.addClassCleanup(cls.browser.stop)
        steady = cls.server.ctl("loadtest", "--rate", "150", "--duration", "10m", "--shape", "64=9",
                                "--shape", "192=2", *KERNELS)
        cls.addClassCleanup(lambda: (steady.terminate(), steady.wait()))
        cls.load()
        cls.fail_jobs()
        cls.browser.size(1360, 1000)
        cls.browser.post("/url", url=f"http://127.0.0.1:{cls.server.port}/")
        cls.log_in()

    @classmethod
    def load(cls):
        load = cls.server.ctl("loadtest", "--concurrency", "24", "--requests", str(JOBS), "--warmup", "0s",
                              "--shape", "64x64x64=9", "--shape", "160x96x128=1", *KERNELS)
        if load.wait(timeout=240) != 0:
            raise AssertionError("gemmctl loadtest failed")

    @classmethod
    def fail_jobs(cls):
        for token in ("stranger", "operator"):
            cls.server.ctl("loadtest", "--requests", "20", "--warmup", "0s", "--shape", "64", "--timeout", "1ms",
                           "--kernel", "host_wrong", token=token).wait(timeout=60)

    @classmethod
    def log_in(cls):
        browser = cls.browser
        eventually("the form", lambda: browser.run("return !document.getElementById('login').hidden"))
        cls.refused = browser.errors()
        browser.run("document.getElementById('token').focus()")
        browser.press(*"scraper", KEYS["enter"])
        eventually("the panels", lambda: browser.run(
            "return !document.getElementById('main').hidden && document.querySelectorAll('#table-catalogue tr').length"))

    def rows(self, name):
        return self.browser.run(f"return document.querySelectorAll('#table-{name} tbody tr').length")

    def text(self, name):
        return self.browser.run(f"return document.getElementById('{name}').textContent")

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])

    def test_the_form_came_with_the_refusal_and_no_other_error(self):
        self.assertEqual(len(self.refused), 1)
        self.assertIn("401", self.refused[0])

    def test_every_panel_is_filled(self):
        bench = self.server.ctl("bench", "--family", "host", "--shape", "3072", "--types", "f32")
        self.addCleanup(lambda: (bench.terminate(), bench.wait()))
        eventually("a benchmark", lambda: self.rows("benchmarks"))
        for name in PANELS:
            with self.subTest(name):
                self.assertGreater(self.rows(name), 0)
        self.assertIn(f"{MATRICES:,} are resident", self.text("table-matrices"))
        self.assertGreater(self.browser.run("return document.querySelectorAll('polyline').length"), 1)
        self.browser.run("document.querySelector('[data-jobs=failed]').click()")
        self.assertIn("NOT_FOUND", self.text("table-jobs"))
        self.browser.run("document.querySelector('[data-jobs=slowest]').click()")

    def test_neither_the_page_nor_its_figures_grow(self):
        def measure():
            nodes = self.browser.run("return document.getElementsByTagName('*').length")
            parts = ("overview", "jobs", "matrices", "kernels")
            return nodes, {part: len(self.server.get(f"/status.json?part={part}", "scraper")[2]) for part in parts}
        nodes, sizes = measure()
        self.load()
        time.sleep(12)
        more_nodes, more_sizes = measure()
        self.assertLess(more_nodes, 1.2 * nodes)
        for part, size in more_sizes.items():
            self.assertLess(size, 128 << 10, part)
            self.assertLess(size, 1.3 * sizes[part], part)
        print(f"elements {more_nodes}, bytes {more_sizes}")

    def test_an_open_page_costs_the_server_little(self):
        before = self.server.http_seconds()
        time.sleep(MEASURED_SECONDS)
        share = (self.server.http_seconds() - before) / MEASURED_SECONDS
        print(f"an open page costs {100 * share:.3f} % of a core")
        self.assertLess(share, MOST_SHARE)
        self.assertGreater(share, 0)

    def test_it_is_dark_where_that_is_preferred(self):
        colour = "return getComputedStyle(document.body).backgroundColor"
        light = self.browser.run(colour)
        self.take("light")
        self.browser.scheme("dark")
        self.addCleanup(self.browser.scheme, "light")
        self.assertNotEqual(self.browser.run(colour), light)
        self.take("dark")

    def test_it_fits_a_narrow_screen(self):
        self.browser.size(375, 800)
        self.addCleanup(self.browser.size, 1360, 1000)
        self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 375)
        time.sleep(6)  # curves are drawn again
        self.take("narrow")

    def test_it_is_used_by_keys_alone(self):
        browser = self.browser
        browser.run("document.activeElement.blur(); scrollTo(0, 0)")
        browser.press("/")
        self.assertEqual(browser.run("return document.activeElement.id"), "filter")
        every = self.rows("catalogue")
        browser.press(*"openblas")
        self.assertLess(self.rows("catalogue"), every)
        self.assertGreater(self.rows("catalogue"), 0)
        browser.run("document.getElementById('filter').value = ''; "
                    "document.getElementById('filter').dispatchEvent(new Event('input'))")
        # From here on, every button is reached by the tabulator, and pressed by Enter.
        browser.run("document.getElementById('pause').focus()")
        reached = set()
        for _ in range(40):
            browser.press(KEYS["tab"])
            reached.add(browser.run("const e = document.activeElement;"
                                    "return e.dataset.jobs || e.getAttribute('aria-label') || e.id"))
            if browser.run("return document.activeElement.dataset.jobs === 'failed'"):
                break
        self.assertIn("slowest", reached)
        browser.press(KEYS["enter"])
        self.assertIn("NOT_FOUND", self.text("table-jobs"))
        browser.run("document.querySelector('[data-jobs=slowest]').click(); document.activeElement.blur()")
        browser.press("p")
        self.assertEqual(self.text("state"), "paused")
        browser.press("p")

    def take(self, name):
        if self.options.pictures:
            self.browser.picture(self.options.pictures / f"{name}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--gemmctl", required=True)
    parser.add_argument("--pictures", type=pathlib.Path, help="write pictures of the page into this folder")
    options, rest = parser.parse_known_args()
    for program in ("chromium", "chromedriver", "protoc"):
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed")
            return SKIPPED
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    PageTest.options = options
    result = unittest.main(argv=[sys.argv[0], *rest], exit=False, verbosity=2).result
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
