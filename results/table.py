"""Writes the tables of measured results into the README and the pages of docs/.

    python results/table.py          rewrite the tables
    python results/table.py --check  exit with 1 if a page differs from the stored results

A table stands between the lines `<!-- results: NAME -->` and `<!-- end of results -->`. It needs
no data set: the files beside this script hold the scores of every cross-validation, and how many
of its final runs classified each graph correctly.
"""

import csv
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ihgnn_cli.studies.statistics import Method, Paired, family, p_text, paired

RESULTS = Path(__file__).parent
ROOT = RESULTS.parent
DATASETS = (
    "MUTAG",
    "BZR_MD",
    "DHFR_MD",
    "KKI",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "PROTEINS",
    "DD",
    "COLLAB",
)
WITH_EDGES = {
    "MUTAG-bond-labels": "MUTAG, `--edge-labels`",
    "BZR_MD-bonds": "BZR_MD, `--background-edge-label 1`",
    "BZR_MD-bond-labels": "BZR_MD, both",
    "BZR_MD-bins": "BZR_MD, `--edge-bins 8`",
    "BZR_MD-bond-bins": "BZR_MD, all three",
}
"""Cross-validations in which the models read edges, and their names in the tables."""
IN_README = ("MUTAG", "BZR_MD", "IMDB-BINARY", "PROTEINS", "KKI", "DHFR_MD")
"""The data sets of the paper's Table 1."""
ON_ATTRIBUTES = "forest-edges"
"""The reference that reads edge attributes: fair only beside a model that reads them, too."""
NONE = "–"
BLOCK = re.compile(r"<!-- results: ([\w-]+) -->\n.*?<!-- end of results -->", re.DOTALL)
FILLED = "<!-- results: {} -->\n\n{}\n<!-- end of results -->"

Row = Sequence[str]


@dataclass(frozen=True)
class CrossValidation:
    """A finished cross-validation: one of the files beside this script."""

    content: dict[str, Any]

    @property
    def accuracy(self) -> str:
        """Mean ± standard deviation over folds."""
        return percent(self.content["model"])

    @property
    def model(self) -> Method:
        """The accuracies of the model by fold, and by graph over its runs."""
        return method(self.content["model"])

    @property
    def references(self) -> dict[str, dict[str, Any]]:
        """The classifiers without a network on the same folds, by key."""
        return {each["key"]: each for each in self.content["references"]}

    @property
    def test_share(self) -> float:
        """Test graphs per training graph in a fold."""
        return 1 / (len(self.content["model"]["folds"]) - 1)


def read(kind: str, name: str) -> list[CrossValidation]:
    """A cross-validation, and after it the same on a second partition if there is one."""
    files = [RESULTS / kind / f"{name}{seed}.json" for seed in ("", "-seed1")]
    return [CrossValidation(json.loads(file.read_text("utf-8"))) for file in files if file.exists()]


def paper_setup(name: str) -> tuple[list[CrossValidation], str]:
    """The paper's setup: the full protocol where it was run, else a race; and which it is."""
    full, raced = read("full", name), read("race", name)
    if full:
        return [*full, *raced[1:]], "full; race" if raced[1:] else "full"
    if not raced:
        return [], ""
    epochs = raced[0].content["settings"]["training"]["epochs"]
    return raced, "race" if epochs == 350 else f"race, {epochs} epochs"


def method(scores: dict[str, Any]) -> Method:
    """The accuracies by fold and by graph."""
    runs = scores.get("runs_per_graph", 1)
    return Method(tuple(scores["folds"]), tuple(int(each) / runs for each in scores["right"]))


def joined(found: Sequence[Method]) -> Method:
    """A method on several partitions: its accuracies by fold, and by graph the mean over them."""
    means = [
        sum(values) / len(found) for values in zip(*(each.graphs for each in found), strict=True)
    ]
    return Method(tuple(fold for each in found for fold in each.folds), tuple(means))


def best_reference(found: Sequence[CrossValidation]) -> str:
    """The reference with the highest mean over the partitions, of those that are fair."""
    bins = found[0].content["settings"]["data"].get("edge_bins")
    fair = [key for key in found[0].references if key != ON_ATTRIBUTES or bins]
    return max(fair, key=lambda key: sum(each.references[key]["accuracy"] for each in found))


