"""Scikit-learn's manners: estimators validate and delegate to the core."""
