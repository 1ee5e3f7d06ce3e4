"""Addresses: what cannot be one is refused before anything is sent, in one sentence."""

import asyncio
import subprocess
import sys

import gemmd
import gemmd.aio
import pytest
from gemmd import address

FORM = "it must be host:port, [IPv6 address]:port or unix:PATH"

WRONG = [
    ("127.0.0.1:65536", "whose port is 65536; it must be 1 to 65535"),
    ("127.0.0.1:" + "9" * 5000, "it must be 1 to 65535"),
    ("dns:///localhost:117587", "whose port is 117587; it must be 1 to 65535"),
    ("ipv4:10.0.0.1:50051,10.0.0.2:70000", "whose port is 70000; it must be 1 to 65535"),
    ("[::1]:65536", "whose port is 65536; it must be 1 to 65535"),
    ("localhost:0", "whose port is 0; it must be 1 to 65535"),
    ("localhost:-1", "whose port is -1; it must be 1 to 65535"),
    ("localhost:abc", "whose port is abc; it must be 1 to 65535"),
    ("localhost:٣", "it must be 1 to 65535"),
    ("localhost", f"has no port; {FORM}"),
    ("localhost:", f"has no port; {FORM}"),
    ("dns:///localhost", f"has no port; {FORM}"),
    ("[::1]", f"has no port; {FORM}"),
    ("unix:", f"has no port; {FORM}"),
    ("", FORM),
    ("http://localhost:50051", FORM),
    ("http://localhost", FORM),
    ("localhost:50051/", FORM),
    ("::1:50051", FORM),
    (" localhost:50051", FORM),
    ("user@localhost:50051", FORM),
    (50051, "a int; it must be a str"),
]

RIGHT = [
    "127.0.0.1:1", "gemmd.example:65535", "localhost:050051", "[::1]:50051", "dns:localhost:50051",
    "dns:///gemmd.example:50051", "DNS://10.0.0.1:53/gemmd.example:50051", "ipv4:10.0.0.1:50051",
    "ipv4:///10.0.0.1:50051,10.0.0.2:50051", "ipv6:[::1]:50051", "ipv6:%5B::1%5D:50051",
    "unix:/run/gemmd.sock", "unix:///run/gemmd.sock", "unix:a b.sock", "unix-abstract:gemmd",
]  # fmt: skip


@pytest.mark.parametrize("given,words", WRONG, ids=[f"{w[0]!s:.30}" for w in WRONG])
def test_what_is_none_is_refused(given, words):
    with pytest.raises(gemmd.InvalidArgument) as caught:
        gemmd.connect(given)
    assert caught.value.field == "address"
    assert str(caught.value).startswith("address is ") and words in str(caught.value)


@pytest.mark.parametrize("given", RIGHT)
def test_the_forms_of_grpc_are_taken(given):
    assert address.check(given) == given


def test_a_port_too_large_reaches_no_other_server(server):
    """gRPC takes it modulo 65536."""
    host, _, port = server.address.rpartition(":")
    with pytest.raises(gemmd.InvalidArgument, match=f"whose port is {int(port) + 65536}"):
        gemmd.connect(f"{host}:{int(port) + 65536}", token="secret")


def test_other_names_of_a_server(server):
    port = server.address.rpartition(":")[2]
    for name in ("localhost:{}", "dns:///127.0.0.1:{}", "dns:localhost:{}", "ipv4:127.0.0.1:{}"):
        gemmd.connect(name.format(port)).close()


def test_without_an_address_that_of_the_environment_counts(server, monkeypatch):
    monkeypatch.setenv("GEMMD_ADDRESS", f"{server.address},unix:/run/gemmd.sock")
    for connect in (gemmd.connect, lambda: asyncio.run(gemmd.aio.connect())._blocking):
        with connect() as client:
            assert client._connection.address == server.address
    done = subprocess.run([sys.executable, "-m", "gemmd", "info"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with pytest.raises(gemmd.GemmdError, match="127.0.0.1:1:"):
        gemmd.connect("127.0.0.1:1", retry=gemmd.Retry(1))
    monkeypatch.setenv("GEMMD_ADDRESS", "localhost:70000")
    with pytest.raises(gemmd.InvalidArgument, match="GEMMD_ADDRESS is 'localhost:70000', whose port"):
        gemmd.connect()
    for environment in ({}, {"GEMMD_ADDRESS": ""}):
        assert address.chosen(None, environment) == "127.0.0.1:50051"
