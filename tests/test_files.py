"""Files are written whole or not at all, and locks end with the process that holds them."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pytest
from started import PATIENCE

from ihgnn_cli.errors import IhgnnError, InputError, NoLocksError
from ihgnn_cli.files import (
    check_place,
    exclusive,
    locked,
    read_text,
    remove_parts,
    try_lock,
    written_whole,
)

NO_SPACE = os.strerror(errno.ENOSPC)


def disk_full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, NO_SPACE)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# Writing


@pytest.mark.parametrize("old", [None, "old"])
def test_a_file_gets_its_name_when_it_is_whole(tmp_path: Path, old: str | None) -> None:
    target = tmp_path / "new" / "figure.png"
    if old:
        target.parent.mkdir()
        target.write_text(old)
        target.chmod(0o600)
    with written_whole(target) as temporary:
        assert (temporary.parent, temporary.suffix) == (target.parent, ".png")
        temporary.write_text("new")
        assert (target.read_text() if old else target.exists()) == (old or False)
    assert target.read_text() == "new"
    assert names(target.parent) == ["figure.png"]
    assert not old or target.stat().st_mode & 0o777 == 0o600


def test_two_writers_do_not_share_a_temporary_file_and_the_last_wins(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    with written_whole(target) as one:
        with written_whole(target) as other:
            one.write_text("one")
            other.write_text("other")
        assert target.read_text() == "other"
    assert target.read_text() == "one"


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (ValueError("mine"), ValueError),
        (FileNotFoundError("mine"), FileNotFoundError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.ENOSPC, NO_SPACE), IhgnnError),
    ],
)
@pytest.mark.parametrize("old", [None, "old"])
def test_a_failure_leaves_everything_as_it_was(
    tmp_path: Path, failure: BaseException, raised: type[BaseException], old: str | None
) -> None:
    target = tmp_path / "result.txt"
    if old:
        target.write_text(old)

    def write_half() -> None:
        with written_whole(target) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(raised) as caught:
        write_half()
    assert names(tmp_path) == (["result.txt"] if old else [])
    assert not old or target.read_text() == old
    if raised is IhgnnError:
        assert str(caught.value) == (
            f"Cannot write {target}: {NO_SPACE}. Free some space, or choose another path."
        )


@pytest.mark.parametrize("step", ["mkdir", "touch", "replace"])
def test_a_disk_that_fills_up_at_any_step_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(Path, step, disk_full)
    with pytest.raises(IhgnnError, match=NO_SPACE), written_whole(tmp_path / "result.txt"):
        pass
    monkeypatch.undo()
    assert names(tmp_path) == []


def test_a_durable_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, on_disk = tmp_path / "result.txt", []
    target.write_text("old")

    def fsync(descriptor: int) -> None:
        on_disk.append((os.fstat(descriptor).st_size, target.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    with written_whole(target, durable=True) as temporary:
        temporary.write_text("longer")
        assert on_disk == []
    assert on_disk == [(6, "old")]
    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(IhgnnError, match=NO_SPACE), written_whole(target, durable=True) as half:
        half.write_text("new")
    assert (names(tmp_path), target.read_text()) == (["result.txt"], "longer")


@pytest.mark.parametrize("name", ["", "file/result.txt", "file/folder/result.txt"])
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    target = tmp_path / name
    told = f"^Cannot write {re.escape(str(target))}: "
    with pytest.raises(IhgnnError, match=told), written_whole(target):
        pytest.fail("the block must not run")
    with pytest.raises(IhgnnError, match=told):
        check_place(target)
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["a.png", "new/er/a.png", "there.png"])
def test_a_place_is_checked_without_writing_to_it(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there.png").touch()
    check_place(tmp_path / name)
    assert names(tmp_path) == ["there.png"]
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(IhgnnError, match="Permission denied"):
        check_place(tmp_path / name)


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    with written_whole(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    with written_whole(pipe) as temporary:
        temporary.write_text("through")
    assert reader.communicate(timeout=PATIENCE)[0] == "through"
    assert pipe.is_fifo()


def test_what_was_half_written_by_a_killed_process_is_removed(tmp_path: Path) -> None:
    for name in (".ckpt-1-ab.part.pt", ".x-2-cd.part", "ckpt.pt", "part.txt"):
        (tmp_path / name).touch()
    remove_parts(tmp_path)
    assert names(tmp_path) == ["ckpt.pt", "part.txt"]


# Reading


def test_a_text_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfabc")  # as Windows editors save it
    assert read_text(tmp_path / "text", 6) == "abc"
    for path in (tmp_path / "text", Path("/dev/zero")):
        with pytest.raises(InputError, match=f"{path} is larger than"):
            read_text(path, 5)


# Locks


def test_the_lock_of_a_folder_keeps_others_out_until_its_block_ends(tmp_path: Path) -> None:
    with (
        locked(tmp_path),
        pytest.raises(InputError, match="Another process is using"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


def test_one_thread_at_a_time_is_in_an_exclusive_block(tmp_path: Path) -> None:
    total = tmp_path / "total"
    total.write_text("0")

    def add() -> None:
        for _ in range(5):
            with exclusive(tmp_path / "lock") as held:
                assert held
                before = int(total.read_text())
                time.sleep(0.0005)  # all others would read the same now
                total.write_text(str(before + 1))

    threads = [Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.read_text() == "20"


def test_a_killed_process_frees_its_lock_and_a_stopped_one_keeps_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from ihgnn_cli.files import try_lock\n"
        "with try_lock(Path(sys.argv[1])) as held: print(held, flush=True); sys.stdin.read()\n"
    )
    lock = tmp_path / "locks" / "stack"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, lock], text=True, **pipes) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "True\n"
        with try_lock(lock) as held:
            assert not held
        holder.send_signal(signal.SIGSTOP)
        with try_lock(lock) as held:
            assert not held
        holder.kill()
    with try_lock(lock) as held:
        assert held


def test_a_failure_in_a_locked_block_opens_it_to_others(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError, match="mine"), try_lock(tmp_path / "lock"):
        raise BlockingIOError("mine")
    with try_lock(tmp_path / "lock") as held:
        assert held


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_says_so_and_gets_no_soft_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", refuse)
    with pytest.raises(NoLocksError), try_lock(tmp_path / "lock"):
        pytest.fail("the block must not run")
    with exclusive(tmp_path / "lock") as held:
        assert not held
    with locked(tmp_path):
        assert names(tmp_path) == [".lock", "lock"]


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IhgnnError, match="Cannot write"), exclusive(tmp_path / "none" / "lock"):
        pytest.fail("the block must not run")
    (tmp_path / "file").touch()
    with pytest.raises(IhgnnError, match="Cannot write"), try_lock(tmp_path / "file" / "lock"):
        pytest.fail("the block must not run")
