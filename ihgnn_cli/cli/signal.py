"""`ihgnn signal`: what is attainable on a data set before any network is trained."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.data.splits import Fold
    from ihgnn_cli.studies.signal.signal import Signal

_DEFAULT = "MUTAG"

EXAMPLES = examples(
    ("ihgnn signal MUTAG", "References, 1-WL ceiling, twins and a permutation test"),
    ("ihgnn signal IMDB-BINARY --group-twins", "Twins are never in training and test at once"),
    (
        "ihgnn signal BZR_MD --edge-labels --background-edge-label 1",
        "Bonds of molecules stored as complete graphs",
    ),
    ("ihgnn signal graphs.jsonl --permutations 0 --plot signal.png", "Without the test"),
)


def signal(
    data: options.DataArgument = None,
    split_file: Annotated[
        Path | None,
        option(
            "Data",
            "JSON file with published folds.",
            metavar="FILE",
            default="the folds of 'ihgnn crossval'",
        ),
    ] = None,
    edge_labels: options.EdgeLabels = None,
    background_edge_label: options.BackgroundEdgeLabel = None,
    edge_bins: options.EdgeBins = None,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    folds: Annotated[
        int | None,
        option(
            "Protocol",
            "Number of folds; with --split-file, the first N of the file.",
            default="10, or all in the file",
        ),
    ] = None,
    group_twins: options.GroupTwins = False,
    permutations: Annotated[
        int | None,
        option(
            "Protocol",
            "Shuffles of the classes in the permutation test, 40 or more; 0: no test.",
            default="1000, or 200 for more than 2,000 graphs",
        ),
    ] = None,
    seed: Annotated[int, option("Protocol", "Random seed of folds and shuffles.")] = 0,
    plot: Annotated[
        Path | None, options.figure("references, ceiling and permutation test in one picture")
    ] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Measure what is attainable on a data set before a network is trained.

    References are classifiers without a network, on the folds of 'ihgnn crossval'. The 1-WL ceiling
    is the best accuracy of any message-passing network. Twins are graphs that such a network cannot
    tell apart. The permutation test compares with shuffled classes.
    """
    name = data or _DEFAULT
    options.refuse_missing(name)
    from ihgnn_cli.cli import console
    from ihgnn_cli.report.figures import check_figure_path
    from ihgnn_cli.studies.signal.signal import check_permutations
    from ihgnn_cli.training.config import configure

    if plot is not None:
        check_figure_path(plot)
    if permutations is not None:
        check_permutations(permutations)
    config = configure(
        overrides={
            "dataset": name,
            "edge_labels": edge_labels,
            "background_edge_label": background_edge_label,
            "edge_bins": edge_bins,
            "seed": seed,
        }
    )
    from ihgnn_cli.display import in_steps
    from ihgnn_cli.studies.folds import make_folds
    from ihgnn_cli.studies.signal.signal import measure_signal
    from ihgnn_cli.training.loading import load_data

    _, graphs = load_data(config, console.access(data_root, offline), references=True)
    if graphs.edge_bins is not None and not quiet:
        console.note(graphs.edge_bins.sentence(edge_bins))
    made = make_folds(graphs, seed, file=split_file, folds=folds, group_twins=group_twins)
    if not quiet:
        console.note(
            f"Read {graphs.name}: {counted(len(graphs), 'graph')}, "
            f"{counted(graphs.num_edges, 'edge')}, {len(made)} folds. Fitting the references ..."
        )
    with in_steps(lambda step: console.work(step, quiet=quiet)) as tell:
        found = measure_signal(graphs, made, seed=seed, permutations=permutations, report=tell)
    if as_json:
        console.show_json(
            {
                "dataset": graphs.name,
                "graphs": len(graphs),
                "folds": len(made),
                "group_twins": group_twins,
                "edge_labels": bool(edge_labels),
                "background_edge_label": graphs.background_edge_label,
                "edge_bins": 0 if graphs.edge_bins is None else graphs.edge_bins.count,
                "seed": seed,
                "conclusion": found.conclusion,
                **asdict(found),
            }
        )
    else:
        _show(graphs, made, found, group_twins=group_twins)
    if plot is not None:
        from ihgnn_cli.report.signal import draw_signal

        draw_signal(graphs, found, plot, group_twins=group_twins)
        console.note(f"Wrote {plot}")
    if not as_json:
        asked = {
            "--folds": folds,
            "--split-file": split_file,
            "--seed": seed,
            "--background-edge-label": background_edge_label,
            "--edge-bins": edge_bins,
        }
        given = [each for option, value in asked.items() if value for each in (option, str(value))]
        given += ["--group-twins"] if group_twins else []
        given += ["--edge-labels"] if edge_labels else []
        console.next_steps(("crossval", name, "--recipe", "robust", *given))


def _show(
    graphs: "GraphDataset", folds: "tuple[Fold, ...]", found: "Signal", *, group_twins: bool
) -> None:
    from ihgnn_cli.cli import console
    from ihgnn_cli.report.layout import auc_text, percent, spread
    from ihgnn_cli.report.signal import (
        ceiling_lines,
        edge_lines,
        how_measured,
        permutation_lines,
        twin_lines,
    )
    from ihgnn_cli.studies.signal.references import below_majority_share, left_out_note

    how = how_measured(graphs, group_twins=group_twins)
    shown = console.table(
        f"{graphs.name}: references, mean ± std over {len(folds)} folds{how}",
        *("", "Accuracy %", "Balanced %", "ROC-AUC"),
    )
    for each in found.references:
        scores = each.scores
        shown.add_row(
            each.title,
            spread(scores.accuracy, scores.accuracy_std),
            percent(scores.balanced_accuracy),
            auc_text(scores.roc_auc),
        )
    console.show(shown)
    low = below_majority_share(found.references[0].scores.accuracy, found.majority_share)
    for note in (low, left_out_note(graphs)):
        if note is not None:
            console.show(note)
    for title, lines in (
        ("1-WL ceiling", ceiling_lines(found.ceiling)),
        ("Twins", twin_lines(found)),
        ("Permutation test", permutation_lines(found.permutation_test)),
        ("Edges", edge_lines(graphs)),
    ):
        if lines:
            console.show(title, style="bold")
            for line in lines:
                console.show(f"  {line}")
    console.show("")
    console.show(found.conclusion, style="bold")
