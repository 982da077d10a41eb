"""`ihgnn datasets`: list, check and download data sets."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ihgnn_cli.cli.help import Command, Group, argument, examples, option
from ihgnn_cli.cli.options import AsJson, DataRoot, Offline, complete_dataset
from ihgnn_cli.errors import DataError, IhgnnError, InputError
from ihgnn_cli.words import counted, file_size

if TYPE_CHECKING:
    from ihgnn_cli.data.listing import Listed


app = typer.Typer(
    cls=Group,
    invoke_without_command=True,
    epilog=examples(
        ("ihgnn datasets --all", "All data sets, including those to download"),
        ("ihgnn datasets fetch PROTEINS NCI1", "Download two for later use"),
        ("ihgnn datasets check graphs.jsonl", "Find mistakes in a file"),
    ),
)


@app.callback()
def list_datasets(
    context: typer.Context,
    data_root: DataRoot = None,
    downloadable: Annotated[
        bool, option("Output", "Also list the data sets that can be downloaded.", "--all")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List, check and download data sets."""
    if context.invoked_subcommand is not None:
        if downloadable or as_json or data_root is not None:
            name = context.invoked_subcommand
            raise InputError(f"Put the options after the command: ihgnn datasets {name} ...")
        return
    from ihgnn_cli.cli import console
    from ihgnn_cli.data.listing import list_downloadable, list_local
    from ihgnn_cli.data.synthetic_spec import EXAMPLE
    from ihgnn_cli.paths import data_root as resolved

    root = resolved(data_root)
    local = list_local(root)
    remote = list_downloadable({each.name for each in local})
    shown = [*local, *(remote if downloadable else [])]
    if as_json:
        entries = [asdict(each) for each in shown]
        console.show_json({"data_root": root, "datasets": entries})
        return
    console.show(_table(shown))
    if not downloadable:
        console.show(f"{len(remote)} more can be downloaded by name: ihgnn datasets --all")
    console.show(f"Synthetic data sets have any homophily you choose: {EXAMPLE}")
    console.show(f"Data root: {root}")
    for each in local:
        if each.shadowed:
            console.note(f"{each.path} is not used: another {each.name} takes precedence.")
        if each.problem:
            console.note(f"{each.path}: {each.problem}")


def _table(entries: "list[Listed]") -> object:
    from ihgnn_cli.cli import console

    found = console.table(
        None, "Name", "Where", "Size", "Graphs", "Classes", "Node labels", "Attributes"
    )
    for each in entries:
        if each.problem:
            found.add_row(each.name, "unreadable")
            continue
        if each.has_node_labels:
            labels = "yes" if each.node_labels is None else f"{each.node_labels:,}"
        else:
            labels = "degree"
        found.add_row(
            each.name,
            "not used" if each.shadowed else each.where,
            "" if each.size_bytes is None else file_size(each.size_bytes),
            f"{each.graphs:,}",
            f"{each.classes:,}" if each.classes else "none",
            labels,
            f"{each.node_attributes or ''}",
        )
    return found


@app.command(
    cls=Command, epilog=examples(("ihgnn datasets check graphs.jsonl", "A file of graphs"))
)
def check(
    path: Annotated[
        str,
        argument(
            "PATH", "A TU folder or zip, .jsonl file, .csv of SMILES, local name, or synthetic:..."
        ),
    ],
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Read a data set and report all its problems."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.data import features
    from ihgnn_cli.data.json_graph import meant_by
    from ihgnn_cli.data.sources import Origin, locate_file, read
    from ihgnn_cli.report.homophily import reading_remarks

    source = locate_file(path, data_root=data_root)
    place = None if source.origin == Origin.SYNTHETIC else source.path
    try:
        dataset = read(source, console.ProgressDisplay(), classes=False)
    except DataError as error:
        if as_json:
            problems = [asdict(problem) for problem in error.problems]
            console.show_json(
                {"path": place, "ok": False, "count": len(problems), "problems": problems}
            )
        else:
            for problem in error.problems:
                console.show(f"{problem.where}: {problem.message}\n    {problem.remedy}")
            console.error(f"{counted(len(error.problems), 'problem')} in {path}")
        raise typer.Exit(DataError.exit_code) from None
    if as_json:
        console.show_json(
            {
                "path": place,
                "ok": True,
                "problems": [],
                "name": dataset.name,
                "graphs": len(dataset),
                "nodes": dataset.num_nodes,
                "edges": dataset.num_edges,
                "node_labels": len(dataset.label_values),
                "label_source": dataset.label_source,
                "classes": dataset.class_values,
                "reading": asdict(dataset.notes),
                "unread": features.unread(dataset),
                "fingerprint": dataset.fingerprint,
            }
        )
        return
    classes = len(dataset.class_values)
    valid = "is valid" if classes else "has no classes; it is valid for 'ihgnn predict'"
    console.show(
        f"{path} {valid}: {counted(len(dataset), 'graph')}, "
        f"{counted(dataset.num_nodes, 'node')}, {counted(dataset.num_edges, 'edge')}, "
        f"{counted(len(dataset.label_values), 'node label')}, "
        f"{classes:,} {'class' if classes == 1 else 'classes'}."
    )
    if not classes:
        remedy = meant_by("class", dataset.notes.ignored_keys) or "Add one for each graph."
        console.show(f"- Training needs classes. {remedy}")
    unread = features.unread(dataset)
    for line in [*reading_remarks(dataset), *([unread] if unread else [])]:
        console.show(f"- {line}")
    if classes:
        console.next_steps(("homophily", path), *([("train", path)] if classes > 1 else []))


@app.command(
    cls=Command,
    epilog=examples(("ihgnn datasets fetch PROTEINS NCI1", "Two data sets of the TU server")),
)
def fetch(
    names: Annotated[
        list[str],
        argument("NAME", "Names of data sets on the TU server.", autocompletion=complete_dataset),
    ],
    data_root: DataRoot = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Download data sets for later use offline."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.data.download import check_whole
    from ihgnn_cli.data.sources import Origin, locate_by_name

    fetched: list[dict[str, object]] = []
    failed: list[dict[str, str]] = []
    code = 0
    for name in names:
        try:
            source = locate_by_name(name, console.access(data_root, offline))
            if source.origin == Origin.DATA_ROOT and source.path.suffix == ".zip":
                check_whole(source.path, name)
        except IhgnnError as error:
            failed.append({"name": name, "error": str(error)})
            code = max(code, error.exit_code)
            console.error(str(error))
            continue
        place = None if source.origin == Origin.SYNTHETIC else source.path
        fetched.append({"name": name, "source": source.origin, "path": place})
        if not as_json:
            console.show(f"{name}: {source}")
    if as_json:
        console.show_json({"datasets": fetched, "failed": failed})
    elif fetched:
        first = str(fetched[0]["name"])
        console.next_steps(("homophily", first), ("train", first))
    if failed:
        raise typer.Exit(code)
