"""Files are written whole or not at all."""

import errno
import os
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
    clock_of,
    exclusive,
    locked,
    remove_parts,
    try_lock,
    written_whole,
)

ADVICE = "Choose another path."
NO_SPACE = os.strerror(errno.ENOSPC)


def disk_full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, NO_SPACE)


def write_half(target: Path, failure: BaseException) -> None:
    with written_whole(target) as temporary:
        temporary.write_text("half")
        raise failure


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_there_when_the_block_has_ended(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    with written_whole(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert names(tmp_path) == ["result.txt"]


def test_an_old_file_stays_until_the_block_has_ended(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")
    with written_whole(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "result.txt"
    with written_whole(target) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"


def test_the_temporary_file_stands_beside_the_target_with_its_suffix(tmp_path: Path) -> None:
    with written_whole(tmp_path / "figure.png") as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".png"


def test_two_writers_do_not_share_a_temporary_file_and_the_last_wins(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    with written_whole(target) as one:
        with written_whole(target) as other:
            one.write_text("one")
            other.write_text("other")
        assert target.read_text() == "other"
    assert target.read_text() == "one"


@pytest.mark.parametrize("failure", [ValueError("mine"), FileNotFoundError("mine")])
@pytest.mark.parametrize("old", [None, "old"])
def test_a_failure_in_the_block_leaves_everything_as_it_was(
    tmp_path: Path, failure: Exception, old: str | None
) -> None:
    target = tmp_path / "result.txt"
    if old:
        target.write_text(old)
    with pytest.raises(type(failure), match="mine"):
        write_half(target, failure)
    assert names(tmp_path) == (["result.txt"] if old else [])
    assert not old or target.read_text() == old


def test_an_interrupt_leaves_everything_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_half(tmp_path / "result.txt", KeyboardInterrupt())
    assert names(tmp_path) == []


def test_a_full_disk_is_told_in_one_line_and_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")
    with pytest.raises(IhgnnError) as caught:
        write_half(target, OSError(errno.ENOSPC, NO_SPACE))
    assert (
        str(caught.value)
        == f"Cannot write {target}: {NO_SPACE}. Free some space, or choose another path."
    )
    assert names(tmp_path) == ["result.txt"]
    assert target.read_text() == "old"


@pytest.mark.parametrize("step", ["mkdir", "touch", "replace"])
def test_a_disk_that_fills_up_at_any_step_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(Path, step, disk_full)
    target = tmp_path / "result.txt"
    with pytest.raises(IhgnnError, match=NO_SPACE), written_whole(target):
        pass
    monkeypatch.undo()
    assert names(tmp_path) == []


def test_a_durable_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")
    on_disk = []

    def fsync(descriptor: int) -> None:
        on_disk.append((os.fstat(descriptor).st_size, target.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    with written_whole(target, durable=True) as temporary:
        temporary.write_text("longer")
        assert on_disk == []
    assert on_disk == [(6, "old")]
    assert target.read_text() == "longer"
    with written_whole(target) as temporary:
        temporary.write_text("quick")
    assert len(on_disk) == 1


def test_a_durable_file_that_does_not_reach_the_disk_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")
    monkeypatch.setattr(os, "fsync", disk_full)
    with pytest.raises(IhgnnError, match=NO_SPACE), written_whole(target, durable=True) as half:
        half.write_text("new")
    assert names(tmp_path) == ["result.txt"]
    assert target.read_text() == "old"


@pytest.mark.parametrize("below", ["result.txt", "folder/result.txt"])
def test_a_parent_that_is_a_file_is_told(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("I am a file")
    target = tmp_path / "file" / below
    with pytest.raises(IhgnnError) as caught, written_whole(target):
        pytest.fail("the block must not run")
    assert str(caught.value).startswith(f"Cannot write {target}: ")
    assert str(caught.value).endswith(ADVICE)
    assert names(tmp_path) == ["file"]


def test_a_target_that_is_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IhgnnError, match="Cannot write"), written_whole(tmp_path / "folder"):
        pass
    assert names(tmp_path) == ["folder"]


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    with written_whole(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="permissions of Unix")
def test_an_old_files_permissions_stay(tmp_path: Path) -> None:
    target = tmp_path / "private.txt"
    target.write_text("old")
    target.chmod(0o600)
    with written_whole(target) as temporary:
        temporary.write_text("new")
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    with written_whole(pipe) as temporary:
        temporary.write_text("through")
    assert reader.communicate(timeout=PATIENCE)[0] == "through"
    assert pipe.is_fifo()


def test_a_folder_is_no_place_to_write_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a folder"), written_whole(tmp_path):
        raise AssertionError("not reached")


def test_what_was_half_written_by_a_killed_process_is_removed(tmp_path: Path) -> None:
    for name in (".ckpt-1-ab.part.pt", ".x-2-cd.part"):
        (tmp_path / name).write_text("half")
    (tmp_path / "ckpt.pt").write_text("whole")
    (tmp_path / "part.txt").write_text("mine")
    remove_parts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ckpt.pt", "part.txt"]


def test_a_lock_keeps_others_out_until_its_block_ends(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    (tmp_path / "file").touch()
    with (
        locked(tmp_path / "file"),
        pytest.raises(InputError, match="Another process"),
        locked(tmp_path / "file"),
    ):
        pass
    with locked(tmp_path / "file"):
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
    assert names(tmp_path) == ["lock"]


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IhgnnError, match="Cannot write"), exclusive(tmp_path / "none" / "lock"):
        pytest.fail("the block must not run")
    (tmp_path / "file").touch()
    with pytest.raises(IhgnnError, match="Cannot write"), try_lock(tmp_path / "file" / "lock"):
        pytest.fail("the block must not run")


def test_the_clock_of_a_folder_is_that_of_its_files_and_leaves_nothing(tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.touch()
    now = clock_of(tmp_path)
    after = tmp_path / "after"
    after.touch()
    assert before.stat().st_mtime <= now <= after.stat().st_mtime
    assert names(tmp_path) == ["after", "before"]


def test_a_clock_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(IhgnnError, match="Cannot write"):
        clock_of(tmp_path / "none")


@pytest.mark.parametrize("name", ["a.png", "new/er/a.png", "there.png"])
def test_a_place_that_can_be_written_is_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "there.png").touch()
    check_place(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["there.png"]


def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="it is a folder"):
        check_place(tmp_path)
    (tmp_path / "file").touch()
    for name in ("file/a.png", "file/new/a.png"):
        with pytest.raises(IhgnnError, match=r"a\.png: Not a directory\. Choose another path"):
            check_place(tmp_path / name)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for name in ("a.png", "new/a.png"):
        with pytest.raises(IhgnnError, match="Permission denied"):
            check_place(tmp_path / name)
