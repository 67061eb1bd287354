"""Reads and writes safetensors files with numpy alone.

Such a file is the length of its header in 8 bytes (little-endian), a JSON header, then the tensors' bytes.
"""

import json
import struct

import numpy as np

_TYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32, "U32": np.uint32, "U8": np.uint8}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def save(path, tensors):
    """Writes a dict of name -> array (C order; types of _TYPES)."""
    header, blobs, offset = {}, [], 0
    for name, array in tensors.items():
        array = np.ascontiguousarray(array)
        blob = array.tobytes()
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of 8
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load(path):
    """Reads a file into a dict of name -> array; the optional "__metadata__" is left out."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], dtype=_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
