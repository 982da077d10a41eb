"""The HTTP service of an exported model: graphs as JSON, the Open Inference Protocol, metrics.

`docs/deploy.md` describes the addresses. Sizes are checked before anything is allocated for them.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_fastapi_instrumentator import Instrumentator
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ihgnn_cli import __version__
from ihgnn_cli.deploy.metadata import for_callers
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
from ihgnn_cli.deploy.page import example_lines, page_files
from ihgnn_cli.deploy.predictor import Predictor
from ihgnn_cli.deploy.protocol import HEADER_LENGTH, VERSION, InferRequest, Tensors
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.prediction import Answer, Failure, Origin

JSON, OCTETS = "application/json", "application/octet-stream"
# A batch is full at this number of nodes and edges.
_BATCH_SIZE = 1 << 18
# Requests that are read or wait for an answer; more get 503.
_MOST_WAITING = 256
# Bodies of all waiting requests together, in largest bodies; more get 503.
_MOST_BODIES = 4
# Larger bodies are decoded in a thread, so that other requests do not wait.
_LARGE = 1 << 16
_RETRY = {"Retry-After": "1"}
_CLOSE = {"Connection": "close"}
_NODES = {"padded": 2_000, "sparse": 100_000}
_log = logging.getLogger(__name__)

Work = TypeVar("Work")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What a request may take."""

    max_graphs: int = 1000
    """Graphs per request."""
    max_nodes: int | None = None
    """Nodes per graph; `None`: 2,000 padded, 100,000 sparse, and at least m."""
    max_body: int = 8 << 20
    """Bytes per request."""
    batch_size: int = 64
    """Graphs per batch."""
    timeout: float = 30.0
    """Seconds for a request to arrive, and for its answer."""


