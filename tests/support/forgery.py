"""Model files taken apart and put together again, with a checksum that holds whatever is inside."""

import json
import struct

import numpy as np
from safetensors.numpy import save_file

from corral.files.model_file import _checksum
from corral.files.values import digest

_KINDS = {"F64": np.float64, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_}


def take_apart(file):
    """Header and arrays, read without the code under test."""
    content = file.read_bytes()
    (n,) = struct.unpack("<Q", content[:8])
    head = json.loads(content[8 : 8 + n])
    metadata = head.pop("__metadata__")
    arrays = {}
    for name, entry in head.items():
        low, high = entry["data_offsets"]
        data = content[8 + n + low : 8 + n + high]
        arrays[name] = np.frombuffer(data, _KINDS[entry["dtype"]]).reshape(entry["shape"]).copy()
    return json.loads(metadata["corral"]), arrays


def forge_value(header, arrays, path, change):
    """Put another value into one place of a header; a function changes the array of that place alone."""
    *parents, last = (int(key) if key.isdecimal() else key for key in path.split("/"))
    node = header
    for key in parents:
        node = node[key]
    if callable(change):
        arrays[path] = change(arrays[node[last]["!array"]])
        change = {"!array": path}
    node[last] = change


def put_together(path, header, arrays):
    """Write a forged file: its checksum holds."""
    text = json.dumps(header)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    digests = {name: digest(array) for name, array in arrays.items()}
    save_file(arrays, path, {"corral": text, "sha256": _checksum(text, digests)})
