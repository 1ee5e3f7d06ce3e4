#!/usr/bin/env python3
"""Writes man pages and bash completions of gemmd and gemmctl, from what their --help prints.

    scripts/manual.py --gemmd PROGRAM --gemmctl PROGRAM --out DIR --date DATE

OUT/gemmd and OUT/gemmctl have the files of each, laid out as /usr/share. Every subcommand of
gemmctl has a page, such as gemmctl-matrix-put(1).
"""
import argparse
import gzip
import pathlib
import re
import subprocess

COMPLETION = """# Completions of {name} for bash.
_{name}() {{
  local path={name} word
  local -A words=(
{words}
  )
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word != -* && " ${{words[$path]}} " == *" $word "* ]] && path+=" $word"
  done
  mapfile -t COMPREPLY < <(compgen -W "${{words[$path]}}" -- "${{COMP_WORDS[COMP_CWORD]}}")
}}
complete -o default -F _{name} {name}
"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def subcommands(text):
    part = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  ([a-z]+) ", part[1], re.MULTILINE) if part else []


def options(text):
    """Those at the start of a line: others are examples."""
    found = re.findall(r"^  (?:-\w,)?(--[a-z0-9-]+)", text, re.MULTILINE)
    return list(dict.fromkeys(found))


def helps(name, program, path=()):
    """(words of the command, its help) of a program and of its subcommands."""
    text = run(program, *path, "--help")
    yield (name, *path), text
    for word in subcommands(text):
        yield from helps(name, program, (*path, word))


def roff(line):
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line[:1] in ".'" else line


def page(words, text, version, date):
    """The help as it is printed; its headings become those of the page."""
    title = "-".join(words)
    first, *rest = text.splitlines()
    summary = first.removeprefix(f"{title}: ").rstrip(".")
    lines = [f'.TH {title.upper()} 1 "{date}" "gemmd {version}" "gemmd"', ".SH NAME",
             roff(f"{title} - {summary}"), ".SH DESCRIPTION", ".nf"]
    for line in rest:
        if re.fullmatch(r"[A-Z][\w ,]*:", line):
            lines += [".fi", f'.SH "{roff(line[:-1].upper())}"', ".nf"]
        else:
            lines.append(roff(line))
    return "\n".join([*lines, ".fi", ""])


def write(name, program, version, out, date):
    pages, completions = out / name / "man/man1", out / name / "bash-completion/completions"
    for folder in (pages, completions):
        folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for words, text in helps(name, program):
        made = page(words, text, version, date).encode()
        (pages / ("-".join(words) + ".1.gz")).write_bytes(gzip.compress(made, mtime=0))
        rows.append(f'    ["{" ".join(words)}"]="{" ".join(subcommands(text) + options(text))}"')
    (completions / name).write_text(COMPLETION.format(name=name, words="\n".join(rows)), "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gemmd", required=True)
    parser.add_argument("--gemmctl", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--date", required=True)
    flags = parser.parse_args()
    version = run(flags.gemmd, "--version").split()[1]
    write("gemmd", flags.gemmd, version, flags.out, flags.date)
    write("gemmctl", flags.gemmctl, version, flags.out, flags.date)


if __name__ == "__main__":
    main()
