"""The files of a server that asks who calls, in versions, and the ways in which they are replaced.

All lie behind one link, as Kubernetes mounts a secret.
"""

import dataclasses
import os
import pathlib
import secrets
import time

import certificates
from access import Access
from guard import SERVER_NAME, caller_line

NAMES = ("callers", "tls.crt", "tls.key", "clients.crt")
PAIRS = 6  # certificates of the server, which it gets in turn
STAYING = ("caller", "keeper")


@dataclasses.dataclass(frozen=True)
class Version:
    """What the files of one version have, and by what it is known."""
    number: int
    texts: dict       # by NAMES
    token: str        # of a caller who is in this version alone
    visitors: bool    # whether the other CA's clients are let in


class Files:
    def __init__(self, folder, rng):
        self.folder, self.rng = pathlib.Path(folder), rng
        self.ours = certificates.Authority(self.folder, "ours")
        self.theirs = certificates.Authority(self.folder, "theirs")
        # By either CA: who calls trusts both.
        self._pairs = [[pathlib.Path(path).read_text(encoding="ascii") for path in
                        (self.ours, self.theirs)[i % 2].issue(f"gemmd{i}", SERVER_NAME)]
                       for i in range(PAIRS)]
        self.trusted = self._write("trusted.crt", self._ca(self.ours) + self._ca(self.theirs))
        self.tokens = {name: secrets.token_urlsafe(32) for name in STAYING}
        self._trainer = self.ours.issue("trainer")
        self._visitor = self.theirs.issue("visitor", common_name="trainer")
        self.live = self.folder / "live"
        self.put_link(self.version(0))

    @staticmethod
    def _ca(authority):
        return pathlib.Path(authority.ca).read_text(encoding="ascii")

    def _write(self, name, text):
        (self.folder / name).write_text(text, encoding="ascii")
        return str(self.folder / name)

    def flags(self):
        callers, certificate, key, client_ca = (self.live / name for name in NAMES)
        return [f"--callers-file={callers}", f"--tls-certificate={certificate}",
                f"--tls-key={key}", f"--tls-client-ca={client_ca}",
                "--tls-client-certificates=optional"]

    def version(self, number):
        token = secrets.token_urlsafe(32)
        lines = [caller_line(name, "call,matrices", self.tokens[name]) for name in STAYING]
        lines += [caller_line(f"round-{number}", "call", token), "trainer call certificate:trainer\n"]
        self.rng.shuffle(lines)
        certificate, key = self._pairs[number % PAIRS]
        visitors = self.rng.random() < 0.5
        clients = self._ca(self.ours) + (self._ca(self.theirs) if visitors else "")
        texts = dict(zip(NAMES, ("".join(lines), certificate, key, clients)))
        return Version(number, texts, token, visitors)

    def caller(self, name, address):
        """One who is in all versions."""
        return self.with_token(self.tokens[name], address)

    def with_token(self, token, address):
        return Access(address, ca=self.trusted, authorization=f"Bearer {token}")

    def trainer(self, address):
        """By certificate, in all versions."""
        return Access(address, "trainer", self.trusted, *self._trainer)

    def visitor(self, address):
        """By the other CA's certificate."""
        return Access(address, "visitor", self.trusted, *self._visitor)

    # Each way puts the whole of a version there.

    def put_renamed(self, version):
        """Each file beside the old one, then over it; a certificate before its key, or after."""
        for name in self.rng.sample(NAMES, len(NAMES)):
            beside = self.live / f"{name}.new"
            beside.write_text(version.texts[name], encoding="ascii")
            os.replace(beside, self.live / name)
            self._pause()

    def put_in_place(self, version):
        for name in self.rng.sample(NAMES, len(NAMES)):
            (self.live / name).write_text(version.texts[name], encoding="ascii")
            self._pause()

    def put_in_pieces(self, version):
        """In place, with time to read each file empty, and cut in the middle of a line.

        A callers file that is cut at a line's end is a whole one, so it is not cut there.
        """
        for name in self.rng.sample(NAMES, len(NAMES)):
            text = version.texts[name]
            middle = text.index("\n", len(text) // 2) - 5
            with open(self.live / name, "w", encoding="ascii") as file:
                for piece in ("", text[:middle], text[middle:]):
                    file.write(piece)
                    file.flush()
                    self._pause()

    def put_link(self, version):
        """All of them at once, behind the link."""
        folder = self.folder / f"version-{version.number}"
        folder.mkdir()
        for name in NAMES:
            (folder / name).write_text(version.texts[name], encoding="ascii")
        turned = self.folder / "turned"
        turned.symlink_to(folder.name)
        os.replace(turned, self.live)

    def put_wrong(self, version):
        """Files that must change nothing; the words for what is wrong with them."""
        texts = version.texts
        what, name, text = self.rng.choice([
            ("a certificate that is none", "tls.crt", "-----BEGIN CERTIFICATE-----\nx\n"),
            ("an empty certificate", "tls.crt", ""),
            ("the key of another certificate", "tls.key",
             self._pairs[(version.number + 1) % PAIRS][1]),
            ("no key", "tls.key", None),
            ("a CA of clients that is none", "clients.crt", "nothing\n"),
            ("callers without a newline at the end", "callers", texts["callers"][:-1]),
            ("callers with a role that there is not", "callers", texts["callers"] + "x y z\n"),
            ("a token twice", "callers", texts["callers"] + caller_line("x", "all", version.token)),
            ("no callers", "callers", None),
        ])
        # The wrong one first: the server may look between two, and must find nothing to take.
        for each in sorted(NAMES, key=lambda each: each != name):
            given = text if each == name else texts[each]
            if given is None:
                (self.live / each).unlink()
            elif name == "callers" or each != "callers":  # wrong TLS comes without new callers
                (self.live / each).write_text(given, encoding="ascii")
        return what, "callers" if name == "callers" else "tls"

    def _pause(self):
        if self.rng.random() < 0.3:
            time.sleep(self.rng.random() * 0.3)


WAYS = {"renamed": Files.put_renamed, "in place": Files.put_in_place,
        "in place, in pieces": Files.put_in_pieces, "by a link": Files.put_link}
