"""The mathematics on arrays; imports no estimator of scikit-learn."""
