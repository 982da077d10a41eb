"""The small model of MUTAG that the examples share is what their pages say."""

from elsewhere import BUNDLED, EXAMPLES, entries_of

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.deploy.golden import check_golden
from ihgnn_cli.deploy.predictor import load

GRAPHS = BUNDLED.with_name("mutag.jsonl")


def test_its_graphs_are_those_of_mutag() -> None:
    data = load_dataset("MUTAG")
    listed = from_graphs(entries_of(GRAPHS))
    for column in ("node_ptr", "neighbors", "node_label", "graph_class"):
        assert getattr(listed, column).tolist() == getattr(data, column).tolist(), column


def test_its_accuracy_is_the_stated_one() -> None:
    model = load(BUNDLED, "cpu")
    graphs = entries_of(GRAPHS)
    test = model.card.split.test.tolist()
    found = model.predict([graphs[each] for each in test])
    right = [
        mine.class_value == graphs[each]["class"] for mine, each in zip(found, test, strict=True)
    ]
    readme = (EXAMPLES / "web" / "README.md").read_text(encoding="utf-8")
    assert len(test) == 19
    assert f"Test accuracy: {100 * sum(right) / 19:.1f} %" in readme


def test_its_golden_file_is_its_own() -> None:
    assert check_golden(BUNDLED, "CPUExecutionProvider").passed
