"""A service in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # the extra may be missing
    from ihgnn_cli.deploy.onnx_model import OnnxClassifier
    from ihgnn_cli.deploy.serving.app import Service
    from ihgnn_cli.deploy.serving.settings import ServeSettings

Send = Callable[..., Any]


@pytest.fixture(scope="session")
def padded(mutag_model) -> "OnnxClassifier":
    from ihgnn_cli.deploy.onnx_model import load_onnx

    return load_onnx(mutag_model.exported, "cpu", threads=1)


@pytest.fixture(scope="session")
def sparse_file(mutag_model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from ihgnn_cli import export

    path = tmp_path_factory.mktemp("sparse") / "sparse.onnx"
    export(mutag_model.checkpoint, path, layout="sparse", verify=False)
    return path


@pytest.fixture(scope="session")
def sparse(sparse_file: Path) -> "OnnxClassifier":
    from ihgnn_cli.deploy.onnx_model import load_onnx

    return load_onnx(sparse_file, "cpu", threads=1)


@pytest.fixture(params=["padded", "sparse"])
def classifier(request: pytest.FixtureRequest) -> "OnnxClassifier":
    return request.getfixturevalue(request.param)


@pytest.fixture
def service(classifier: "OnnxClassifier") -> "Service":
    from ihgnn_cli.deploy.serving.app import Service
    from ihgnn_cli.deploy.serving.settings import ServeSettings

    return Service(classifier, "mutag", ServeSettings())


@pytest.fixture
def send(padded: "OnnxClassifier") -> Send:
    """Send one request to a service with these settings."""
    from service_client import talk

    from ihgnn_cli.deploy.serving.app import Service
    from ihgnn_cli.deploy.serving.settings import ServeSettings

    def request(method: str, path: str, *, settings: "ServeSettings | None" = None, **body: Any):
        service = Service(padded, "mutag", settings or ServeSettings())
        return talk(service, lambda client: client.request(method, path, **body))

    return request