class RefusedError(Exception):
    """A request that is not answered, with the status and the reason."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers


class Graph(BaseModel):
    """A graph, as a line of JSON lines."""

    model_config = ConfigDict(extra="allow")
    edges: list[tuple[int, int]]
    node_labels: list[int | str] | None = None
    num_nodes: int | None = None
    node_attributes: list[list[float] | float] | None = None
    edge_labels: list[int | str] | None = None
    edge_attributes: list[list[float] | float] | None = None
    id: Any = None


class Predicted(BaseModel):
    """The answer to a graph: its class and probabilities, or an error."""

    model_config = ConfigDict(extra="allow")
    graph: int
    class_value: Annotated[str | None, Field(alias="class")] = None
    probabilities: dict[str, float] | None = None
    error: str | None = None


class Error(BaseModel):
    """Why a request is refused."""

    error: str


@dataclass(eq=False)
class _Waiting(Generic[Work, Result]):
    work: Work
    graphs: int
    size: int
    answer: "asyncio.Future[Result]"


@dataclass(eq=False)
class Batcher(Generic[Work, Result]):
    """Answers together what arrived while the batch before ran: larger batches under load.

    Args:
        run: takes the work of some requests and returns one result for each, in order. It runs in
            the executor; if it fails for several requests, each is tried alone.
    """

    run: Callable[[Sequence[Work]], Sequence[Result]]
    executor: ThreadPoolExecutor
    most_graphs: int
    observe: Callable[[int, float], None]
    waiting: list[_Waiting[Work, Result]] = field(default_factory=list)
    _task: "asyncio.Task[None] | None" = None

    async def answer(self, work: Work, graphs: int, size: int) -> Result:
        """Wait for the answer to a request of `graphs` graphs with `size` nodes and edges."""
        loop = asyncio.get_running_loop()
        request: _Waiting[Work, Result] = _Waiting(work, graphs, size, loop.create_future())
        self.waiting.append(request)
        if self._task is None:
            self._task = loop.create_task(self._answer_all())
        return await request.answer

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := self._next():
                start = time.monotonic()
                found = await loop.run_in_executor(self.executor, self._results, batch)
                self.observe(sum(each.graphs for each in batch), time.monotonic() - start)
                for each, result in zip(batch, found, strict=True):
                    if each.answer.done():  # the client has left, or the time is over
                        continue
                    if isinstance(result, Exception):
                        each.answer.set_exception(result)
                    else:
                        each.answer.set_result(result)
        finally:
            self._task = None

    def _next(self) -> list[_Waiting[Work, Result]]:
        """The requests of the next batch, which has at least one if any wait."""
        waiting = [each for each in self.waiting if not each.answer.done()]
        count = graphs = size = 0
        for each in waiting:
            graphs += each.graphs
            size += each.size
            if count and (graphs > self.most_graphs or size > _BATCH_SIZE):
                break
            count += 1
        self.waiting = waiting[count:]
        return waiting[:count]

    def _results(self, batch: Sequence[_Waiting[Work, Result]]) -> list[Result | Exception]:
        try:
            return list(self.run([each.work for each in batch]))
        except Exception as error:  # noqa: BLE001 - it belongs to the request that caused it
            if len(batch) == 1:
                return [error]
            return [self._results([each])[0] for each in batch]


@dataclass(frozen=True)
class _Graphs:
    """The graphs of a request; those that are too large are failures."""

    entries: list[Any]
    too_large: dict[int, Failure]
    allow_unknown: bool


class Service:
    """The endpoints of one loaded model."""

    def __init__(
        self, predictor: Predictor, name: str, limits: Limits, *, allow_unknown: bool = False
    ) -> None:
        self.predictor, self.name, self.limits = predictor, name, limits
        self.allow_unknown = allow_unknown
        classifier = predictor.classifier
        if not isinstance(classifier, OnnxClassifier):
            raise InputError("Only exported models can be served. Export the checkpoint.")
        self._metadata = for_callers(classifier.plain_metadata, left_out=("seen",))
        self.max_nodes = limits.max_nodes or max(
            _NODES[classifier.layout.value], predictor.card.max_nodes
        )
        self.tensors = Tensors(classifier, limits.max_graphs, self.max_nodes)
        self._waiting = self._bytes = 0
        self.registry = CollectorRegistry()
        self._count_graphs = Counter(
            "ihgnn_graphs", "Graphs by result.", ["result"], registry=self.registry
        )
        batch_graphs = Histogram(
            "ihgnn_batch_graphs",
            "Graphs per batch.",
            registry=self.registry,
            buckets=[4**power for power in range(7)],
        )
        batch_seconds = Histogram(
            "ihgnn_batch_seconds", "Time of the model per batch.", registry=self.registry
        )
        Gauge(
            "ihgnn_waiting_requests", "Requests that are read or wait.", registry=self.registry
        ).set_function(lambda: self._waiting)
        self._worker = ThreadPoolExecutor(1, "model")

        def observe(graphs: int, seconds: float) -> None:
            batch_graphs.observe(graphs)
            batch_seconds.observe(seconds)

        self._batches = Batcher(self._predicted, self._worker, limits.batch_size, observe)

    def app(self) -> FastAPI:
        """The application."""
        app = FastAPI(
            title=f"{self.name}: graph classification",
            version=__version__,
            docs_url=None,  # its page loads scripts from other servers
            redoc_url=None,
            responses={"default": {"model": Error}},
            exception_handlers={
                RefusedError: _refused,
                InputError: lambda _, error: _error(400, str(error)),
                HTTPException: lambda _, error: _error(error.status_code, str(error.detail)),
                RequestValidationError: lambda _, error: _error(422, str(error.errors()[0]["msg"])),
                ClientDisconnect: lambda *_: _error(400, "The client left."),
                Exception: _failed,
            },
        )
        Instrumentator(registry=self.registry, excluded_handlers=["/metrics"]).instrument(
            app
        ).expose(app, include_in_schema=False)
        app.post(
            "/predict",
            responses={
                200: {"model": Predicted | list[Predicted]},
                422: {"model": Error | list[Predicted]},
            },
            openapi_extra=_body(Graph, listed=True),
        )(self.predict)
        for path in ("/v2/health/live", "/v2/health/ready"):
            app.get(path)(_health)
        app.get("/v2")(self.server_metadata)
        for path in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
            app.get(path)(self.model_metadata)
            app.get(f"{path}/ready")(self.model_ready)
            app.post(f"{path}/infer", openapi_extra=_body(InferRequest))(self.infer)
        self._add_page(app)
        return app

    async def predict(self, request: Request, allow_unknown: bool = False) -> Response:
        """Classify a graph or a list of graphs; in a list, a bad graph has an error."""
        if _media_type(request) != JSON:
            raise RefusedError(415, f"Send the content type {JSON}.")
        with self._admitted() as taken:
            body = await self._body(request, taken)
            content = await _off_loop(len(body), _decoded, body)
            listed = content if isinstance(content, list) else [content]
            if not listed:
                raise RefusedError(422, "There are no graphs. Send 1 or more.")
            if len(listed) > self.limits.max_graphs:
                raise RefusedError(413, f"Send at most {self.limits.max_graphs:,} graphs.")
            found = await self._answers(listed, allow_unknown or self.allow_unknown)
        refused = sum(isinstance(each, Failure) for each in found)
        self._count_graphs.labels("answered").inc(len(found) - refused)
        self._count_graphs.labels("refused").inc(refused)
        status = 422 if refused == len(found) else 200
        entries = [each.as_entry() for each in found]
        if isinstance(content, list):
            return _json(entries, status)
        return _json({"error": entries[0]["error"]} if refused else entries[0], status)

    async def infer(self, name: str, request: Request, version: str = VERSION) -> Response:
        """Run the model on raw tensors, as JSON or with the binary data extension."""
        self._check_name(name, version)
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise RefusedError(403, "Pages of other sites cannot use this service.")
        with self._admitted() as taken:
            body = await self._body(request, taken)
            header = request.headers.get(HEADER_LENGTH)
            asked = await _off_loop(len(body), self.tensors.read, body, header)
            loop = asyncio.get_running_loop()
            run = loop.run_in_executor(self._worker, self.tensors.run, asked)
            found = await self._in_time(run)
        self._count_graphs.labels("answered").inc(len(found["logits"]))
        content, length = self.tensors.response(self.name, asked, found)
        if length is None:
            return Response(content, media_type=JSON)
        return Response(content, headers={HEADER_LENGTH: str(length)}, media_type=OCTETS)

    def server_metadata(self) -> dict[str, Any]:
        """What the server is."""
        return {"name": "ihgnn", "version": __version__, "extensions": ["binary_tensor_data"]}

    def model_metadata(self, name: str, version: str = VERSION) -> dict[str, Any]:
        """Names, types and shapes of the model's tensors."""
        self._check_name(name, version)
        return {
            "name": name,
            "versions": [VERSION],
            "platform": "onnxruntime_onnx",
            "inputs": [each.as_plain() for each in self.tensors.inputs.values()],
            "outputs": [each.as_plain() for each in self.tensors.outputs.values()],
        }

    def model_ready(self, name: str, version: str = VERSION) -> dict[str, Any]:
        """Whether the model can answer: it is loaded before the service starts."""
        self._check_name(name, version)
        return {"name": name, "ready": True}

    def _add_page(self, app: FastAPI) -> None:
        """The page that draws graphs, and what it reads."""
        examples = example_lines(self.predictor.card)

        def add(path: str, content: bytes | str, kind: str) -> None:
            headers = {"Cache-Control": "no-cache"}  # the service may have been updated

            async def send() -> Response:
                return Response(content, headers=headers, media_type=kind)

            app.get(path, include_in_schema=False)(send)

        add("/model.json", json.dumps(self._metadata), JSON)
        add("/examples.jsonl", examples, "application/jsonl")
        for path, (content, kind) in page_files().items():
            add(path, content, kind)

    async def _answers(self, listed: list[Any], allow_unknown: bool) -> list[Answer]:
        sizes = [_size_of(each) for each in listed]
        refused = {
            number: Origin(number, "request", id=listed[number].get("id")).failure(
                f"a graph of {nodes:,} nodes.",
                f"This service accepts up to {self.max_nodes:,} (--max-nodes).",
            )
            for number, (nodes, _) in enumerate(sizes)
            if nodes > self.max_nodes
        }
        work = _Graphs(listed, refused, allow_unknown)
        size = sum(nodes + edges for nodes, edges in sizes)
        return await self._in_time(self._batches.answer(work, len(listed), size))

    def _predicted(self, requests: Sequence[_Graphs]) -> list[list[Answer]]:
        """The answers of each request; the model runs once per value of `allow_unknown`."""
        found: dict[int, list[Answer]] = {}
        for allow in {each.allow_unknown for each in requests}:
            chosen = [n for n, each in enumerate(requests) if each.allow_unknown == allow]
            graphs = [
                graph
                for n in chosen
                for number, graph in enumerate(requests[n].entries)
                if number not in requests[n].too_large
            ]
            stream = self.predictor.stream(graphs, allow_unknown=allow, errors="return")
            for n in chosen:
                too_large = requests[n].too_large
                found[n] = [
                    too_large.get(number) or replace(next(stream), graph=number)
                    for number in range(len(requests[n].entries))
                ]
        return [found[n] for n in range(len(requests))]

    async def _in_time(self, answer: Awaitable[Result]) -> Result:
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await answer
        except TimeoutError:
            reason = f"No answer within {self.limits.timeout:g} s. Try again later."
            raise RefusedError(503, reason, _RETRY) from None

    @contextmanager
    def _admitted(self) -> Iterator[list[int]]:
        """Room for one request; the list collects the bytes that it holds."""
        if self._waiting >= _MOST_WAITING:
            raise RefusedError(503, f"{self._waiting} requests are waiting. Try again.", _RETRY)
        taken: list[int] = []
        self._waiting += 1
        try:
            yield taken
        finally:
            self._waiting -= 1
            self._bytes -= sum(taken)

    async def _body(self, request: Request, taken: list[int]) -> bytes:
        """The body of a request, whose bytes are counted as they arrive."""
        if request.headers.get("content-encoding", "identity") != "identity":
            raise RefusedError(415, "Compressed bodies are not supported.")
        most = self.limits.max_body
        too_large = RefusedError(413, f"Send at most {most / 2**20:g} MiB per request.", _CLOSE)
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > most:
            raise too_large
        parts = []
        try:
            async with asyncio.timeout(self.limits.timeout):
                async for part in request.stream():
                    parts.append(part)
                    taken.append(len(part))
                    self._bytes += len(part)
                    if sum(taken) > most:
                        raise too_large
                    if self._bytes > _MOST_BODIES * most:
                        raise RefusedError(503, "Too much is waiting. Try again.", _RETRY)
        except TimeoutError:
            reason = f"The request did not arrive within {self.limits.timeout:g} s."
            raise RefusedError(408, reason, _CLOSE) from None
        return b"".join(parts)

    def _check_name(self, name: str, version: str) -> None:
        if (name, version) != (self.name, VERSION):
            raise RefusedError(404, f"There is only the model {self.name}, version {VERSION}.")


