"""Model files: safetensors with checked values, which never run code when they are loaded.

`model_file` has `save_model` and `load_model`. `estimators` lists what is kept of each estimator; `pool`,
`rodeo` and `training_rows` pack and restore the large ones, and `params` their parameters. `values` checks
every number that is read, and `atomic` writes files that appear whole or not at all.
"""
