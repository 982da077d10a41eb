"""`ihgnn bench-export`: speed of an exported model on this machine."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.data.access import Access
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.deploy.onnx_model import OnnxClassifier
    from ihgnn_cli.deploy.speed import Speed
    from ihgnn_cli.models.card import ModelCard

_BATCH_SIZES = (1, 32, 256)


EXAMPLES = examples(
    ("ihgnn bench-export model.onnx", "Batches of 1, 32 and 256 graphs"),
    ("ihgnn bench-export model.onnx --batch-size 1 --threads 1 --seconds 10", "Single graphs"),
)


def bench_export(
    model: options.ExportedModel,
    dataset: options.OtherData = None,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    batch_size: Annotated[
        list[int] | None,
        option(
            "Compute", "Graphs per batch; repeatable.", metavar="N", default="1, 32 and 256", min=1
        ),
    ] = None,
    seconds: Annotated[
        float, option("Compute", "Measuring time per batch size, after a warm-up.", min=0.01)
    ] = 3.0,
    threads: Annotated[
        int | None, option("Compute", "CPU threads.", default="chosen by onnxruntime", min=1)
    ] = None,
    device: options.Device = None,
    provider: options.Provider = None,
    io_binding: Annotated[
        bool,
        option(
            "Compute",
            "Keep inputs and outputs on the device; copying inputs counts as building them.",
            "--io-binding",
        ),
    ] = False,
    cuda_graph: Annotated[
        bool,
        option(
            "Compute",
            "Replay a recorded CUDA graph, with --io-binding. Needs a GPU and a model with "
            "fixed shapes (export --max-nodes N --batch N).",
            "--cuda-graph",
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Measure throughput and latency of an exported model on graphs of its data set."""
    options.refuse_missing(dataset, model, options.EXPORTED)
    from ihgnn_cli.cli import console
    from ihgnn_cli.deploy.onnx_model import load_onnx
    from ihgnn_cli.deploy.speed import measure
    from ihgnn_cli.training.devices import AUTO

    providers = options.chosen_providers(device, provider)
    chosen = device or ("cuda" if cuda_graph else AUTO)
    classifier = load_onnx(model, chosen, providers, threads, cuda_graph=cuda_graph)
    if chosen == AUTO and providers is None:
        _warn_of_fallback(classifier)
    graphs = _graphs(model, classifier.card, dataset, console.access(data_root, offline))
    found, bound = [], io_binding or cuda_graph
    fixed = classifier.described.batch
    sizes = dict.fromkeys(batch_size or (_BATCH_SIZES if fixed is None else (fixed,)))
    console.note(
        f"Measuring batches of {', '.join(map(str, sizes))} graphs, {seconds:g} s each ..."
    )
    for size in sizes:
        try:
            found.append(measure(classifier, graphs, size, seconds, io_binding=bound))
        except InputError as error:
            if not found:
                raise
            console.note(f"Batch size {size:,} is skipped. {error}")
    if as_json:
        console.show_json(
            {
                "model": model,
                "runs_on": classifier.runs_on,
                "threads": threads,
                "io_binding": bound,
                "cuda_graph": cuda_graph,
                "dataset": graphs.name,
                "graphs": len(graphs),
                "mean_nodes": graphs.num_nodes / len(graphs),
                "seconds": seconds,
                "speeds": [asdict(each) for each in found],
            }
        )
        return
    console.show(
        f"{model} on {graphs.name} ({len(graphs):,} graphs, {graphs.num_nodes / len(graphs):.1f} "
        f"nodes on average), on {classifier.runs_on}, {_threads_words(threads)}",
        style="bold",
    )
    _show(found)
    console.next_steps(("predict", model, dataset or classifier.card.dataset))


def _warn_of_fallback(classifier: "OnnxClassifier") -> None:
    """Warn if the machine has a GPU that onnxruntime could not start: it says nothing itself."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.deploy.providers import unused_gpu

    if unused_gpu(classifier.runs_on):
        console.warn(
            f"this machine has an NVIDIA GPU, but onnxruntime could not start it: the model runs "
            f"on {classifier.runs_on}. 'ihgnn env' shows the providers that load."
        )


def _graphs(model: Path, card: "ModelCard", given: str | None, where: "Access") -> "GraphDataset":
    """The graphs of `--dataset` or of the model's own data set, encoded for the model."""
    from ihgnn_cli.data.sources.source import locate, read
    from ihgnn_cli.inference.vocabulary import encode_dataset

    name = given or card.dataset
    if not name:
        raise InputError(
            f"{model} was trained on a file ({card.dataset_name}) whose place is not recorded. "
            "Give graphs with --dataset."
        )
    return encode_dataset(card, read(locate(name, where), where.progress)).dataset


def _threads_words(threads: int | None) -> str:
    return "threads chosen by onnxruntime" if threads is None else counted(threads, "thread")


def _show(found: "list[Speed]") -> None:
    from ihgnn_cli.cli import console

    model = console.table("Model: milliseconds per batch", "Batch", *_LATENCY, "Graphs per second")
    inputs = console.table(
        "Building its inputs: milliseconds per batch",
        "Batch",
        *_LATENCY,
        "Graphs per second with both",
    )
    for each in found:
        for table, latency, rate in (
            (model, each.model, each.graphs_per_second),
            (inputs, each.inputs, each.graphs_per_second_with_inputs),
        ):
            times = (latency.p50, latency.p90, latency.p99, latency.mean)
            cells = [f"{1000 * value:,.3f}" for value in times]
            table.add_row(f"{each.batch_size:,}", f"{each.batches:,}", *cells, f"{rate:,.0f}")
    console.show(model)
    console.show(inputs)


_LATENCY = ("Runs", "p50", "p90", "p99", "Mean")
