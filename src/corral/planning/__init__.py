"""Number of training rows that are needed, estimated by a learning curve or by algorithm 4 of the paper."""

from corral.planning.bound import Extrapolation, SampleSizes, Step
from corral.planning.curve import LearningCurve, Needed
from corral.planning.estimate import estimate_sample_sizes

__all__ = ["Extrapolation", "LearningCurve", "Needed", "SampleSizes", "Step", "estimate_sample_sizes"]
