"""How many rows each class needs: by the bound of algorithm 4, or by a learning curve."""

from corral.planning.bound import Extrapolation, SampleSizes, Step
from corral.planning.curve import LearningCurve, Needed
from corral.planning.estimate import estimate_sample_sizes

__all__ = ["Extrapolation", "LearningCurve", "Needed", "SampleSizes", "Step", "estimate_sample_sizes"]
