"""`ihgnn serve`: an exported model as an HTTP service."""

import re
from pathlib import Path
from typing import Annotated

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.errors import InputError

_EXTRA = ("starlette", "uvicorn", "prometheus_client")

EXAMPLES = examples(
    ("ihgnn serve model.onnx", "Serve on http://127.0.0.1:8000"),
    ("ihgnn serve model.onnx --host 0.0.0.0 --port 80", "Serve other machines"),
    ("ihgnn serve model.onnx --port 0 --json", "A free port, announced as JSON"),
)


def serve(
    model: options.ExportedModel,
    host: Annotated[
        str, option("Service", "Address to listen on; 0.0.0.0 for all.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, option("Service", "Port; 0 chooses a free one.", min=0, max=65535)] = 8000,
    name: Annotated[
        str | None,
        option(
            "Service", "Name of the model in /v2/models/NAME.", metavar="NAME", default="file name"
        ),
    ] = None,
    allow_unknown: options.AllowUnknown = False,
    batch_size: Annotated[int, option("Compute", "A batch starts at this number of graphs.")] = 64,
    batch_wait: Annotated[
        float,
        option(
            "Compute",
            "Milliseconds that a request waits for others to share its batch.",
            metavar="MS",
        ),
    ] = 2.0,
    threads: Annotated[
        int | None,
        option("Compute", "CPU threads of the model.", default="chosen by onnxruntime", min=1),
    ] = None,
    device: options.Device = None,
    provider: options.Provider = None,
    max_graphs: Annotated[int, option("Limits", "Graphs per request.")] = 1000,
    max_nodes: Annotated[
        int | None,
        option("Limits", "Nodes per graph.", default="at least m; 2,000 padded, 100,000 sparse"),
    ] = None,
    max_body: Annotated[float, option("Limits", "MiB per request.", metavar="MIB")] = 8.0,
    max_waiting: Annotated[int, option("Limits", "Requests that may wait; more get 503.")] = 256,
    timeout: Annotated[
        float, option("Limits", "Time to receive a request, and to answer it.", metavar="SECONDS")
    ] = 30.0,
    as_json: options.AsJson = False,
) -> None:
    """Serve an exported model over HTTP.

    POST /predict takes graphs as JSON, /v2 is the Open Inference Protocol (KServe, Triton clients),
    /metrics is for Prometheus, and / is a page to draw graphs and see the answers. Concurrent
    requests share batches. Ctrl-C or SIGTERM stops the service after it has answered everything
    it accepted.
    """
    options.refuse_missing(None, model, options.EXPORTED)
    from ihgnn_cli.deploy.serving.settings import ServeSettings

    settings = ServeSettings(
        batch_size=batch_size,
        batch_wait=batch_wait,
        max_graphs=max_graphs,
        max_nodes=max_nodes,
        max_body=max_body,
        max_waiting=max_waiting,
        timeout=timeout,
        allow_unknown=allow_unknown,
    )
    called = _checked_name(name, model)
    if model.suffix.lower() != ".onnx":
        raise InputError(f"{model} is not a .onnx file. Write one with: ihgnn export {model}")
    try:
        from ihgnn_cli.deploy.serving import server
        from ihgnn_cli.deploy.serving.app import Service
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in _EXTRA:
            raise
        raise InputError(
            f"{error.name} is not installed: pip install 'ihgnn-cli[serve]'"
        ) from error
    from ihgnn_cli.cli import console
    from ihgnn_cli.deploy.onnx_model import load_onnx
    from ihgnn_cli.training.devices import AUTO

    providers = options.chosen_providers(device, provider)
    listening = server.listen(host, port)
    with listening:
        classifier = load_onnx(model, device or AUTO, providers, threads)
        service = Service(classifier, called, settings)
        url = server.url_of(host, listening)

        def announce() -> None:
            if as_json:
                told = {"url": url, "name": called, "model": model, "runs_on": classifier.runs_on}
                console.show_json(told)
            else:
                console.show(f"{called} on {classifier.runs_on}: {url}")
            console.out.file.flush()
            if not server.is_loopback(host):
                console.warn(
                    "other machines can reach this service. It has no passwords and no "
                    "encryption: put a reverse proxy in front of it."
                )
            console.note("Press Ctrl-C to stop.")

        server.run(service, listening, announce)
    console.note("Stopped.")


def _checked_name(given: str | None, model: Path) -> str:
    """The name of the model in addresses.

    Raises:
        InputError: it has characters that do not belong there.
    """
    if given is None:
        return re.sub(r"[^A-Za-z0-9._-]", "-", model.stem) or "model"
    if not re.fullmatch(r"[A-Za-z0-9._-]+", given):
        raise InputError(f"--name '{given}' must consist of letters, digits, '.', '_' and '-'.")
    return given
