"""`ihgnn serve`: an exported model as an HTTP service."""

import re
from pathlib import Path
from typing import Annotated

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.errors import InputError

_EXTRA = ("fastapi", "h11", "prometheus_client", "prometheus_fastapi_instrumentator", "uvicorn")

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
    batch_size: Annotated[int, option("Compute", "Most graphs per batch.", min=1)] = 64,
    threads: Annotated[
        int | None,
        option("Compute", "CPU threads of the model.", default="chosen by onnxruntime", min=1),
    ] = None,
    device: options.Device = None,
    provider: options.Provider = None,
    max_graphs: Annotated[int, option("Limits", "Graphs per request.", min=1)] = 1000,
    max_nodes: Annotated[
        int | None,
        option(
            "Limits", "Nodes per graph.", default="at least m; 2,000 padded, 100,000 sparse", min=1
        ),
    ] = None,
    max_body: Annotated[
        int, option("Limits", "MiB per request.", metavar="MIB", min=1, max=1024)
    ] = 8,
    timeout: Annotated[
        int,
        option(
            "Limits",
            "Time for a request to arrive, and to answer it.",
            metavar="SECONDS",
            min=1,
            max=3600,
        ),
    ] = 30,
    as_json: options.AsJson = False,
) -> None:
    """Serve an exported model over HTTP.

    POST /predict takes graphs as JSON, /v2 is the Open Inference Protocol (KServe, Triton clients),
    /metrics is for Prometheus, and / is a page to draw graphs and see the answers. Requests that
    arrive while a batch is computed share the next one. Ctrl-C or SIGTERM stops the service after
    it has answered everything it accepted.
    """
    options.refuse_missing(None, model, options.EXPORTED)
    called = _checked_name(name, model)
    if model.suffix.lower() != ".onnx":
        raise InputError(f"{model} is not a .onnx file. Write one with: ihgnn export {model}")
    try:
        from ihgnn_cli.deploy import server
        from ihgnn_cli.deploy.service import Limits, Service
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in _EXTRA:
            raise
        raise InputError(
            f"{error.name} is not installed: pip install 'ihgnn-cli[serve]'"
        ) from error
    from ihgnn_cli.cli import console
    from ihgnn_cli.deploy.predictor import load

    providers = options.chosen_providers(device, provider)
    limits = Limits(max_graphs, max_nodes, max_body << 20, batch_size, timeout)
    listening = server.listen(host, port)
    with listening:
        predictor = load(model, device or "auto", providers, threads)
        service = Service(predictor, called, limits, allow_unknown=allow_unknown)
        url = server.url_of(host, listening)

        def announce() -> None:
            if as_json:
                told = {"url": url, "name": called, "model": model, "runs_on": predictor.runs_on}
                console.show_json(told)
            else:
                console.show(f"{called} on {predictor.runs_on}: {url}")
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
