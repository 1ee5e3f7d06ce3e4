#!/usr/bin/env python3
"""Writes a software bill of materials (SPDX 2.3, JSON) of what scripts/package.sh makes.

    scripts/sbom.py --version VERSION --commit COMMIT --created TIME --out FILE
                    [--program PROGRAM]... PACKAGE...

It has each PACKAGE, a file, with its SHA-256; and the Debian packages of the shared libraries that
each PROGRAM loads, with their versions on this machine. What is compiled into the programs from
headers alone is found by the build's packages, so those of `install-deps.sh build` are listed, too.
"""
import argparse
import hashlib
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def installed(query):
    """{name: version} of the packages that dpkg-query finds."""
    listed = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Version} ${db:Status-Status}\n", *query],
                            check=False, capture_output=True, text=True, timeout=60).stdout
    lines = (line.split() for line in listed.splitlines())
    return {line[0]: line[1] for line in lines if len(line) == 3 and line[2] == "installed"}


def packages_of_libraries(programs):
    """Of the libraries that the loader finds; none where no package has one, as of CUDA's."""
    paths = {pathlib.Path(path).resolve() for program in programs
             for path in re.findall(r"=> (/\S+)", run("ldd", program))}
    owners = set()
    for path in paths:
        # /lib is /usr/lib, and dpkg knows a file by one of the two names.
        for name in (str(path), str(path).removeprefix("/usr")):
            found = subprocess.run(["dpkg-query", "-S", name], check=False, capture_output=True,
                                   text=True, timeout=60).stdout
            owners.update(line.split(":")[0] for line in found.splitlines() if ": " in line)
    return sorted(owners)


def packages_of_build():
    lines = run(ROOT / "scripts/install-deps.sh", "build", "--list").splitlines()
    return [line.split()[1] for line in lines]


def element(name, version, **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name,
            "versionInfo": version, "downloadLocation": "NOASSERTION",
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION", "filesAnalyzed": False, **more}


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def document(flags):
    ours = [element(path.name, flags.version, licenseDeclared="Apache-2.0",
                    sourceInfo=f"built from commit {flags.commit}", packageFileName=path.name,
                    checksums=[{"algorithm": "SHA256",
                                "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}])
            for path in sorted(flags.packages)]
    loaded = packages_of_libraries(flags.program)
    versions = installed([*loaded, *packages_of_build()]) if flags.program else {}
    others = [element(name, version, supplier="Organization: Debian",
                      externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                     "referenceLocator": f"pkg:deb/debian/{name}@{version}"}])
              for name, version in sorted(versions.items())]
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", one["SPDXID"]) for one in ours]
    for one in others:
        kind = "DEPENDENCY_OF" if one["name"] in loaded else "BUILD_DEPENDENCY_OF"
        relations += [relation(one["SPDXID"], kind, our["SPDXID"]) for our in ours]
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"gemmd-{flags.version}",
            "documentNamespace": f"https://spdx.org/spdxdocs/gemmd-{flags.version}-{flags.commit}",
            "creationInfo": {"created": flags.created, "creators": ["Tool: gemmd-scripts-sbom.py"]},
            "packages": ours + others, "relationships": relations}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--version", "--commit", "--created"):
        parser.add_argument(name, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--program", action="append", default=[])
    parser.add_argument("packages", nargs="+", type=pathlib.Path)
    flags = parser.parse_args()
    flags.out.write_text(json.dumps(document(flags), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
