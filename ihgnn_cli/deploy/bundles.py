"""What an export writes beside the file: a model card, and folders for Triton and MLflow."""

from dataclasses import dataclass
from pathlib import Path

from ihgnn_cli.deploy import mlflow_model, triton
from ihgnn_cli.deploy.folders import refuse_taken
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.deploy.readme import model_readme, result_of
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import written_whole


@dataclass(frozen=True)
class Bundles:
    """The paths to write."""

    readme: Path
    triton: Path | None
    """DIR/NAME"""
    mlflow: Path | None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All of them."""
        return tuple(each for each in (self.readme, self.triton, self.mlflow) if each is not None)


def planned_bundles(
    model: Path, triton_folder: Path | None, mlflow_folder: Path | None, *, force: bool
) -> Bundles:
    """Check what an export to `model` would write beside it; writes nothing.

    Raises:
        InputError: something is in the way (a former export only without `force`), or MLflow is
            not installed.
    """
    readme = model.with_suffix(".md")
    if readme.exists() and not force:
        raise InputError(f"{readme} already exists. Give another name, or use --force.")
    repository = None if triton_folder is None else triton_folder / model.stem
    if repository is not None:
        refuse_taken(repository, triton.CONFIG, force=force)
    if mlflow_folder is not None:
        refuse_taken(mlflow_folder, mlflow_model.MARKER, force=force)
        mlflow_model.refuse_without_mlflow()
    return Bundles(readme, repository, mlflow_folder)


def write_bundles(bundles: Bundles, model: Path, checkpoint: Path) -> None:
    """Write the model card and the folders of an exported file.

    Args:
        bundles: from `planned_bundles`.
        model: the exported file.
        checkpoint: what it was exported from; numbers come from its run.

    Raises:
        IhgnnError: something cannot be written.
    """
    classifier = load_onnx(model, "cpu")
    text = model_readme(model.stem, classifier, result_of(checkpoint, classifier.card))
    with written_whole(bundles.readme) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if bundles.triton is not None:
        triton.write_repository(model, classifier, bundles.triton, text)
    if bundles.mlflow is not None:
        mlflow_model.write_mlflow(model, classifier, bundles.mlflow, text)
