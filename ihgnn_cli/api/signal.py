"""What is attainable on a data set, from the graphs to the measures."""

from pathlib import Path

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, configured, dataset_of
from ihgnn_cli.display import Display, in_steps
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.signal.signal import Signal, measure_signal
from ihgnn_cli.training.loading import load_data


@in_python
def signal(
    dataset: Graphs = "MUTAG",
    *,
    folds: int | None = None,
    split_file: Path | str | None = None,
    group_twins: bool = False,
    edge_labels: bool = False,
    background_edge_label: str = "",
    edge_bins: int = 0,
    permutations: int | None = None,
    seed: int = 0,
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> Signal:
    """Measure what is attainable on a data set before a network is trained (docs/signal.md).

    Args:
        dataset: as in `load_dataset`.
        folds: number of folds; 10 by default.
        split_file: JSON file with the folds, in the published format.
        group_twins: draw folds that keep graphs with the same 1-WL colouring together.
        edge_labels: tell edges apart by label.
        background_edge_label: leave out edges with this label.
        edge_bins: tell edges apart by this many bins of the edge attribute.
        permutations: shuffles of the classes; by default 1,000, or 200 for more than 2,000 graphs.
            With 0 there is no permutation test.
        seed: random seed of folds and shuffles.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar; by default in terminals and notebooks only.

    Raises:
        InputError: an argument or the data is not valid.
    """
    display = Display(progress)
    edges = {
        "edge_labels": edge_labels,
        "background_edge_label": background_edge_label,
        "edge_bins": edge_bins,
    }
    config = configured({**edges, "seed": seed}, call=signal)
    data = dataset_of(dataset, access(data_root, offline, display))
    _, data = load_data(config, dataset=data, references=True)
    file = None if split_file is None else Path(split_file)
    made = make_folds(data, seed, file=file, folds=folds, group_twins=group_twins)
    with in_steps(display.work) as tell:
        return measure_signal(data, made, seed=seed, permutations=permutations, report=tell)
