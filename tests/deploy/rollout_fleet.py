"""Servers in network namespaces of their own behind one DNS name, as pods behind the headless
service of the Helm chart.

Each server that starts has a new address, as a pod has. Needs root, iproute2 and dnsmasq. All of
it lies in a network and a mount namespace of this program's own, which end with it.
"""

import hashlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import envoy_setup

NAME = "gemmd-headless.default.svc"
ROUTER = "10.77.0.1"
TOKEN = "a-token-of-the-test"
DNS_TTL_SECONDS = 5  # of headless services, by CoreDNS's default
VALUES = (envoy_setup.ROOT / "deploy/helm/gemmd/values.yaml").read_text(encoding="utf-8")
TEMPLATE = (envoy_setup.ROOT / "deploy/helm/gemmd/templates/deployment.yaml").read_text(encoding="utf-8")


def value(name):
    """A number of values.yaml."""
    return int(re.search(rf"^ *{name}: (\d+)$", VALUES, re.MULTILINE)[1])


def readiness_seconds():
    """How long Kubernetes takes to see that a server is not ready."""
    probe = re.search(r"readinessProbe:\n((?: {12,}.*\n)+)", TEMPLATE)[1]
    return int(re.search(r"periodSeconds: (\d+)", probe)[1]) * int(re.search(r"failureThreshold: (\d+)", probe)[1])


def enter_own_namespaces():
    """Runs this program again in namespaces of its own; returns there."""
    if os.environ.get("ROLLOUT_TEST_INSIDE") == "1":
        return
    os.environ["ROLLOUT_TEST_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private",
                          sys.executable, *sys.argv])


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


class Server(envoy_setup.Process):
    """A gemmd in a namespace of its own, with the chart's flags."""

    def __init__(self, program, folder, authority, number):
        self.host = f"10.77.0.{number + 10}"
        namespace = f"pod{number}"
        ip("netns", "add", namespace)
        ip("link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", namespace)
        ip("link", "set", f"v{number}", "master", "pods", "up")
        ip("-n", namespace, "addr", "add", f"{self.host}/24", "dev", "eth0")
        for device in "lo", "eth0":
            ip("-n", namespace, "link", "set", device, "up")
        authority.issue(folder)
        (folder / "callers").write_text(
            f"alice all sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}\n", encoding="utf-8")
        super().__init__(
            ["ip", "netns", "exec", namespace, program, "--devices=host", "--device-memory-bytes=256MiB",
             "--address=0.0.0.0:50051", "--metrics-address=0.0.0.0:9464",
             f"--tls-certificate={folder / 'tls.crt'}", f"--tls-key={folder / 'tls.key'}",
             f"--callers-file={folder / 'callers'}", f"--drain-delay={value('delaySeconds')}s",
             f"--drain-timeout={value('timeoutSeconds')}s"], folder / "log")
        self.await_start(lambda: envoy_setup.http_get(f"http://{self.host}:9464/readyz"))

    def products(self):
        """How many it has computed."""
        request = urllib.request.Request(f"http://{self.host}:9464/metrics",
                                         headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            text = answer.read().decode()
        return sum(float(n) for n in re.findall(r'^gemmd_jobs_total\{.*outcome="OK".*\} (\S+)$', text, re.MULTILINE))


class Fleet:
    """The servers, and the name server that knows which of them are ready."""

    def __init__(self, program, folder, size):
        self._program, self._folder = program, folder
        self._authority = envoy_setup.Authority(folder / "ca")
        self.roots = self._authority.certificate.read_bytes()
        self._numbers = itertools.count()
        self._hosts = folder / "hosts"
        self.servers, self.gone = [], []
        for device in ("link", "set", "lo", "up"), ("link", "add", "pods", "type", "bridge"), \
                ("link", "set", "pods", "up"), ("addr", "add", f"{ROUTER}/24", "dev", "pods"):
            ip(*device)
        # The names of network namespaces.
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        self._announce()
        self._dns = envoy_setup.Process(
            ["dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", f"--addn-hosts={self._hosts}",
             f"--local-ttl={DNS_TTL_SECONDS}", f"--listen-address={ROUTER}", "--bind-interfaces",
             "--user=root", "--pid-file", "--conf-file=/dev/null"], folder / "dns.log")
        for _ in range(size):
            self.add()

    def address(self):
        """For gRPC, which asks this name server."""
        return f"dns://{ROUTER}:53/{NAME}:50051"

    def _announce(self):
        self._hosts.write_text("".join(f"{server.host} {NAME}\n" for server in self.servers), encoding="utf-8")

    def _announce_again(self):
        self._announce()
        self._dns.process.send_signal(signal.SIGHUP)

    def add(self):
        """A new server, which the name has as soon as it is ready."""
        number = next(self._numbers)
        server = Server(self._program, self._folder / f"pod{number}", self._authority, number)
        self.servers.append(server)
        self._announce_again()
        return server

    def replace(self, server):
        """As the chart rolls out with maxSurge 0: the old one goes, a new one comes. The exit code."""
        self._withdraw(server)
        code = server.stop(value("delaySeconds") + value("timeoutSeconds") + 10)
        self.add()
        time.sleep(value("minReadySeconds"))
        return code

    def kill(self, server):
        """As a node that fails: the name has the server until its probes say no."""
        server.process.kill()
        server.process.wait()
        time.sleep(readiness_seconds())
        self._withdraw(server)
        self.add()
        time.sleep(value("minReadySeconds"))

    def _withdraw(self, server):
        self.servers.remove(server)
        self.gone.append(server)
        self._announce_again()

    def close(self):
        for server in self.servers:
            server.process.kill()
            server.process.wait()
        self._dns.stop()
