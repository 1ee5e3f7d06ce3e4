"""Certificates, made by the openssl program."""

import pathlib
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A CA in a folder of its own, and what it signs there."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(parents=True)
        self.ca, self._key = self._paths("ca")
        self._issue("ca", name, ["-addext", "basicConstraints=critical,CA:TRUE"])

    def issue(self, name, alternative="", common_name=""):
        """The paths of a new certificate and of its key; those of this name are written over.

        `alternative` is its subjectAltName. The common name is `name` where left out.
        """
        extra = ["-CA", self.ca, "-CAkey", self._key]
        if alternative:
            extra += ["-addext", f"subjectAltName={alternative}"]
        return self._issue(name, common_name or name, extra)

    def issue_expired(self, name):
        """A certificate that was valid until yesterday."""
        certificate, key = self._paths(name)
        request = self.folder / f"{name}.csr"
        openssl("req", "-new", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key, "-days", -1,
                "-out", certificate)
        return certificate, key

    def _paths(self, name):
        return [str(self.folder / f"{name}.{kind}") for kind in ("crt", "key")]

    def _issue(self, name, common_name, extra):
        certificate, key = self._paths(name)
        openssl("req", "-x509", *_NEW_KEY, "-subj", f"/CN={common_name}", "-days", 2,
                "-out", certificate, "-keyout", key, *extra)
        return certificate, key


_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
