"""The files of a server that asks who calls, and those who call it."""

import hashlib
import pathlib
import secrets

import certificates
from access import Access

SERVER_NAME = "IP:127.0.0.1"  # in the server's certificate
MANY_NAMES = ",".join(f"DNS:n{i:04}.{'x' * 40}.example" for i in range(1500))
# Known callers and their roles. What an attacker may do is its name.
CALLERS = {"operator": "all", "bystander": "call,matrices", "call": "call",
           "matrices": "call,matrices", "benchmark": "call,matrices,benchmark"}
ATTACKERS = ("call", "matrices", "benchmark")
NOBODY = "nobody"
STRANGER = "stranger"  # gets a connection, and no call
FORGED = "forged"      # shows a certificate with which it must not get a connection


def caller_line(name, roles, token):
    return f"{name} {roles} sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"


class Guard:
    """A server with TLS and tokens, whose clients may show certificates."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.ours = certificates.Authority(folder, "ours")
        self.theirs = certificates.Authority(folder, "theirs")
        self.tokens = {name: secrets.token_urlsafe(32) for name in CALLERS}
        self.callers_file = folder / "callers"
        lines = [caller_line(name, roles, self.tokens[name]) for name, roles in CALLERS.items()]
        self.callers_file.write_text("".join([*lines, "trainer call certificate:trainer\n"]),
                                     encoding="utf-8")
        self.certificate, self.key = self.ours.issue("gemmd", SERVER_NAME)
        self._unknown = self.ours.issue("unknown")
        self._trainer = self.ours.issue("trainer")

    def flags(self):
        return [f"--tls-certificate={self.certificate}", f"--tls-key={self.key}",
                f"--tls-client-ca={self.ours.ca}", "--tls-client-certificates=optional",
                f"--callers-file={self.callers_file}"]

    def caller(self, name, address):
        return Access(address, who=name, ca=self.ours.ca,
                      authorization=f"Bearer {self.tokens[name]}")

    def strangers(self, address):
        right = self.tokens["operator"]

        def showing(who, pair=("", ""), authorization=""):
            return Access(address, who, self.ours.ca, *pair, authorization, stranger=True)

        return [showing("without a token"),
                showing("with a wrong token", authorization="Bearer wrong"),
                showing("with the right token but its last character",
                        authorization=f"Bearer {right[:-1]}"),
                showing("with another scheme", authorization=f"Basic {right}"),
                showing("with a certificate of an unknown name", self._unknown),
                showing("with a known certificate and a wrong token", self._trainer,
                        "Bearer wrong")]

    def forged(self, address):
        """Certificates of callers, which are none; a right token does not help."""
        pairs = {"of another CA": self.theirs.issue("trainer"),
                 "that has expired": self.ours.issue_expired("old"),
                 "of another CA, with 88 KB of names": self.theirs.issue("large", MANY_NAMES),
                 "of another CA, with a chain of 400 KB": self._long_chain()}
        return [Access(address, f"with a certificate {what}", self.ours.ca, *pair,
                       f"Bearer {self.tokens['operator']}", stranger=True, connects=False)
                for what, pair in pairs.items()]

    def _long_chain(self):
        """Larger than the 100 KB that OpenSSL takes."""
        certificate, key = self.theirs.issue("chain", MANY_NAMES)
        one = pathlib.Path(certificate).read_bytes()
        extra = pathlib.Path(self.theirs.issue("link", MANY_NAMES)[0]).read_bytes()
        pathlib.Path(certificate).write_bytes(one + 3 * extra)
        return certificate, key

    def attackers(self, by, address):
        """Those of an attack's `by`."""
        if by == STRANGER:
            return self.strangers(address)
        if by == NOBODY:
            return [Access(address)]
        return self.forged(address) if by == FORGED else [self.caller(by, address)]
