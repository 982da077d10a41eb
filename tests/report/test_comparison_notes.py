"""The sentences beside a table are counted from its numbers."""

from dataclasses import replace

from compared import GIN, OURS, WORSE, cell

from ihgnn_cli.report.comparison_notes import PAPER_EXPLAINED, findings, notes, summary
from ihgnn_cli.studies.comparison import ReferenceCell, compare, refused_cell
from ihgnn_cli.studies.statistics import Paired

BETTER = cell("acm", 0.90, 0.98, 0.96, 0.85, 0.99)


def test_findings_count_where_ihgnn_is_ahead_what_is_significant_and_what_the_paper_has() -> None:
    assert findings(compare([OURS, GIN, WORSE])) == (
        "IHGNN has the highest mean on 1 of 1 data set (by the paper's numbers: 1 of 1). It is "
        "significantly better than all others on none.",
        "Of 2 comparisons on the same folds, the other method is significantly better than IHGNN "
        "in none and significantly worse in 1 (marked *).",
        "The paper has 3 of these numbers; ours is lower in 3. The mean difference is −9.5 points.",
    )


def test_a_method_that_beats_ihgnn_is_told_as_plainly() -> None:
    first, second, _ = findings(compare([OURS, BETTER]))
    assert first.startswith("IHGNN has the highest mean on 0 of 1 data set")
    assert "significantly better than IHGNN in 1 and significantly worse in none" in second


def test_the_terminal_gets_three_sentences() -> None:
    assert summary(compare([OURS, GIN])) == (
        "Test accuracy in %; below it the paper's, and ours minus the paper's.",
        "IHGNN has the highest mean on 1 of 1 data set (by the paper's numbers: 1 of 1). It is "
        "significantly better than all others on none.",
        "No method differs significantly from IHGNN in 1 comparison on the same folds.",
    )
    assert summary(compare([OURS, BETTER, GIN]))[1:] == (
        "IHGNN has the highest mean on 0 of 1 data set (by the paper's numbers: 1 of 1). It is "
        "significantly better than all others on none.",
        "Of 2 comparisons on the same folds, the other method is significantly better than IHGNN "
        "in 1 and significantly worse in none (marked *).",
    )
    assert len(summary(compare([]))) == 1


def test_without_ihgnn_or_others_there_is_nothing_to_say_of_it() -> None:
    assert findings(compare([])) == ()
    assert len(findings(compare([OURS]))) == 1  # beside the paper
    assert not any("highest" in each for each in findings(compare([GIN, WORSE])))


def test_notes_tell_folds_runs_epochs_and_the_rule_of_the_choice() -> None:
    told = notes(compare([OURS, cell("gin", 0.7, 0.8, runs=3, epochs=1000, splits_sha256="o")]))
    assert told[0] == (
        "Our numbers come from nested cross-validation: 2 to 5 folds, the mean of 1 to 3 final "
        "runs per fold, 5 to 1,000 epochs per run, epoch and configuration chosen by validation "
        "accuracy. No choice uses test graphs."
    )
    assert told[1].startswith("Methods use different folds on MUTAG.")
    assert told[2] == PAPER_EXPLAINED
    assert notes(compare([OURS, GIN]))[1].startswith("On each data set, all methods use the same")


def test_notes_name_what_learned_nothing_what_was_not_run_and_what_is_missing() -> None:
    refused = refused_cell("DD", "ppgn", "does not fit")
    told = notes(compare([OURS, WORSE, refused]))
    assert told[3:] == (
        "No better than always predicting the majority class: on MUTAG (60.0 %) ACM.",
        "Not run: PPGNs on DD (does not fit).",
        "3 cells of the table have no result.",
    )
    assert len(notes(compare([OURS, GIN]))) == 3


def test_methods_that_do_not_beat_the_best_reference_are_named() -> None:
    listed = (ReferenceCell("majority class", 0.6, 0.02), ReferenceCell("forest", 0.9, 0.05))
    known = {"references": listed, "best_reference": "forest"}
    ours = replace(OURS, **known, gap=Paired(-0.051, 0.02, 0.01, 0.05))
    better = replace(GIN, **known, gap=Paired(0.05, 0.02, 0.01, 0.04))
    told = " ".join(notes(compare([ours, better])))
    assert "on MUTAG (forest, 90.0 %) IHGNN (−5.1 ± 2.0)." in told
    assert "GIN (" not in told
    assert summary(compare([ours, better]))[-1] == (
        "IHGNN is not significantly better than the best classifier without a network (last "
        "rows) on MUTAG."
    )


def test_each_method_is_compared_with_the_best_reference_of_its_own_result() -> None:
    """Results of different versions have different references; older ones have no error."""
    new = (ReferenceCell("forest", 0.9, 0.05), ReferenceCell("SVM", 0.85, 0.05))
    gap = Paired(-0.05, None, 0.2, 0.4)
    ours = replace(OURS, references=new, best_reference="forest", gap=gap)
    old = replace(GIN, references=new[1:], best_reference="SVM", gap=replace(gap, error=0.02))
    told = " ".join(notes(compare([ours, old])))
    assert "on MUTAG (forest, 90.0 %) IHGNN (−5.0)" in told
    assert "on MUTAG (SVM, 85.0 %) GIN (−5.0 ± 2.0)" in told
