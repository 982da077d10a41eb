"""Exports a trained model to ONNX and compares both on graphs of the data set."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, dataset_of
from ihgnn_cli.data.access import Access
from ihgnn_cli.data.sources import locate, read, refuse_overwriting
from ihgnn_cli.deploy.onnx_model import SUFFIX, check_target
from ihgnn_cli.display import Display
from ihgnn_cli.errors import IhgnnError, InputError, SettingError, retold
from ihgnn_cli.models.archive import check_archive
from ihgnn_cli.models.conformal import check_alpha
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.settings import checked
from ihgnn_cli.training.folder import checkpoint_of
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.deploy.export import Export
    from ihgnn_cli.deploy.verification import Reference
    from ihgnn_cli.models.card import ModelCard
    from ihgnn_cli.models.ihgnn import IHGNN
    from ihgnn_cli.training.checkpoint import Checkpoint

DEFAULT_NAME = "model.onnx"


@in_python
def export(
    model: "Path | str | IHGNN",
    path: Path | str | None = None,
    *,
    like: Graphs | None = None,
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
    """Write a trained model as ONNX, and beside it its metadata and golden graphs.

    Args:
        model: the folder of a run or a search, a checkpoint (ckpt.pt), or an `IHGNN` that was
            trained in a loop of your own.
        path: the .onnx file; by default `model.onnx` beside the checkpoint.
        like: for an `IHGNN`, the data that it was trained on, as in `load_dataset`: labels, classes
            and m come from it, and the file is compared with the model on its graphs.
        layout: `"padded"` (matrices of one size) or `"sparse"` (lists of nodes and edges).
        max_nodes: a fixed size for the padded layout.
        conformal: calibrate prediction sets on the model's validation graphs, and add the output
            `prediction_set`; about this share of sets, such as 0.1, misses the class on average.
        verify: compare the file with the model, and write golden graphs.
        dataset: what to compare on, as in `load_dataset`; by default the model's own data.
        force: replace files that exist.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar while data is read, and a line before the export; by default in
            terminals and notebooks only.

    Raises:
        InputError: the model cannot be exported in this form, or the file exists.
        IhgnnError: the file's predictions differ from the model's; the file is removed.
    """
    # Report invalid arguments before loading torch.
    form = checked("layout", layout, Layout)
    if max_nodes is not None and form == Layout.SPARSE:
        raise InputError(
            "--max-nodes has no effect with --layout sparse, which does not pad. Drop one."
        )
    if max_nodes is not None and checked("max_nodes", max_nodes, int) < 1:
        raise SettingError("max_nodes", f"must be at least 1, not {max_nodes}.")
    if conformal is not None:
        check_alpha(conformal)
    if dataset is not None and not verify:
        raise InputError("--dataset is for the comparison, which --no-verify skips. Drop one.")
    display = Display(progress)
    where = access(data_root, offline, display)
    if not isinstance(model, str | Path):
        from ihgnn_cli.deploy.export import export_onnx

        if path is None or like is None or conformal is not None:
            raise InputError(
                "A model of your own loop takes a path and like=, the data that it was trained on; "
                "it has no validation graphs for conformal=."
            )
        target = Path(path)
        check_target(target, force=force)
        reference, own = _own(model, like, where)
        graphs = (own if dataset is None else dataset_of(dataset, where)) if verify else None
        return export_onnx(reference, target, form, nodes=max_nodes, graphs=graphs)
    if like is not None:
        raise InputError("like= is for an IHGNN of your own loop: a checkpoint knows its data.")
    if path is not None and Path(model).suffix.lower() == SUFFIX != Path(path).suffix.lower():
        raise InputError(
            f"{path} does not end in {SUFFIX}, but {model} does: the checkpoint comes first, "
            f"then the {SUFFIX} file to write. Swap the two."
        )
    source = checkpoint_of(Path(model))
    target = source.with_name(DEFAULT_NAME) if path is None else Path(path)
    outputs = check_target(target, force=force)
    check_archive(source)

    from ihgnn_cli.api.evaluate import also_chosen
    from ihgnn_cli.deploy.export import check_exportable, export_onnx
    from ihgnn_cli.deploy.verification import reference_of
    from ihgnn_cli.training.checkpoint import load_checkpoint

    loaded = load_checkpoint(source)
    check_exportable(reference_of(loaded).members, form)
    graphs = _graphs(loaded.card, dataset, outputs, where) if verify else None
    if conformal is not None:
        loaded = _with_sets(loaded, source, conformal, graphs, where)
    parts = counted(loaded.members, "member") if loaded.members > 1 else loaded.config.spec.title
    display.say(f"Exporting {parts} ...")
    done = export_onnx(reference_of(loaded), target, form, nodes=max_nodes, graphs=graphs)
    return replace(done, also_chosen="" if conformal is None else also_chosen(loaded.card, source))


def _own(model: "IHGNN", like: Graphs, where: Access) -> "tuple[Reference, GraphDataset]":
    """A model that was trained in a loop of its own, and its data."""
    from ihgnn_cli.deploy.verification import reference_of_model
    from ihgnn_cli.models.ihgnn import IHGNN
    from ihgnn_cli.models.own import card_of_model
    from ihgnn_cli.models.registry import find_model

    if not isinstance(model, IHGNN):
        raise InputError(f"Cannot export {type(model).__name__}. Give an IHGNN or a checkpoint.")
    data = dataset_of(like, where)
    card = card_of_model(model, data, str(like) if isinstance(like, str | Path) else "")
    return reference_of_model(model, find_model("ihgnn"), card), data


def _with_sets(
    checkpoint: "Checkpoint",
    path: Path,
    alpha: float,
    graphs: "GraphDataset | None",
    where: Access,
) -> "Checkpoint":
    """The checkpoint with a threshold of prediction sets in its card."""
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