def _health() -> dict[str, bool]:
    """Whether the server is there: it listens after the model is loaded."""
    return {"live": True, "ready": True}


def _size_of(graph: Any) -> tuple[int, int]:
    """Nodes and edges that an entry speaks of, before it is read: 0 where that cannot be told."""
    if not isinstance(graph, dict):
        return 0, 0
    lists = (graph.get("node_labels"), graph.get("node_attributes"))
    counts = [len(each) for each in lists if isinstance(each, list)]
    nodes = graph.get("num_nodes")
    edges = graph.get("edges")
    return (
        max([*counts, nodes if isinstance(nodes, int) else 0]),
        len(edges) if isinstance(edges, list) else 0,
    )


def _decoded(body: bytes) -> Any:
    """The JSON value of a body.

    Raises:
        RefusedError: it is not strict JSON.
    """
    try:
        return json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"The body is not JSON ({error}).") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


async def _off_loop(size: int, read: Callable[..., Result], *arguments: Any) -> Result:
    """What `read` makes of a body; a large one does not stop other requests meanwhile."""
    if size < _LARGE:
        return read(*arguments)
    return await asyncio.to_thread(read, *arguments)


def _media_type(request: Request) -> str:
    given: str = request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, status, headers, JSON)


def _error(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return _json({"error": reason}, status, headers)


def _refused(_: Request, error: RefusedError) -> Response:
    return _error(error.status, error.reason, error.headers)


def _failed(request: Request, error: Exception) -> Response:
    _log.error("%s failed", request.url.path, exc_info=error)
    return _error(500, "The model failed. The log of the service says why.")


def _body(model: type[BaseModel], *, listed: bool = False) -> dict[str, Any]:
    """The request body in the OpenAPI description."""
    schema = model.model_json_schema()
    defined = schema.pop("$defs", {})

    def inlined(part: Any) -> Any:
        if isinstance(part, list):
            return [inlined(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return inlined(defined[part["$ref"].rpartition("/")[2]])
        return {key: inlined(each) for key, each in part.items()}

    schema = inlined(schema)
    either = {"anyOf": [schema, {"type": "array", "items": schema}]} if listed else schema
    return {"requestBody": {"required": True, "content": {JSON: {"schema": either}}}}
