"""`ihgnn datasets`: list, check, fetch; from the shell, against a real server."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from refusals import assert_refused
from started import PATIENCE

from ihgnn_cli.data.sources import bundled_path


@pytest.fixture
def mutag_zip(zip_folder, tmp_path: Path) -> bytes:
    """MUTAG's bytes as the server would send them, under another name."""
    folder = tmp_path / "server" / "NCI1"
    folder.mkdir(parents=True)
    for file in bundled_path("MUTAG").glob("MUTAG_*.txt"):
        (folder / file.name.replace("MUTAG", "NCI1")).write_bytes(file.read_bytes())
    return zip_folder(folder).read_bytes()


def test_list_tells_what_is_where(ihgnn, write_tu) -> None:
    root = Path(os.environ["IHGNN_DATA"])
    write_tu("MINE", root / "MINE", A="1, 2\n", graph_indicator="1\n1\n", graph_labels="5\n")
    (root / "BROKEN.zip").write_bytes(b"not a zip")
    shown = ihgnn("datasets")
    assert shown.returncode == 0
    rows = {line.split()[0]: line for line in shown.stdout.splitlines() if line.split()}
    assert "bundled" in rows["MUTAG"]
    assert "data root" in rows["MINE"]
    assert "degree" in rows["MINE"]
    assert "unreadable" in rows["BROKEN"]
    assert "NCI1" not in rows
    assert "NCI1" in ihgnn("datasets", "--all").stdout
    local = json.loads(ihgnn("datasets", "--json").stdout)
    assert "NCI1" not in {each["name"] for each in local["datasets"]}
    listed = json.loads(ihgnn("datasets", "--all", "--json").stdout)
    entries = {each["name"]: each for each in listed["datasets"]}
    assert listed["data_root"] == str(root)
    assert entries["MUTAG"]["node_labels"] == 7
    assert entries["MINE"]["has_node_labels"] is False
    assert entries["NCI1"]["where"] == "download"
    assert entries["BROKEN"]["problem"]


def test_check_reports_the_first_problems_of_all_files(ihgnn, write_tu) -> None:
    folder = write_tu(
        A="1, 2\n2, 9\n", graph_indicator="1\n1\n2\n", graph_labels="1\n1\n", node_labels="0\n0\n"
    )
    result = ihgnn("datasets", "check", folder)
    assert result.returncode == 2
    for place in ("TINY_A.txt, line 2", "TINY_node_labels.txt: 2 lines"):
        assert place in result.stdout
    assert "2 problems" in result.stderr
    found = json.loads(ihgnn("datasets", "check", folder, "--json").stdout)
    assert found["ok"] is False
    assert [each["line"] for each in found["problems"]] == [2, None]
    assert all(each["remedy"] for each in found["problems"])


def test_check_says_what_a_valid_set_holds(ihgnn, write_tu) -> None:
    folder = write_tu(A="1, 2\n", graph_indicator="1\n1\n", graph_labels="1\n")
    result = ihgnn("datasets", "check", folder)
    assert result.returncode == 0
    assert "1 graph, 2 nodes, 1 edge, 1 node label, 1 class." in " ".join(result.stdout.split())
    assert "1 one-directional edge made undirected" in result.stdout
    assert json.loads(ihgnn("datasets", "check", folder, "--json").stdout)["ok"] is True


def test_fetch_downloads_once_and_later_commands_work_offline(ihgnn, server, mutag_zip) -> None:
    server.files["/NCI1.zip"] = mutag_zip
    result = ihgnn("datasets", "fetch", "NCI1")
    assert result.returncode == 0
    target = Path(os.environ["IHGNN_DATA"]) / "NCI1.zip"
    assert target.read_bytes() == mutag_zip
    del server.files["/NCI1.zip"]
    assert str(target) in ihgnn("datasets", "fetch", "NCI1").stdout
    assert ihgnn("homophily", "NCI1", "--offline").returncode == 0


def test_fetch_of_what_the_server_does_not_have(ihgnn, server) -> None:
    result = ihgnn("datasets", "fetch", "NCI1")
    assert (result.returncode, result.stdout) == (1, "")
    first, second = result.stderr.splitlines()
    assert "404" in first
    assert second.endswith("with --data-root FOLDER or IHGNN_DATA=FOLDER.")


