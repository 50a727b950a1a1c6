"""
Would more rows help?
=====================

Collecting rows is expensive. The learning curve estimates the scores with twice and four times as many rows,
with intervals, and the number of rows that is necessary for a goal.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import accuracy_score

from corral import CorralClassifier, SampleSizeDisplay, estimate_sample_sizes
from corral.datasets import make_waveform

X, y = make_waveform(40, random_state=0)
curve = estimate_sample_sizes(X, y, goal=0.83, random_state=0)
print(curve)

# %%
# Dots are leave-one-out scores with all rows and with halves, quarters and eighths of the rows. Lines are the
# fitted curves; bands are 90% intervals.

SampleSizeDisplay.from_result(curve)
plt.show()

# %%
# Was the estimate right? These rows are simulated, so that we can draw more of them.

X_test, y_test = make_waveform(1000, random_state=1)
for times in (2, 4):
    expected = curve.accuracy(times * len(X))
    more = CorralClassifier(random_state=0).fit(*make_waveform(times * 40, random_state=2))
    reached = accuracy_score(y_test, more.predict(X_test))
    print(
        f"{times} times the rows: {expected.low:.3f} to {expected.high:.3f} expected, {reached:.3f} reached"
    )
