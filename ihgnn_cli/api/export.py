"""Exports a checkpoint to ONNX and compares both on graphs of the data set."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, dataset_of
from ihgnn_cli.data.access import Access
from ihgnn_cli.data.sources import locate, read, refuse_overwriting
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.onnx_model import SUFFIX, check_target
from ihgnn_cli.display import Display
from ihgnn_cli.errors import IhgnnError, InputError, retold
from ihgnn_cli.models.archive import check_archive
from ihgnn_cli.models.conformal import check_alpha
from ihgnn_cli.training.folder import checkpoint_of
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.deploy.export import Export
    from ihgnn_cli.models.card import ModelCard
    from ihgnn_cli.training.checkpoint import Checkpoint

DEFAULT_NAME = "model.onnx"


@in_python
def export(
    checkpoint: Path | str,
    path: Path | str | None = None,
    *,
    layout: Layout | str = Layout.PADDED,
    max_nodes: int | None = None,
    conformal: float | None = None,
    verify: bool = True,
    dataset: Graphs | None = None,
    force: bool = False,
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> "Export":
    """Write a checkpoint as ONNX, and beside it its metadata and golden vectors.

    Args:
        checkpoint: the folder of a run or a search, or a checkpoint (ckpt.pt).
        path: the .onnx file; by default `model.onnx` beside the checkpoint.
        layout: `"padded"` (matrices of one size) or `"sparse"` (lists of nodes and edges).
        max_nodes: a fixed size for the padded layout.
        conformal: calibrate prediction sets on the model's validation graphs, and add the output
            `prediction_set`; about this share of sets, such as 0.1, misses the class on average.
        verify: compare the file with the checkpoint, and write golden vectors.
        dataset: what to compare on, as in `load_dataset`; by default the model's own data.
        force: replace files that exist.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar while data is read, and a line before the export; by default in
            terminals and notebooks only.

    Raises:
        InputError: the checkpoint cannot be exported in this form, or the file exists.
        IhgnnError: the file's predictions differ from the checkpoint's; the file is removed.
    """
    # Report invalid arguments before loading torch.
    form = Form(layout, max_nodes)  # type: ignore[arg-type]
    if conformal is not None:
        check_alpha(conformal)
    if path is not None and Path(checkpoint).suffix.lower() == SUFFIX != Path(path).suffix.lower():
        raise InputError(
            f"{path} does not end in {SUFFIX}, but {checkpoint} does: the checkpoint comes first, "
            f"then the {SUFFIX} file to write. Swap the two."
        )
    source = checkpoint_of(Path(checkpoint))
    target = source.with_name(DEFAULT_NAME) if path is None else Path(path)
    outputs = check_target(target, force=force)
    if dataset is not None and not verify:
        raise InputError("--dataset is for the comparison, which --no-verify skips. Drop one.")
    check_archive(source)

    from ihgnn_cli.api.evaluate import also_chosen
    from ihgnn_cli.deploy.cases import cases_of
    from ihgnn_cli.deploy.export import check_exportable, export_onnx
    from ihgnn_cli.deploy.golden_vectors import candidates
    from ihgnn_cli.training.checkpoint import load_checkpoint

    loaded = load_checkpoint(source)
    check_exportable(loaded, form)
    display = Display(progress)
    cases, golden, graphs = [], [], None
    where = access(data_root, offline, display)
    if verify:
        graphs = _graphs(loaded.card, dataset, outputs, where)
    if conformal is not None:
        loaded = _with_sets(loaded, source, conformal, graphs, where)
    parts = counted(loaded.members, "member") if loaded.members > 1 else loaded.config.spec.title
    display.say(f"Exporting {parts} ...")
    if graphs is not None:
        cases = cases_of(loaded, graphs, form.nodes)
        golden = candidates(loaded, graphs, form)
    done = export_onnx(loaded, target, form, cases, golden)
    chosen = "" if conformal is None else also_chosen(loaded.card, source)
    return replace(done, also_chosen=chosen)


def _with_sets(
    checkpoint: "Checkpoint",
    path: Path,
    alpha: float,
    graphs: "GraphDataset | None",
    where: Access,
) -> "Checkpoint":
    """The checkpoint with thresholds of prediction sets in its card."""
    from ihgnn_cli.api.evaluate import calibrate_model
    from ihgnn_cli.training.classifier import TorchClassifier
    from ihgnn_cli.training.devices import resolve_device

    classifier = TorchClassifier(checkpoint, resolve_device("cpu"))
    found = calibrate_model(path, classifier, alpha, graphs, where)
    return replace(checkpoint, card=replace(checkpoint.card, conformal=found))


def _graphs(
    card: "ModelCard",
    given: Graphs | None,
    outputs: list[Path],
    where: Access,
) -> "GraphDataset":
    if given is not None and not isinstance(given, str | Path):
        return dataset_of(given)
    try:
        name = card.dataset if given is None else str(given)
        if not name:
            raise InputError(f"the model stores no path of its data ({card.dataset_name}).")
        source = locate(name, where)
        graphs = read(source, where.progress)
    except IhgnnError as error:
        raise retold(
            error,
            f"There is no data to compare on: {error}\n"
            "Name it with --dataset, or export without comparing (--no-verify).",
        ) from error
    refuse_overwriting(outputs, [source])
    return graphs
