"""The page at `/`: the one of examples/web, which asks the service instead of WebAssembly."""

from importlib.resources import files
from pathlib import Path

from ihgnn_cli.data.jsonl import lines
from ihgnn_cli.data.sources import BUNDLED, load_dataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.vocabulary import with_model_edges
from ihgnn_cli.models.card import ModelCard

# Folders of the page: the encoder for Node.js reads and checks graphs.
_FOLDERS = ("web", "node")
_TYPES = {".css": "text/css", ".html": "text/html", ".mjs": "text/javascript"}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Content and type of each file of the page, by the path of its address."""
    package = Path(str(files("ihgnn_cli")))
    installed = package / "page"
    # In a checkout, the files of the repository.
    source = installed if installed.is_dir() else package.parent / "examples"
    found = {
        f"/page/{folder}/{file.name}": (file.read_bytes(), _TYPES[file.suffix])
        for folder in _FOLDERS
        for file in (source / folder).iterdir()
        if file.suffix in _TYPES
    }
    page, kind = found.pop("/page/web/index.html")
    asking = page.replace(b'data-engine="wasm"', b'data-engine="service"')
    return {**found, "/": (asking.replace(b'="./', b'="page/web/'), kind)}


def example_lines(card: ModelCard) -> str:
    """The graphs of the model's data as JSON lines if the package has them, otherwise nothing."""
    if card.dataset_name not in BUNDLED:
        return ""
    data = load_dataset(card.dataset_name)
    try:
        own = with_model_edges(card, data).fingerprint == card.fingerprint
    except InputError:  # other data of this name, with other edge labels
        own = False
    return "".join(lines(data)) if own else ""
