"""Model files: safetensors with checked values, which never run code when they are loaded.

`model_file` has `save_model` and `load_model`. `estimators` lists the estimators that a file can hold, and
packs the fitted attributes that their classes annotate. `codec` builds objects from the annotations of their
fields and calls their own checks; `values` converts values to JSON and arrays. `atomic` replaces files as a
whole or not at all.
"""
