r"""What each variable contributes to a number that depends on which variables are known.

Let v(S) be that number when the variables S are known, and all others integrated out. The contribution of
variable j is the mean of :math:`v(S \cup \{j\}) - v(S)` over all orders in which the variables may become
known, S being those before j (Shapley, 1953). Contributions add up to v of all variables less v of none; a
variable that never makes a difference contributes nothing; two that always make the same difference
contribute the same; and contributions to a sum are the sums of contributions.

With few variables the mean is exact: every set counts by the number of orders that pass through it. With more
it is taken over some random orders, each together with its reverse, which is exact where no more than two
variables interact. The contributions along any order add up, so that their means do. The standard error is
that of the mean over the pairs of orders.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers

# Up to so many variables all sets are looked at.
MOST_EXACT = 10

# Random orders, with their reverses; fewer where so many kernels would be evaluated at a sample.
_MOST_ORDERS, _FEWEST_ORDERS = 40, 8
_MOST_KERNELS = 8e6

# Orders are the same in every explanation.
_SEED = 20_261


@dataclass(frozen=True, eq=False)
class Coalitions:
    """Sets of variables of which v is needed; the first one is empty."""

    members: Bools  # (n_sets, n_features) which variables are in each set
    parent: Integers  # (n_sets,) another set, further above, that has one variable less; -1 for the empty set
    variable: Integers  # (n_sets,) the variable that it lacks; -1 for the empty set
    # (n_orders, n_players) variables in the order in which they become known, a random order and its reverse
    # by turns; none if all sets are there
    orders: Integers
    chains: Integers  # (n_orders, n_players + 1) the sets that each order passes through
    _walks: dict[bytes, Walk] = field(default_factory=dict)

    @classmethod
    def choose(cls, players: Integers, n_features: int, n_kernels: float) -> Coalitions:
        """Take all sets of few players, the variables that take part, or those on random orders of many.

        Orders are fewer, the more factors of kernels an order takes at one sample (`n_kernels`); the fewest
        are enough for means over samples.
        """
        if players.size <= MOST_EXACT:
            return cls.all(players, n_features)
        n_orders = int(np.clip(_MOST_KERNELS / max(n_kernels, 1), _FEWEST_ORDERS, _MOST_ORDERS))
        return cls.sampled(players, n_features, n_orders // 2)

    @classmethod
    def all(cls, players: Integers, n_features: int) -> Coalitions:
        """Take all sets: the bits of its number say which players are in a set."""
        numbers = np.arange(1 << players.size)
        members = np.zeros((numbers.size, n_features), dtype=bool)
        members[:, players] = numbers[:, np.newaxis] >> np.arange(players.size) & 1
        highest = np.array([number.bit_length() - 1 for number in numbers.tolist()])
        parent = np.where(numbers > 0, numbers - (1 << np.maximum(highest, 0)), -1)
        variable = np.where(numbers > 0, np.append(players, -1)[highest], -1)
        none = np.empty((0, players.size), dtype=np.int64)
        return cls(members, parent, variable, none, np.empty((0, players.size + 1), dtype=np.int64))

    @classmethod
    def sampled(cls, players: Integers, n_features: int, n_pairs: int, seed: int = _SEED) -> Coalitions:
        """Take the sets on pairs of random orders."""
        random = np.random.RandomState(seed)
        orders = np.empty((2 * n_pairs, players.size), dtype=np.int64)
        for pair in range(n_pairs):
            orders[2 * pair] = random.permutation(players)
            orders[2 * pair + 1] = orders[2 * pair, ::-1]
        numbers = {0: 0}  # by which variables are in a set, as bits
        parent, variable = [-1], [-1]
        chains = np.zeros((len(orders), players.size + 1), dtype=np.int64)
        for order, chain in zip(orders.tolist(), chains, strict=True):
            bits = 0
            for k, j in enumerate(order):
                bits |= 1 << j
                if bits not in numbers:
                    numbers[bits] = len(parent)
                    parent.append(int(chain[k]))
                    variable.append(j)
                chain[k + 1] = numbers[bits]
        members = np.zeros((len(parent), n_features), dtype=bool)
        for number in range(1, len(parent)):
            members[number] = members[parent[number]]
            members[number, variable[number]] = True
        return cls(members, np.array(parent), np.array(variable), orders, chains)

    @property
    def exact(self) -> bool:
        """Whether all sets are there."""
        return not len(self.orders)

    def walk(self, used: Integers) -> Walk:
        """The sets, projected onto the variables (n_used,) that a density uses."""
        key = used.tobytes()
        if key not in self._walks:
            self._walks[key] = Walk.project(self, used)
        return self._walks[key]

    @cached_property
    def columns(self) -> Floats:
        """1 for the members (n_features, n_sets) of each set, and 0 for others."""
        return np.ascontiguousarray(self.members.T, dtype=np.float64)

    def sums(self, values: Floats) -> Floats:
        """Sums (n_samples, n_sets) of the values (n_samples, n_features) of the members of each set."""
        sums: Floats = values @ self.columns
        return sums

    def contributions(self, v: Floats) -> tuple[Floats, Floats]:
        """Mean contributions of the variables, and their standard errors, both (n_samples, n_features).

        `v` (n_samples, n_sets) has to be finite.
        """
        mean = np.zeros((len(v), self.members.shape[1]))
        if self.exact:
            # Log odds may be so large that a product by BLAS, which rounds a row alone in another way than
            # rows together, would change digits of small contributions.
            return np.vecdot(v[:, np.newaxis], self._shapley_weights().T), mean
        squares = np.zeros(mean.shape)
        n_pairs = len(self.orders) // 2
        for pair in range(n_pairs):
            pair_mean = np.zeros(mean.shape)
            for r in (2 * pair, 2 * pair + 1):
                pair_mean[:, self.orders[r]] += 0.5 * np.diff(v[:, self.chains[r]], axis=1)
            change = pair_mean - mean  # Welford's update, since squares of large means cancel
            mean += change / (pair + 1)
            squares += change * (pair_mean - mean)
        error = np.sqrt(squares / (max(n_pairs - 1, 1) * n_pairs))
        return mean, error

    def _shapley_weights(self) -> Floats:
        """Weights (n_sets, n_features) of v: one in p over k orders passes a set with k of p variables."""
        players = self.members.any(axis=0)
        p = int(players.sum())
        size = self.members.sum(axis=1).tolist()
        joined = [1.0 / (k * math.comb(p, k)) if k else 0.0 for k in size]
        absent = [-1.0 / ((p - k) * math.comb(p, k)) if k < p else 0.0 for k in size]
        weights = np.where(self.members, np.array([joined]).T, np.array([absent]).T)
        return np.where(players, weights, 0.0)


class Walk(NamedTuple):
    """The sets of some coalitions as one density sees them, in the order in which kernels visit them."""

    depth: Integers  # (n_steps,) how many variables are there before each step
    variable: Integers  # (n_steps,) the one that is added, its position among those that the density uses
    step_of_set: Integers  # (n_sets,) the step that reaches each set; -1 for sets without any variable used
    # of normal kernels of one covariance, by a root of it; see `pool.marginals`
    directions: dict[bytes, tuple[Floats, Floats]]

    @classmethod
    def project(cls, coalitions: Coalitions, used: Integers) -> Walk:
        """Project the sets onto the variables (n_used,) that a density uses, and merge duplicates."""
        position = {int(j): k for k, j in enumerate(used)}
        seen = [0] * len(coalitions.parent)  # which of the variables used are in each set, as bits
        children: dict[int, list[tuple[int, int]]] = {0: []}
        steps = zip(coalitions.parent.tolist(), coalitions.variable.tolist(), strict=True)
        for number, (parent, j) in enumerate(steps):
            seen[number] = above = seen[parent] if parent >= 0 else 0
            if j in position:
                seen[number] |= 1 << position[j]
            if seen[number] not in children:
                children[seen[number]] = []
                children[above].append((seen[number], position[j]))
        steps_by_bits = {0: -1}
        visited: list[tuple[int, int]] = []
        stack = [(*child, 0) for child in reversed(children[0])]
        while stack:
            bits, k, depth = stack.pop()
            steps_by_bits[bits] = len(visited)
            visited.append((depth, k))
            stack += [(*child, depth + 1) for child in reversed(children[bits])]
        depths, variables = np.array(visited, dtype=np.int64).reshape(-1, 2).T.copy()
        return cls(depths, variables, np.array([steps_by_bits[bits] for bits in seen]), {})

    def spread(self, values: Floats) -> Floats:
        """Values (n_samples, n_sets) of all sets from those (n_samples, n_steps) of the steps."""
        padded = np.zeros((len(values), values.shape[1] + 1))
        padded[:, :-1] = values
        set_values: Floats = padded[:, self.step_of_set]
        return set_values
