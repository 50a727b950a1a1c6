"""How many rows each class needs: by the bound of algorithm 4, or by a learning curve."""

from corral._planning.bound import Extrapolation, SampleSizes, Step
from corral._planning.curve import LearningCurve, Needed
from corral._planning.estimate import estimate_sample_sizes

__all__ = ["Extrapolation", "LearningCurve", "Needed", "SampleSizes", "Step", "estimate_sample_sizes"]