@pytest.mark.skipif(os.name == "nt", reason="signals are of Unix")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_an_interrupted_download_leaves_nothing(
    command: str, server, mutag_zip, name: str, code: int
) -> None:
    server.files["/NCI1.zip"] = mutag_zip
    server.stalled.add("/NCI1.zip")
    # The tests may run with SIGINT ignored (a background job of a shell) or SIGHUP (nohup).
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)
    process = subprocess.Popen(
        [command, "datasets", "fetch", "NCI1"], stderr=subprocess.PIPE, text=True
    )
    signal.signal(number, before)
    assert server.half_sent.wait(PATIENCE)
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert said == "Error: Interrupted.\n"
    assert list(Path(os.environ["IHGNN_DATA"]).iterdir()) == []


def test_fetch_tries_every_name_and_tells_which_failed(ihgnn, server, mutag_zip) -> None:
    server.files["/NCI1.zip"] = mutag_zip
    result = ihgnn("datasets", "fetch", "PROTEINS", "NCI1", "--json")
    assert result.returncode == 1
    found = json.loads(result.stdout)
    assert [each["name"] for each in found["datasets"]] == ["NCI1"]
    assert [each["name"] for each in found["failed"]] == ["PROTEINS"]


@pytest.mark.parametrize("name", ["../x", "nope"])
def test_fetch_of_what_cannot_be_a_data_set_is_a_usage_error(ihgnn, name) -> None:
    assert_refused(ihgnn("datasets", "fetch", name), 2, f"'{name}'")
    mixed = ihgnn("datasets", "fetch", name, "MUTAG", "--json")
    assert mixed.returncode == 2
    assert [each["name"] for each in json.loads(mixed.stdout)["datasets"]] == ["MUTAG"]


def test_fetch_does_not_take_a_broken_file_for_the_data_set(ihgnn, mutag_zip) -> None:
    target = Path(os.environ["IHGNN_DATA"]) / "NCI1.zip"
    target.parent.mkdir()
    target.write_bytes(mutag_zip[:-100])
    result = ihgnn("datasets", "fetch", "NCI1")
    assert result.returncode == 2
    assert str(target) in result.stderr
    target.rename(target.with_name("NCI109.zip")).write_bytes(mutag_zip)
    assert "holds NCI1 instead of NCI109" in ihgnn("datasets", "fetch", "NCI109").stderr


def test_options_before_the_subcommand_are_not_lost_in_silence(ihgnn) -> None:
    result = ihgnn("datasets", "--json", "check", "MUTAG")
    assert result.returncode == 2
    assert "ihgnn datasets check" in result.stderr


def test_check_of_what_is_not_there(ihgnn) -> None:
    result = ihgnn("datasets", "check", "nowhere")
    assert (result.returncode, result.stdout) == (2, "")
    assert "No file or folder 'nowhere'" in result.stderr


def test_long_paths_are_not_broken_in_a_pipe(ihgnn, write_tu, tmp_path: Path) -> None:
    root = tmp_path / ("a long name " * 12).strip()
    write_tu("MINE", root / "MINE", A="1, 2\n", graph_indicator="1\n1\n", graph_labels="5\n")
    assert str(root / "MINE") in ihgnn("datasets", "fetch", "MINE", "--data-root", root).stdout
    assert str(root) in ihgnn("datasets", "--data-root", root).stdout
    assert str(root / "MINE") in ihgnn("homophily", "MINE", "--data-root", root).stdout


def test_check_stops_after_the_first_problems(ihgnn, write_tu) -> None:
    folder = write_tu(A="x\n" * 300, graph_indicator="1\n", graph_labels="1\n")
    result = ihgnn("datasets", "check", folder)
    assert result.stdout.count("1 value found") == 20
    assert "reading stopped here" in result.stdout


def test_synthetic_data_sets_are_named_listed_and_checked(ihgnn) -> None:
    assert "synthetic:homophily=0.3,graphs=500" in ihgnn("datasets").stdout
    checked = ihgnn("datasets", "check", "synthetic:graphs=20,homophily=.2")
    assert checked.returncode == 0
    assert "is valid: 20 graphs" in checked.stdout
    found = json.loads(
        ihgnn("datasets", "check", "synthetic:graphs=20,homophily=.2", "--json").stdout
    )
    assert found["name"] == "synthetic:homophily=0.2,graphs=20"
    assert found["path"] is None
    assert_refused(ihgnn("datasets", "check", "synthetic:graps=20"), 2, "Did you mean graphs?")
