r"""
What does the Rodeo do, step by step?
=====================================

The Rodeo chooses one bandwidth per variable at one point. All bandwidths start wide. A bandwidth shrinks as
long as shrinking changes the estimated density at the point by more than noise would.
"""

import matplotlib.pyplot as plt
import numpy as np

from corral import RodeoDensity, RodeoPathDisplay

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(0.5, 0.05, 300), rng.uniform(size=(300, 2))])
x = np.array([[0.5, 0.5, 0.3]])

# %%
# The data have three variables. The first has a narrow peak at 0.5; the two others are uniform. Only the
# first variable needs a narrow kernel.

density = RodeoDensity(scale=None, beta=0.8).fit(X)
path = density.bandwidth_path(x)
for sweep, (h, ratio) in enumerate(zip(path.bandwidths[1:], path.ratios, strict=True), start=1):
    print(f"sweep {sweep}: |Z| / lambda {ratio.round(1)}, then h {h.round(3)}")

# %%
# A ratio above 1 makes the bandwidth shrink by the factor 0.8. The uniform variables stop soon.

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(path.bandwidths, marker=".", label=["peak", "uniform", "uniform"])
axes[0].set(xlabel="sweep", ylabel="bandwidth", yscale="log", title="Bandwidths at one point")
axes[0].legend()
axes[1].plot(np.arange(1, len(path.bandwidths)), np.where(path.tested, path.ratios, np.nan), marker=".")
axes[1].axhline(1, color="black", linewidth=0.8)
axes[1].set(xlabel="sweep", yscale="log", title="|Z| over its threshold")
plt.show()

# %%
# The next picture shows the density along the first variable, with the initial bandwidth and with the
# bandwidth of the Rodeo.

grid = np.linspace(0, 1, 201)
along = np.column_stack([grid, np.full((201, 2), 0.5)])
wide = RodeoDensity(scale=None, beta=0.8, min_bandwidth=path.bandwidths[0, 0]).fit(X)
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(grid, np.exp(wide.score_samples(along)), label="initial bandwidth")
axis.plot(grid, np.exp(density.score_samples(along)), label="by the Rodeo")
axis.plot(grid, np.exp(-0.5 * ((grid - 0.5) / 0.05) ** 2) / 0.05 / np.sqrt(2 * np.pi), "k:", label="truth")
axis.set(xlabel="first variable", ylabel="density", title="Density along the first variable")
axis.legend()
plt.show()

# %%
# ``RodeoClassifier`` runs the Rodeo for each class at every row. ``RodeoPathDisplay`` draws both panels for
# one row and one class.

from corral import RodeoClassifier  # noqa: E402
from corral.datasets import make_ten_groups  # noqa: E402

X, y = make_ten_groups(100, random_state=0)
classifier = RodeoClassifier().fit(X, y)
RodeoPathDisplay.from_estimator(classifier, X[:1] + 0.001, label=1)
plt.show()
