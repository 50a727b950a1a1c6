"""The numbers of a report, unpacked as its script unpacks them."""

import json
import re
from string import ascii_lowercase, ascii_uppercase, digits

LETTERS = ascii_uppercase + ascii_lowercase + digits + "+/"


def data_of(page):
    """What the script of a page draws: rows and training rows with their values, curves as lists."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    data = json.loads(text, parse_constant=not_json)
    values = [list(row) for row in zip(*map(column, data["values"]), strict=True)]
    packed = data["rows"]
    unpacked = {
        key: column(of_rows) if isinstance(of_rows, dict) else of_rows for key, of_rows in packed.items()
    }
    data["rows"] = [dict(zip(unpacked, row, strict=True)) for row in zip(*unpacked.values(), strict=True)]
    for row in data["rows"]:
        row["values"] = values[row["values"]]
        if "support" in row:
            listed = [i for i, number in enumerate(row["support"]) if number >= 0]
            row["support"], row["shares"] = ([row[key][i] for i in listed] for key in ("support", "shares"))
    numbers = column(data["training"]["rows"])
    at = column(data["training"]["values"])
    data["training"] = {str(i): values[k] for i, k in zip(numbers, at, strict=True)}
    if data["trainingNames"] is not None:
        data["trainingNames"] = dict(zip(map(str, numbers), data["trainingNames"], strict=True))
    for curve in data.get("curves", {}).values():
        curve["y"] = column(curve["y"])
        if "x" in curve:
            curve["x"] = column(curve["x"])
    return data


def not_json(constant):
    raise AssertionError(f"the page holds {constant}")


def column(packed):
    """The numbers, levels and gaps that were packed; lines of a matrix."""
    numbers = [
        packed["among"][number]
        if "among" in packed
        else (packed.get("middle", 0) + number) / 10 ** packed["decimals"]
        if "decimals" in packed
        else packed.get("middle", 0) + number
        for number in whole_numbers(packed["text"])
    ]
    for gap in packed.get("gaps", []):
        numbers.insert(gap, None)
    if "width" in packed:
        width = packed["width"]
        return [numbers[i : i + width] for i in range(0, len(numbers), width or 1)]
    return numbers


def whole_numbers(text):
    numbers, value, shift = [], 0, 1
    for letter in text:
        bits = LETTERS.index(letter)
        value += bits % 32 * shift
        shift *= 32
        if bits < 32:
            numbers.append(-(value // 2) if value % 2 else value // 2)
            value, shift = 0, 1
    return numbers
