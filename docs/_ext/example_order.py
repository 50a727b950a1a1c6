"""The order in which examples are listed within their section."""

ORDER = (
    # what marks a class
    "plot_penguins.py",
    "plot_frogs.py",
    "plot_digits.py",
    "plot_more_variables_than_rows.py",
    # can a label be trusted?
    "plot_costs.py",
    "plot_novelty.py",
    "plot_sets.py",
    "plot_sample_sizes.py",
    # at work
    "plot_pipeline.py",
    "plot_model_file.py",
    "plot_dask.py",
    # the paper
    "plot_ten_groups.py",
    "plot_rodeo_step_by_step.py",
)


class ExampleOrder:
    """Gives the place of an example by the name of its file, as Sphinx-Gallery asks for it."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> int:
        return ORDER.index(filename)
