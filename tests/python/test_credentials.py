"""Tokens, TLS and mutual TLS, on servers that ask for them."""

import asyncio
import hashlib
import secrets
import socket
import subprocess
import sys

import gemmd
import gemmd.aio
import numpy as np
import pytest
from gemmd import credentials, proxies

from conftest import SMALL, Server, left_on

A = np.random.default_rng(1).standard_normal((200, 150))


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Authority:
    """A CA, and the certificates that it signs, in a folder."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.ca = folder / "ca.crt"
        self._issue("ca", ["-addext", "basicConstraints=critical,CA:TRUE"])

    def issue(self, name, alternative=None):
        """The paths of a certificate for this common name, and of its key."""
        signed = ["-CA", self.ca, "-CAkey", self.folder / "ca.key"]
        if alternative is not None:
            signed += ["-addext", f"subjectAltName={alternative}"]
        return self._issue(name, signed)

    def _issue(self, name, extra):
        paths = {"cert": self.folder / f"{name}.crt", "key": self.folder / f"{name}.key"}
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", f"/CN={name}", "-days", "2", "-keyout", paths["key"],
                "-out", paths["cert"], *extra)  # fmt: skip
        return paths


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ours") / "ca")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("theirs") / "ca")


TOKENS = {name: secrets.token_urlsafe(32) for name in ("operator", "worker", "other")}


@pytest.fixture(scope="module")
def callers(tmp_path_factory):
    roles = {"operator": "all", "worker": "call", "other": "call,matrices"}
    path = tmp_path_factory.mktemp("callers") / "callers"
    path.write_text("".join(
        f"{name} {roles[name]} sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"
        for name, token in TOKENS.items()
    ))  # fmt: skip
    return path


@pytest.fixture(scope="module")
def guarded(callers):
    """A server that knows its callers by their tokens."""
    running = Server(f"--callers-file={callers}", token=TOKENS["operator"])
    yield running
    running.kill()


@pytest.fixture(scope="module")
def tls(ours, callers):
    """A server with TLS that takes tokens and certificates."""
    own = ours.issue("gemmd", "DNS:gemmd.example,IP:127.0.0.1")
    running = Server(
        f"--tls-certificate={own['cert']}", f"--tls-key={own['key']}",
        f"--tls-client-ca={ours.ca}", "--tls-client-certificates=optional",
        f"--callers-file={callers}", ca=ours.ca, token=TOKENS["operator"],
    )  # fmt: skip
    yield running
    running.kill()


@pytest.fixture(scope="module")
def mutual(ours):
    """A server that wants a certificate of everybody."""
    own = ours.issue("mutual", "IP:127.0.0.1")
    running = Server(
        f"--tls-certificate={own['cert']}", f"--tls-key={own['key']}",
        f"--tls-client-ca={ours.ca}", ca=ours.ca, **ours.issue("probe"),
    )  # fmt: skip
    yield running
    running.kill()


def test_every_call_shows_the_token(guarded):
    token = TOKENS["operator"]
    with gemmd.connect(guarded.address, token=token, **SMALL) as g:
        assert g.info().caller == "operator"
        assert {"call", "matrices"} <= set(g.info().roles)
        for size in (5, 30, 150):  # one message, a stream, over all channels
            a = A[:size, :size]
            np.testing.assert_allclose(g.matmul(a, a.T), a @ a.T)
        with g.put(A) as w:
            assert [matrix.owner for matrix in g.matrices()] == ["operator"]
            np.testing.assert_array_equal(w.numpy(), A)
            np.testing.assert_allclose(g.keep(w, A.T).numpy(), A @ A.T)
        with g.pipeline() as p:
            np.testing.assert_allclose(p.matmul(A, A.T).result(60), A @ A.T)
        assert g.bench([32], families=["host"], types=["f32"], iterations=1).rows
        assert len(g.kernels()) > 0
        assert left_on(g) == (0, 0)


def test_asyncio_shows_it_too(guarded):
    async def product():
        async with await gemmd.aio.connect(guarded.address, token=TOKENS["worker"]) as g:
            return await g.matmul(A, A.T)

    np.testing.assert_allclose(asyncio.run(product()), A @ A.T)


@pytest.mark.parametrize("options", [{}, {"token": "wrong"}], ids=["none", "wrong"])
def test_who_is_not_known_is_told_so(guarded, options):
    with pytest.raises(gemmd.Unauthenticated, match="token|credentials") as caught:
        gemmd.connect(guarded.address, **options)
    assert "wrong" not in str(caught.value)


def test_a_token_comes_from_a_file_or_from_the_environment(guarded, tmp_path, monkeypatch):
    def caller(**options):
        with gemmd.connect(guarded.address, **options) as g:
            return g.info().caller

    files = {}
    for name, token in TOKENS.items():
        files[name] = tmp_path / name
        files[name].write_text(token + "\n")
    monkeypatch.setenv("GEMMD_TOKEN", TOKENS["worker"])
    assert caller() == "worker"
    monkeypatch.setenv("GEMMD_TOKEN_FILE", str(files["other"]))
    assert caller() == "other"
    assert caller(token_file=files["operator"]) == "operator"
    assert caller(token=TOKENS["worker"]) == "worker"
    monkeypatch.delenv("GEMMD_TOKEN_FILE")
    monkeypatch.setenv("GEMMD_TOKEN", TOKENS["other"] + "\n")  # as in the file
    assert caller() == "other"
    assert caller(token=TOKENS["worker"] + "\r\n") == "worker"
    with pytest.raises(gemmd.Unauthenticated):
        caller(token="")


def test_a_caller_who_may_keep_nothing_still_multiplies(guarded):
    with gemmd.connect(guarded.address, token=TOKENS["worker"], **SMALL) as g:
        np.testing.assert_allclose(g.matmul(A, A.T), A @ A.T)
        with pytest.raises(gemmd.PermissionDenied, match="matrices"):
            g.put(A)
        with pytest.raises(PermissionError, match="benchmark"):
            g.bench([32])


def test_matrices_are_their_callers_own(guarded):
    with (
        gemmd.connect(guarded.address, token=TOKENS["operator"]) as g,
        gemmd.connect(guarded.address, token=TOKENS["other"]) as other,
    ):
        g.put(A, name="w")
        own = other.put(A[:5], name="w")
        assert other.matrix("w").shape == own.shape
        assert [matrix.rows for matrix in other.matrices()] == [5]
        own.free()
        with pytest.raises(gemmd.NotFound):
            other.matrix("w")
        g.delete("w")


def test_who_may_only_call_multiplies_with_a_shared_matrix(guarded):
    with (
        gemmd.connect(guarded.address, token=TOKENS["operator"]) as g,
        gemmd.connect(guarded.address, token=TOKENS["worker"]) as worker,
    ):
        g.put(A, name="base", shared=True)
        with pytest.raises(gemmd.PermissionDenied, match="matrices"):
            worker.matrix("base", shared=True)
        options = {"shared": True, "shape": A.shape, "dtype": "f64"}
        w = worker.matrix("base", owner="operator", **options)
        np.testing.assert_allclose(A.T @ w, A.T @ A)
        with worker.pipeline() as p:
            np.testing.assert_allclose(p.matmul(A.T, w).result(60), A.T @ A)
        with pytest.raises(gemmd.NotFound):
            worker.matmul(A.T, worker.matrix("base", owner="other", **options))
        g.delete("base", shared=True)
        assert left_on(g) == (0, 0)


def test_tls_needs_the_ca_and_the_name_of_the_server(tls, ours, theirs):
    token = TOKENS["worker"]
    with gemmd.connect(tls.address, ca=ours.ca, token=token, **SMALL) as g:
        np.testing.assert_allclose(g.matmul(A, A.T), A @ A.T)
    gemmd.connect(tls.address, ca=ours.ca, token=token, server_name="gemmd.example").close()
    for wrong in ({}, {"tls": True}, {"ca": theirs.ca},
                  {"ca": ours.ca, "server_name": "other.example"}):  # fmt: skip
        with pytest.raises(gemmd.Unavailable, match=tls.address) as caught:
            gemmd.connect(tls.address, token=token, **wrong)
        assert ("wants TLS, or" in str(caught.value)) == (wrong == {})
    with pytest.raises(gemmd.Unauthenticated):
        gemmd.connect(tls.address, ca=ours.ca)


def test_mutual_tls_knows_a_client_by_its_certificate(mutual, ours, theirs):
    with gemmd.connect(mutual.address, ca=ours.ca, **ours.issue("trainer"), **SMALL) as g:
        assert g.info().caller == "trainer"
        np.testing.assert_allclose(g.matmul(A, A.T), A @ A.T)
    for wrong in ({}, theirs.issue("trainer")):
        with pytest.raises(gemmd.Unavailable, match=mutual.address):
            gemmd.connect(mutual.address, ca=ours.ca, **wrong)


def test_files_that_are_not_what_they_are_for_are_named(tls, ours, theirs, tmp_path):
    text, cut = tmp_path / "text.txt", tmp_path / "cut.pem"
    text.write_text("a text")
    cut.write_bytes(ours.ca.read_bytes()[:200])
    marked = tmp_path / "marked.pem"
    marked.write_bytes(b"\xef\xbb\xbf" + ours.ca.read_bytes())
    mine, other = ours.issue("pem-1"), ours.issue("pem-2")
    locked = tmp_path / "locked.pem"
    openssl("ec", "-in", mine["key"], "-aes256", "-passout", "pass:x", "-out", locked)
    rsa = theirs.folder / "rsa.key"
    openssl("genrsa", "-out", rsa, "2048")
    for options, field, words in (
        ({"ca": text}, "ca", "no certificate in PEM"),
        ({"ca": cut}, "ca", "no certificate in PEM"),
        ({"ca": marked}, "ca", "byte order mark"),
        ({"ca": mine["key"]}, "ca", "no certificate in PEM"),
        ({**mine, "cert": text}, "cert", "no certificate in PEM"),
        ({**mine, "key": text}, "key", "no private key in PEM"),
        ({**mine, "key": mine["cert"]}, "key", "no private key in PEM"),
        ({**mine, "key": other["key"]}, "key", "not the private key"),
        ({**mine, "key": rsa}, "key", "not the private key"),
        ({**mine, "key": locked}, "key", "without a password"),
    ):
        with pytest.raises(gemmd.InvalidArgument, match=words) as caught:
            gemmd.connect(tls.address, **options)
        assert caught.value.field == field
        assert str(options[field]) in str(caught.value)


def test_options_that_cannot_be_are_named(tmp_path):
    (tmp_path / "empty").write_text("\n")
    for options, words in (
        ({"cert": "c.pem"}, "cert is given without key"),
        ({"key": "k.pem"}, "key is given without cert"),
        ({"ca": tmp_path / "missing"}, "ca is .*No such file"),
        ({"token_file": tmp_path / "empty"}, "token_file is .*empty"),
        ({"token": "a", "token_file": "b"}, "at most one"),
        ({"token": "two words"}, "token has a token of 9 characters"),
        ({"token": "\n"}, "token has a token of 0 characters"),
        ({"token": "x" * 1025}, "1 to 1024"),
        ({"server_name": "x"}, "server_name is given without TLS"),
    ):
        with pytest.raises(gemmd.InvalidArgument, match=words) as caught:
            gemmd.connect("127.0.0.1:1", **options)
        assert "two words" not in str(caught.value)
    assert "secret" not in repr(gemmd.Options(token="secret"))


def test_a_token_does_not_leave_the_machine_without_tls():
    options = gemmd.Options(token="secret")
    for here in ("127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/run/x", "dns:///localhost:1"):
        assert credentials.of_calls(here, options, {}) == (("authorization", "Bearer secret"),)
    for there in ("10.0.0.1:1", "gemmd.example:1", "127.0.0.1.example:1", "localhost.example:1"):
        with pytest.raises(gemmd.InvalidArgument, match="without TLS"):
            credentials.of_calls(there, options, {})
        assert credentials.of_calls(there, gemmd.Options(token="secret", tls=True), {})
        plain = gemmd.Options(token="secret", token_without_tls=True)
        assert credentials.of_calls(there, plain, {})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_without_tls_nothing_goes_through_a_proxy(guarded, monkeypatch, host):
    for name in ("grpc_proxy", "https_proxy", "no_grpc_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    port = guarded.address.rpartition(":")[2]
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.getsockname()[1]}")
        gemmd.connect(f"{host}:{port}", token=TOKENS["worker"], channels=2).close()
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has connected
            proxy.accept()


def test_an_error_names_the_proxy(tls, ours, monkeypatch):
    for name in ("grpc_proxy", "no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://user:s3cret@127.0.0.1:1")  # where nobody listens
    options = {"ca": ours.ca, "token": TOKENS["worker"], "retry": gemmd.Retry(attempts=1)}
    with pytest.raises(gemmd.Unavailable) as caught:
        gemmd.connect(tls.address, **options)
    words = str(caught.value)
    assert f"{tls.address} through the proxy 127.0.0.1:1 (https_proxy): " in words
    assert "is this the proxy's address?" in words
    assert "does gemmd run" not in words and "s3cret" not in words
    for name, value in (("NO_PROXY", "127.0.0.1"), ("no_proxy", "example, *")):
        monkeypatch.setenv(name, value)
        gemmd.connect(tls.address, **options).close()
        monkeypatch.delenv(name)


def test_the_servers_without_a_proxy():
    def goes(address, **environment):
        return proxies.chosen(address, {"https_proxy": "http://p:1", **environment}) is not None

    assert proxies.chosen("gpu:1", {"http_proxy": "http://p:1/", "https_proxy": "http://u:s@q:2"}) == (
        "q:2", "https_proxy",
    )  # fmt: skip
    for none in ({}, {"HTTPS_PROXY": "http://p:1"}, {"grpc_proxy": "", "http_proxy": "http://p:1"},
                 {"https_proxy": "https://p:1"}):  # fmt: skip
        assert proxies.chosen("gpu:1", none) is None
    assert not goes("unix:/run/x")
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        for value, wanted in (("*", False), ("other, .LAB.example", False), ("", True),
                              ("lab,gpu,", True)):  # fmt: skip
            assert goes("gpu.lab.example:1", **{name: value}) is wanted
    for address in ("10.1.2.3:1", "ipv4:10.1.2.3:1,11.0.0.1:1", "dns:///10.1.2.3:1"):
        assert not goes(address, NO_PROXY="10.0.0.0/14")
        assert goes(address, NO_PROXY="10.0.0.0/16,10.0.0.0/64,10.0.0.0/x,fd00::/8")
    assert not goes("[fd00::7]:1", NO_PROXY="fd00::/8") and goes("[fe00::7]:1", NO_PROXY="fd00::/8")
    assert goes("gpu:1", no_proxy="x", NO_PROXY="*")  # the first that is set counts


def test_the_command_line_takes_them(tls, ours, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKENS["worker"])
    command = [sys.executable, "-m", "gemmd", "--address", tls.address, "--ca", str(ours.ca)]
    known = subprocess.run(
        [*command, "--token-file", str(token), "info"], capture_output=True, text=True
    )
    assert known.returncode == 0, known.stderr
    assert "worker: call" in known.stdout
    stranger = subprocess.run([*command, "info"], capture_output=True, text=True)
    assert stranger.returncode == 1
    assert "no credentials" in stranger.stderr
