"""The command line itself: help, wrong usage, wrong configurations."""

import os
import re
import shutil
from pathlib import Path

import pytest

from helpers import error_line


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["eval", "-h"], ["data", "--help"], ["data", "info", "--help"]])
def test_help_is_no_error(spikeloom, arguments):
    result = spikeloom(*arguments)
    assert result.returncode == 0
    assert "Usage" in result.stdout
    assert result.stderr == ""


def test_version(spikeloom):
    result = spikeloom("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("spikeloom 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train"],
        ["train", "config.toml"],
        ["train", "--out", "run"],
        ["train", "config.toml", "--out", "run", "--sed", "3"],
        ["train", "config.toml", "--out", "run", "--seed", "many"],
        ["train", "config.toml", "--out", "run", "--epochs", "-1"],
        ["train", "config.toml", "--out", "run", "--threads", "-1"],
        ["train", "config.toml", "--out", "run", "--resume", "--init-from", "x"],
        ["eval"],
        ["eval", "run", "--record", "hidden1.spikes"],
        ["data"],
        ["data", "info"],
        ["data", "info", "x", "--part", "validation"],
        ["data", "encode", "x"],
        ["data", "encode", "x", "--out", "y", "--index", "5-3"],
        ["data", "encode", "x", "--out", "y", "--index", "one"],
        ["data", "spoken-digits"],
        ["data", "spoken-digits", "--out", "x", "--train", "-3"],
        ["info"],
    ],
)
def test_wrong_usage_exits_with_2_and_one_line(spikeloom, arguments, tmp_path):
    result = spikeloom(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    error_line(result)
    assert list(tmp_path.iterdir()) == []


def test_settings_are_listed(spikeloom):
    result = spikeloom("train", "--help-settings")
    assert result.returncode == 0
    assert "[optimizer]" in result.stdout and "learning_rate" in result.stdout


def test_settings_list_every_neuron_model(spikeloom):
    text = spikeloom("train", "--help-settings").stdout
    [allowed] = re.findall(r"^  neuron$.*?one of ([\w, ]+);", text, re.MULTILINE | re.DOTALL)
    assert allowed.split(", ") == ["lif", "if", "cuba_lif", "alif", "adlif", "se_adlif", "li", "linear"]


VERBS = ["train", "eval", "info", "plan", "bench train", "bench kernels"] + [
    f"data {verb}" for verb in ("info", "spoken-digits", "encode", "encode-images")
]


@pytest.mark.parametrize("verb", VERBS)
def test_the_reference_names_every_option(spikeloom, verb):
    page = (Path(__file__).parents[2] / "docs/reference/command-line.md").read_text()
    [section] = re.findall(rf"^## {verb}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", spikeloom(*verb.split(), "--help").stdout, re.MULTILINE)
    assert "--help" in options and "--json" in options
    assert [option for option in options if option != "--help" and option not in section] == []


def test_committed_page_of_settings_is_current(spikeloom):
    page = os.path.join(os.path.dirname(__file__), "../../docs/reference/settings.md")
    result = spikeloom("info", "--settings-markdown")
    assert result.returncode == 0
    with open(page, encoding="utf-8") as file:
        assert file.read() == result.stdout, "run: spikeloom info --settings-markdown > docs/reference/settings.md"


@pytest.mark.parametrize(
    "change, message",
    [
        (("steps = 10", "step = 10"), "config.toml:6: unknown key data.step = 10; did you mean data.steps?"),
        (("steps = 10", "steps = 0"), "config.toml:6: data.steps = 0 is not allowed: it must be a whole number from 1 to"),
        (('neuron = "li"', 'neuron = "lii"'), "config.toml:14: layers.readout.neuron = \"lii\" is not allowed: it must be one of lif, if, cuba_lif, alif, adlif, se_adlif, li, linear"),
        (("seed = 3", "seed ="), "config.toml:1: "),
    ],
)
def test_wrong_configuration_names_file_and_line(spikeloom, project, change, message):
    path = project / "config.toml"
    path.write_text(path.read_text().replace(*change))
    result = spikeloom("train", path, "--out", project / "run")
    assert result.returncode == 2
    assert message in error_line(result)
    assert not (project / "run").exists()


def test_wrong_set_names_key_and_allowed_values(spikeloom, project):
    result = spikeloom("train", project / "config.toml", "--out", project / "run", "--set", "layers.hidden2.size=3")
    assert result.returncode == 2
    assert "there is no layer hidden2; did you mean hidden1? layers: hidden1, readout" in error_line(result)


def test_missing_configuration(spikeloom, tmp_path):
    result = spikeloom("train", tmp_path / "none.toml", "--out", tmp_path / "run")
    assert result.returncode == 2
    assert "none.toml: can't be read" in error_line(result)


def test_missing_data(spikeloom, project):
    shutil.rmtree(project / "digits")
    result = spikeloom("train", project / "config.toml", "--out", project / "run")
    assert result.returncode == 2
    assert "digits" in error_line(result)


@pytest.mark.parametrize("what", ["configuration", "data", "init", "run"])
def test_a_folder_in_place_of_a_file(spikeloom, project, what):
    (project / "folder").mkdir()
    config, out = project / "config.toml", project / "run"
    arguments = {
        "configuration": ["train", project / "folder", "--out", out],
        "data": ["train", config, "--out", out, "--set", f"data.train={project}/folder"],
        "init": ["train", config, "--out", out, "--init-from", project / "folder"],
        "run": ["eval", project / "folder"],
    }
    result = spikeloom(*arguments[what])
    assert result.returncode == 2
    assert str(project / "folder") in error_line(result)


def test_output_in_the_way_of_a_file(spikeloom, project):
    (project / "run").write_text("a file")
    result = spikeloom("train", project / "config.toml", "--out", project / "run")
    assert result.returncode == 2
    assert "run" in error_line(result)
