"""The service as an ASGI application."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ihgnn_cli import __version__
from ihgnn_cli.deploy.metadata import for_callers
from ihgnn_cli.deploy.onnx_model import OUTPUTS, OnnxClassifier
from ihgnn_cli.deploy.serving.batching import Batcher, BatchLimits
from ihgnn_cli.deploy.serving.encoded import Encoded, encoded, infer
from ihgnn_cli.deploy.serving.graphs import (
    LINES,
    Answered,
    Graphs,
    check_request_size,
    predict,
    read_graphs,
)
from ihgnn_cli.deploy.serving.metrics import CONTENT_TYPE, Metrics
from ihgnn_cli.deploy.serving.openapi import OCTETS, description
from ihgnn_cli.deploy.serving.page import example_lines, page_files
from ihgnn_cli.deploy.serving.requests import (
    JSON,
    RETRY,
    Admission,
    Intake,
    RefusedError,
    json_response,
    media_type,
)
from ihgnn_cli.deploy.serving.settings import BATCH_SIZE, ServeSettings
from ihgnn_cli.deploy.serving.tensors import (
    HEADER_LENGTH,
    Array,
    InferRequest,
    read_request,
    spec_of,
    written_response,
)
from ihgnn_cli.errors import InputError

VERSION = "1"
"""The version of the only model."""
_log = logging.getLogger(__name__)
_MODEL = "/v2/models/{name}"
_VERSIONS = "/versions/{version}"

# Browsers ask whether a file of the page has changed: the service may have been updated.
_NEWEST = {"Cache-Control": "no-cache"}
# Bodies from this size are read in a thread.
_LARGE = 1 << 16

P = ParamSpec("P")
T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
Answering = Callable[[Request, Admission], Awaitable[Response]]


class Service:
    """The endpoints of one loaded model."""

    def __init__(self, classifier: OnnxClassifier, name: str, settings: ServeSettings) -> None:
        self.classifier, self.name, self.settings = classifier, name, settings
        self.inputs = [spec_of(each) for each in classifier.session.get_inputs()]
        given = {each.name: each for each in classifier.session.get_outputs()}
        self.outputs = [spec_of(given[each]) for each in OUTPUTS if each in given]
        self.metrics = Metrics(name, classifier.card.dataset_name)
        self.intake = Intake(settings)
        self.metrics.waiting.set_function(lambda: self.intake.waiting)
        self.stopping = False
        self.document = description(name, classifier.card, settings, self.inputs, self.outputs)
        self.metadata = for_callers(classifier.plain_metadata, left_out=("seen",))

    def app(self) -> Starlette:
        """The application."""
        counted, answered = self._counted, self._answered
        routes = [
            *(
                Route(path, counted("page", partial(_file, *file)))
                for path, file in page_files().items()
            ),
            Route("/model.json", counted("/model.json", self._metadata)),
            Route("/examples.jsonl", counted("/examples.jsonl", self._examples)),
            Route("/openapi.json", counted("/openapi.json", self._openapi)),
            Route("/metrics", counted("/metrics", self._metrics)),
            Route("/predict", answered("/predict", self._predict), methods=["POST"]),
            Route("/v2", counted("/v2", self._server)),
            Route("/v2/health/live", counted("/v2/health/live", self._live)),
            Route("/v2/health/ready", counted("/v2/health/ready", self._ready)),
        ]
        for path in (_MODEL, _MODEL + _VERSIONS):
            routes += [
                Route(path, counted(path, self._model)),
                Route(f"{path}/ready", counted(f"{path}/ready", self._model_ready)),
                Route(f"{path}/infer", answered(f"{path}/infer", self._infer), methods=["POST"]),
            ]
        return Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: self._no_such_path},
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Start the worker thread; at the end, answer everything that was accepted."""
        settings = self.settings
        limits = BatchLimits(settings.batch_size, BATCH_SIZE, settings.batch_wait / 1000)
        with ThreadPoolExecutor(1, "model") as worker:
            self._graphs: Batcher[Graphs, Answered] = Batcher(
                partial(predict, self.classifier), limits, worker, self.metrics.batch
            )
            self._tensors: Batcher[Encoded, dict[str, Array]] = Batcher(
                partial(infer, self.classifier), limits, worker, self.metrics.batch
            )
            tasks = [
                asyncio.create_task(self._graphs.serve()),
                asyncio.create_task(self._tensors.serve()),
            ]
            yield
            self.stopping = True
            await self._graphs.finish()
            await self._tensors.finish()
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _counted(self, path: str, endpoint: Endpoint) -> Endpoint:
        """The endpoint, counted; no exception leaves it."""

        async def call(request: Request) -> Response:
            try:
                response = await endpoint(request)
            except RefusedError as error:
                response = error.response()
            except Exception as error:  # noqa: BLE001 - the service goes on
                _log.warning("%s failed: %s: %s", path, type(error).__name__, error)
                reason = "The model failed on this request; the service's log says why."
                response = RefusedError(500, reason).response()
            self.metrics.requests.labels(path, response.status_code).inc()
            return response

        return call

    def _answered(self, path: str, endpoint: Answering) -> Endpoint:
        """An endpoint that needs the model: admitted if there is room, answered in time."""
        seconds = self.metrics.seconds.labels(path)

        async def call(request: Request) -> Response:
            with self.intake.admitted() as admission, seconds.time():
                return await endpoint(request, admission)

        return self._counted(path, call)

    async def _metadata(self, _: Request) -> Response:
        return json_response(self.metadata)

    async def _examples(self, _: Request) -> Response:
        text = await asyncio.to_thread(example_lines, self.classifier.card)
        return Response(text, media_type=LINES[0])

    async def _openapi(self, _: Request) -> Response:
        return json_response(self.document)

    async def _metrics(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    async def _server(self, _: Request) -> Response:
        extensions = ["binary_tensor_data"]
        return json_response({"name": "ihgnn", "version": __version__, "extensions": extensions})

    async def _live(self, _: Request) -> Response:
        return json_response({"live": True})

    async def _ready(self, _: Request) -> Response:
        return json_response({"ready": not self.stopping}, 503 if self.stopping else 200)

    async def _model(self, request: Request) -> Response:
        self._check_name(request)
        return json_response(
            {
                "name": self.name,
                "versions": [VERSION],
                "platform": "onnxruntime_onnx",
                "inputs": [each.as_plain() for each in self.inputs],
                "outputs": [each.as_plain() for each in self.outputs],
            }
        )

    async def _model_ready(self, request: Request) -> Response:
        self._check_name(request)
        return json_response(
            {"name": self.name, "ready": not self.stopping}, 503 if self.stopping else 200
        )

    async def _predict(self, request: Request, admission: Admission) -> Response:
        allow = _flag(request, "allow_unknown")
        body = await admission.body(request)
        work = await _prepared(
            body, read_graphs, media_type(request), self.classifier, self.settings, allow
        )
        found = await self._in_time(self._graphs.answer(work, len(work.entries), work.size))
        self.metrics.graphs.labels("answered").inc(len(found.texts) - found.refused)
        self.metrics.graphs.labels("refused").inc(found.refused)
        return Response(found.body(), found.status, media_type=found.content_type)

    async def _infer(self, request: Request, admission: Admission) -> Response:
        self._check_name(request)
        kind = media_type(request)
        if kind not in ("", JSON, OCTETS):
            raise RefusedError(415, f"The content type {kind} is not supported. Send {JSON}.")
        body = await admission.body(request)
        header = request.headers.get(HEADER_LENGTH)
        asked, work = await _prepared(body, self._tensors_of, header)
        found = await self._in_time(self._tensors.answer(work, len(work.sizes), work.size))
        if not all(np.isfinite(found[name]).all() for name in asked.outputs):
            raise RefusedError(
                422, "The model's answer is not a number: the attributes are too large for it."
            )
        self.metrics.graphs.labels("answered").inc(len(work.sizes))
        typed = {each.name: (each.datatype, found[each.name]) for each in self.outputs}
        content, length = written_response(self.name, VERSION, asked, typed)
        if length is None:
            return Response(content, media_type=JSON)
        return Response(content, headers={HEADER_LENGTH: str(length)}, media_type=OCTETS)

    def _tensors_of(self, body: bytes, header: str | None) -> tuple[InferRequest, Encoded]:
        names = tuple(each.name for each in self.outputs)
        asked = read_request(body, header, self.inputs, names)
        work = encoded(asked.inputs, self.classifier)
        self._check_sizes(work)
        return asked, work

    def _check_sizes(self, work: Encoded) -> None:
        """Check the number of graphs and the size of each.

        Raises:
            RefusedError: one of them is too large.
        """
        most = self.settings.nodes_of(self.classifier)
        if len(work.sizes) > self.settings.max_graphs or work.sizes.max() > most:
            raise RefusedError(
                413,
                f"Send at most {self.settings.max_graphs:,} graphs of at most {most:,} nodes.",
            )
        check_request_size(work.size)
        try:
            self.classifier.refuse_too_large(work.sizes)
        except InputError as error:
            raise RefusedError(413, str(error)) from None

    async def _in_time(self, answer: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await answer
        except TimeoutError:
            reason = f"No answer within {self.settings.timeout:g} s. Try again later."
            raise RefusedError(503, reason, RETRY) from None

    def _check_name(self, request: Request) -> None:
        asked = request.path_params
        if asked["name"] != self.name or asked.get("version", VERSION) != VERSION:
            raise RefusedError(404, f"There is only the model {self.name}, version {VERSION}.")

    async def _no_such_path(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        self.metrics.requests.labels("other", error.status_code).inc()
        reason = f"{request.method} {request.url.path}: {error.detail}. See / and /openapi.json."
        return RefusedError(error.status_code, reason, dict(error.headers or {})).response()


async def _file(content: bytes, kind: str, _: Request) -> Response:
    return Response(content, headers=_NEWEST, media_type=kind)


async def _prepared(
    body: bytes, read: Callable[Concatenate[bytes, P], T], *args: P.args, **named: P.kwargs
) -> T:
    """What `read` makes of a body; a large one does not stop other requests meanwhile."""
    if len(body) < _LARGE:
        return read(body, *args, **named)
    return await asyncio.to_thread(read, body, *args, **named)


def _flag(request: Request, name: str) -> bool:
    given = request.query_params.get(name, "false").lower()
    if given not in ("true", "false", "1", "0"):
        raise RefusedError(400, f"{name} must be true or false.")
    return given in ("true", "1")
