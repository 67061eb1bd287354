"""Reading what the command line said."""

import json


def error_line(result):
    """The one line that says what is wrong; nothing may be on stdout."""
    lines = [line for line in result.stderr.splitlines() if line.startswith("spikeloom: error: ")]
    assert len(lines) == 1, result.stderr
    assert result.stdout == ""
    return lines[0].removeprefix("spikeloom: error: ")


def only_json(result):
    """The object on stdout, which must be all there is."""
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
