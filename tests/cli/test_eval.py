"""spikeloom eval."""

import pytest

from conftest import write_nmnist
from helpers import error_line, only_json


def test_eval_json_has_the_promised_keys(spikeloom, trained):
    report = only_json(spikeloom("eval", trained / "run", "--json"))
    assert {"samples", "loss", "accuracy", "undecided", "confusion", "activity"} <= set(report)
    assert report["samples"] == 24
    assert sum(map(sum, report["confusion"])) == 24
    assert list(report["activity"]) == ["hidden1"]
    correct = sum(report["confusion"][i][i] for i in range(4))
    assert report["accuracy"] == pytest.approx(correct / 24)


def test_eval_counts_every_sample_of_other_data(spikeloom, trained, tmp_path):
    other = write_nmnist(tmp_path / "other", per_class=3, seed=5)
    report = only_json(spikeloom("eval", trained / "run", "--data", other / "Test", "--json"))
    assert report["samples"] == 12


def test_predictions_agree_with_the_report(spikeloom, trained, tmp_path):
    report = only_json(spikeloom("eval", trained / "run", "--json", "--predictions", tmp_path / "p.csv"))
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "sample,label,decision,undecided,loss"
    rows = [line.split(",") for line in lines[1:]]
    assert len(rows) == report["samples"]
    assert sum(row[1] == row[2] for row in rows) == round(report["accuracy"] * report["samples"])
    assert sum(float(row[4]) for row in rows) / len(rows) == pytest.approx(report["loss"], rel=1e-5)


@pytest.mark.parametrize("what", ["hidden1.spikes", "hidden1.membrane", "readout.membrane"])
def test_record_writes_a_file(spikeloom, trained, tmp_path, what):
    result = spikeloom("eval", trained / "run", "--record", what, tmp_path / "record")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "record").stat().st_size > 0


@pytest.mark.parametrize("what", ["hidden9.spikes", "hidden1.noise", "readout.spikes", "hidden1"])
def test_record_of_what_is_not_there(spikeloom, trained, tmp_path, what):
    result = spikeloom("eval", trained / "run", "--record", what, tmp_path / "record")
    assert result.returncode == 2
    assert what.split(".")[0] in error_line(result)
    assert not (tmp_path / "record").exists()


def test_eval_of_something_else(spikeloom, tmp_path):
    for run in (tmp_path, tmp_path / "missing"):
        result = spikeloom("eval", run)
        assert result.returncode == 2
        assert str(run) in error_line(result)


@pytest.mark.parametrize("decision", ["sum", "mean", "max", "last", "majority"])
def test_decision_can_be_another_than_in_training(spikeloom, trained, decision):
    report = only_json(spikeloom("eval", trained / "run", "--decision", decision, "--json"))
    by_setting = only_json(spikeloom("eval", trained / "run", "--set", f"loss.decision={decision}", "--json"))
    assert report["confusion"] == by_setting["confusion"]
    assert report["loss"] == by_setting["loss"]


def test_decision_is_that_of_the_membranes(spikeloom, trained, tmp_path):
    np = pytest.importorskip("numpy")
    result = spikeloom("eval", trained / "run", "--record", "readout.membrane", tmp_path / "m.npy", "--predictions", tmp_path / "auto.csv")
    assert result.returncode == 0, result.stderr
    membrane = np.load(tmp_path / "m.npy").astype(np.float64)
    expected = {"last": membrane[:, -1].argmax(1), "max": membrane.max(1).argmax(1), "mean": membrane.mean(1).argmax(1)}
    for decision, classes in expected.items():
        spikeloom("eval", trained / "run", "--decision", decision, "--predictions", tmp_path / "p.csv")
        rows = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
        assert [int(row[2]) for row in rows] == classes.tolist(), decision


def test_an_unknown_decision_is_named(spikeloom, trained):
    result = spikeloom("eval", trained / "run", "--decision", "dice")
    assert result.returncode == 2
    assert "majority" in error_line(result)
