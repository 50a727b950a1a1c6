"""Model files in the safetensors format. Loading a file runs no code, and every value in it is checked.

- ``model_file``: `save_model` and `load_model`
- ``estimators``: which estimators a file can hold, and which of their attributes
- ``values``: conversion of values to JSON and arrays, and back
- ``codec``: rebuilds objects from JSON according to the annotations of their classes, and checks them
- ``atomic``: replaces a file completely or not at all
"""
