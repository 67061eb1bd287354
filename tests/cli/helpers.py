"""Reading what the command line said and wrote."""

import json
import struct


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


def tensors(path):
    """Name to bytes of every tensor of a safetensors file; metadata (times of work, say) left out."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length :]
    return {name: body[slice(*entry["data_offsets"])] for name, entry in header.items()}
