"""The numbers and sentences of a report, as its script reads them."""

import base64
import json
import re
import zlib


def data_of(page):
    """What the script of a page draws: rows and training rows with their values."""
    (text,) = re.findall(r'<script type="text/plain" id="data">(.*?)</script>', page, re.DOTALL)
    data = json.loads(zlib.decompress(base64.b64decode(text)), parse_constant=not_json)
    for row in data["rows"]:
        row["values"] = data["values"][row["values"]]
    data["training"] = {i: data["values"][line] for i, line in data["training"].items()}
    return data


def not_json(constant):
    raise AssertionError(f"the page holds {constant}")