def percent(scores: dict[str, Any]) -> str:
    """Mean ± standard deviation in percent."""
    return f"{100 * scores['accuracy']:.1f} ± {100 * scores['accuracy_std']:.1f}"


def over_partitions(texts: Sequence[str]) -> str:
    """The same number on each partition."""
    return "; ".join(texts) or NONE


def difference(gap: Paired, p: float | None) -> str:
    """A difference ± its standard error, and p."""
    error = "" if gap.error is None else f" ± {100 * gap.error:.1f}"
    return f"{100 * gap.difference:+.1f}{error} ({'no test' if p is None else p_text(p)})"


def from_paper_setup(robust: Sequence[CrossValidation], ours: Sequence[CrossValidation]) -> str:
    """The difference from the paper's setup, on the partitions that both have."""
    pairs = list(zip(robust, ours, strict=False))
    if not pairs:
        return NONE
    first, second = (joined([each.model for each in side]) for side in zip(*pairs, strict=True))
    gap = paired(first, second, robust[0].test_share)
    return difference(gap, gap.p)


def from_references(robust: Sequence[CrossValidation]) -> str:
    """The difference from the best reference, with Holm's correction over all references."""
    own, keys = joined([each.model for each in robust]), list(robust[0].references)
    others = [joined([method(each.references[key]) for each in robust]) for key in keys]
    gaps = family([paired(own, other, robust[0].test_share) for other in others])
    gap = gaps[keys.index(best_reference(robust))]
    return difference(gap, gap.p_holm)


def accuracy(name: str, title: str) -> Row:
    """A data set in the table of accuracies."""
    robust, (ours, which) = read("robust", name), paper_setup(name)
    best = best_reference(robust)
    return (
        title,
        f"{100 * robust[0].content['majority_share']:.1f}",
        over_partitions([percent(each.references[best]) for each in robust]),
        over_partitions([each.accuracy for each in ours]) + (f" ({which})" if which else ""),
        over_partitions([each.accuracy for each in robust]),
        from_paper_setup(robust, ours),
        from_references(robust),
        paper(robust[0].content["paper"]),
    )


def paper(printed: dict[str, Any]) -> str:
    """The paper's number."""
    return f"{100 * printed['mean']:.1f} ± {100 * printed['std']:.1f}"


def other_scores(name: str, title: str) -> Row:
    """A data set in the table of ROC-AUC and balanced accuracy."""
    robust, (ours, _) = read("robust", name), paper_setup(name)
    models = [[each.content["model"] for each in found] for found in (ours, robust)]
    highest = [max(one["roc_auc"] for one in each.references.values()) for each in robust]
    best = [each.references[best_reference(robust)] for each in robust]
    balanced = [[f"{100 * each['balanced_accuracy']:.1f}" for each in of] for of in (best, *models)]
    areas = [[f"{each['roc_auc']:.3f}" for each in of] for of in models]
    return (
        title,
        over_partitions([f"{each:.3f}" for each in highest]),
        *map(over_partitions, (*areas, *balanced)),
    )


def rules(kind: str, name: str, title: str) -> Row:
    """A full protocol under other rules of selection."""
    (found,) = read(kind, name)[:1]
    numbers = [
        percent({"accuracy": each["mean"], "accuracy_std": each["std"]})
        for each in found.content["rules"]
    ]
    correlation = found.content.get("selection", {}).get("correlation")
    shown = NONE if correlation is None else f"{correlation:+.2f}"
    return (title, f"**{found.accuracy}**", *numbers, paper(found.content["paper"]), shown)


def cells(table: str) -> list[dict[str, str]]:
    """A table of the reproduction with the quick budget."""
    text = (RESULTS / "reproduction" / f"{table}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def grid(
    found: Sequence[dict[str, str]], row: str, column: str, cell: Callable[[dict[str, str]], str]
) -> list[Row]:
    """One row per value of a column of the file, one box per value of another one."""
    names, across = (list(dict.fromkeys(each[key] for each in found)) for key in (row, column))
    boxes = {(each[row], each[column]): cell(each) for each in found}
    inside = [(name, *(boxes.get((name, each), NONE) for each in across)) for name in names]
    return [("", *across), *inside]


def compared(cell: dict[str, str]) -> str:
    """A cell of the paper's tables: ours, and the paper's in brackets."""
    ours = f"{float(cell['mean']):.1f} ± {float(cell['std']):.1f}"
    printed = "OOM" if cell["paper_out_of_memory"] == "true" else f"{float(cell['paper_mean']):.1f}"
    return f"{ours} ({printed})"


