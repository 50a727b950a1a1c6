"""
What does the Rodeo do, step by step?
=====================================

Test.
"""

from corral import RodeoClassifier
