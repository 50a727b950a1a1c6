"""The tables of UCI's that some experiments read from the folder CORRAL_DATA names."""

import os
from pathlib import Path

import pytest

FILES = {
    "anuran": "anuran_mfcc.csv",
    "waveform": "waveform_noise.csv",
    "digits": "optdigits_train.csv",
    "digits to judge": "optdigits_test.csv",
}


def skip_without_data(name):
    folder = os.environ.get("CORRAL_DATA")
    file = FILES.get(name)
    if file is None:
        return
    if not folder or not any(Path(folder, file + end).is_file() for end in ("", ".gz")):
        pytest.skip(f"CORRAL_DATA names no folder with {file}")
