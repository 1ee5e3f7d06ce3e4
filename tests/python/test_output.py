"""What becomes of a file that a command writes: all of what is new, or what it had."""

import os
import signal
import subprocess
import sys

import pytest
from gemmd.output import Output

OTHER = 1234
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give files away")


def write(path, content=b"new"):
    with Output(str(path)) as output:
        output.write(content)


def python(code, *arguments, **how):
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], timeout=60, **how)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old and long")
    return path


def test_a_file_is_replaced_whole_and_keeps_its_permissions(file, tmp_path):
    file.chmod(0o640)
    with Output(str(file)) as output:
        output.write(b"new ")
        assert file.read_bytes() == b"old and long"
        output.write(b"content")
    assert file.read_bytes() == b"new content"
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["file"]


def test_an_exception_leaves_it_as_it_was(file, tmp_path):
    with pytest.raises(RuntimeError), Output(str(file)) as output:
        output.write(b"half")
        raise RuntimeError
    assert file.read_bytes() == b"old and long"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["", "none/there", "n" * 256])
def test_a_path_that_cannot_be_is_refused_when_it_is_opened(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError) as error:
        Output(name)
    assert error.value.filename == name
    assert os.listdir(tmp_path) == []


def test_names_of_one_file_stay_names_of_one_file(file, tmp_path):
    (tmp_path / "other").hardlink_to(file)
    with Output(str(file)) as output:
        assert file.read_bytes() == b"old and long"
        output.write(b"new")
    assert (tmp_path / "other").read_bytes() == b"new"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_part(file, tmp_path, number):
    code = (
        "import os, sys; from gemmd.output import Output\n"
        "with Output(sys.argv[1]) as output: output.write(b'half'); os.kill(os.getpid(), int(sys.argv[2]))"
    )
    assert python(code, file, int(number)).returncode == -number
    assert file.read_bytes() == b"old and long"
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_process_left_is_in_nobodys_way(file, tmp_path):
    """Each has a name of its own, though all have one number, as in containers."""
    code = "import os, sys; from gemmd.output import Output; Output(sys.argv[1]); os._exit(0)"
    for count in range(2, 5):
        done = subprocess.run(
            ["unshare", "--pid", "--fork", sys.executable, "-c", code, str(file)],
            timeout=60, capture_output=True, text=True,
        )  # fmt: skip
        if done.stderr.startswith("unshare:"):
            pytest.skip("needs the right to have processes numbered anew")
        assert done.returncode == 0, done.stderr
        assert len(os.listdir(tmp_path)) == count


@needs_root
def test_a_file_stays_its_owners(file):
    os.chown(file, OTHER, OTHER)
    before = file.stat().st_ino
    write(file)
    after = file.stat()
    assert (after.st_uid, after.st_gid) == (OTHER, OTHER)
    assert after.st_ino != before


@needs_root
@pytest.mark.parametrize("folder", [0o777, 0o755])
def test_what_cannot_be_replaced_is_written_in_place(file, tmp_path, folder):
    """A file of another's, and a writable one in a folder that is not."""
    for parent in [tmp_path, *tmp_path.parents][:3]:
        parent.chmod(0o755)
    tmp_path.chmod(folder)
    file.chmod(0o666)
    code = (
        "import os, sys; from gemmd.output import Output; os.setgroups([]); os.setgid(1234); os.setuid(1234)\n"
        "with Output(sys.argv[1]) as output: output.write(b'new')"
    )
    done = python(code, file, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == b"new" and file.stat().st_uid == 0
    assert os.listdir(tmp_path) == ["file"]


@needs_root
def test_a_file_that_is_mounted_by_itself_is_written_in_place(file, tmp_path):
    mounted = tmp_path / "a name"
    mounted.touch()
    script = 'mount --bind "$1" "$2" || exit 77; "$0" -c "$3" "$2"'
    code = (
        "import sys; from gemmd.output import Output\n"
        "with Output(sys.argv[1]) as output: output.write(b'new')"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, sys.executable, str(file), str(mounted), code],
        timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("needs the right to mount")
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == b"new"