def methods() -> list[Row]:
    """The paper's Table 1 and the classifiers without a network."""
    below = [{**each, "mean": f"{float(each['mean']):.1f}"} for each in cells("references")]
    with_std = grid(
        below, "title", "dataset", lambda each: f"{each['mean']} ± {float(each['std']):.1f}"
    )
    return [*grid(cells("table1"), "title", "dataset", compared), *with_std[1:]]


def curve(table: str, row: str, column: str) -> list[Row]:
    """Means of a figure of the reproduction."""
    found = [{**each, column: f"{float(each[column]):g}"} for each in cells(table)]
    return grid(found, row, column, lambda each: f"{float(each['mean']):.1f}")


def accuracies() -> list[Row]:
    """All data sets: accuracy."""
    head = (
        "data set",
        "majority class",
        "best reference",
        "IHGNN, paper's setup",
        "IHGNN, robust",
        "robust minus paper's setup",
        "robust minus best reference",
        "the paper",
    )
    titles = dict.fromkeys(DATASETS) | WITH_EDGES
    return [head, *(accuracy(name, title or name) for name, title in titles.items())]


def summary() -> list[Row]:
    """The table of the README: the first columns of the table of accuracies, fewer rows."""
    head = (
        "data set",
        "majority class",
        "best classifier without a network",
        "IHGNN, paper's setup",
        "IHGNN, `--recipe robust`",
        "IHGNN in the paper",
    )
    found = [accuracy(name, name) for name in IN_README]
    return [head, *((*each[:5], each[-1]) for each in found)]


def areas_and_balanced() -> list[Row]:
    """All data sets: ROC-AUC and balanced accuracy."""
    head = (
        "data set",
        "ROC-AUC: references",
        "paper's setup",
        "robust",
        "balanced accuracy: best reference",
        "paper's setup",
        "robust",
    )
    titles = dict.fromkeys(DATASETS) | WITH_EDGES
    return [head, *(other_scores(name, title or name) for name, title in titles.items())]


def selection_rules() -> list[Row]:
    """The full protocols under other rules of selection."""
    head = (
        "data set",
        "nested, by validation: the result",
        "selection's trainings, nested",
        "one configuration, by validation",
        "authors' rule: configuration by TEST",
        "one configuration and epoch, by TEST",
        "the paper",
        "correlation",
    )
    full = [rules("full", name, name) for name in ("MUTAG", "BZR_MD", "DHFR_MD", "KKI")]
    authors = [rules("authors", name, f"{name}, authors' code") for name in ("BZR_MD", "DHFR_MD")]
    return [head, *full, *authors]


TABLES: dict[str, Callable[[], list[Row]]] = {
    "summary": summary,
    "accuracy": accuracies,
    "other-scores": areas_and_balanced,
    "selection-rules": selection_rules,
    "methods": methods,
    "ablations": lambda: grid(cells("table2"), "title", "dataset", compared),
    "layers": lambda: curve("sensitivity", "data_set", "K"),
    "homophily": lambda: curve("homophily-sweep", "model", "mean_node_homophily_β"),
}


def markdown(rows: Sequence[Row]) -> str:
    """A table: first column aligned left, the others right."""
    head, *body = rows
    lines = [head, ("---", *("--:" for _ in head[1:])), *body]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def filled(page: str) -> str:
    """A page with its tables made from the stored results."""
    return BLOCK.sub(lambda found: FILLED.format(found[1], markdown(TABLES[found[1]]())), page)


def pages() -> list[Path]:
    """The pages that have tables of results."""
    candidates = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in candidates if BLOCK.search(page.read_text("utf-8"))]


def main() -> None:
    """Write the tables, or check them."""
    differ = [
        page for page in pages() if filled(page.read_text("utf-8")) != page.read_text("utf-8")
    ]
    if "--check" in sys.argv[1:]:
        for page in differ:
            print(f"{page.name} differs from the stored results; run 'python results/table.py'.")
        sys.exit(bool(differ))
    for page in differ:
        page.write_text(filled(page.read_text("utf-8")), "utf-8", newline="\n")
        print(f"Wrote the tables of {page.name}.")


if __name__ == "__main__":
    main()
