"""Model files: safetensors with checked values, which never run code when they are loaded.

`model_file` has `save_model` and `load_model`. `estimators` lists the estimators that files hold, and keeps
the fitted attributes that their classes annotate. `codec` builds objects from the annotations of their fields
and lets each of them check itself; `values` turns values into JSON and arrays. `atomic` writes files that
appear whole or not at all.
"""
