r"""Shapley values: the contribution of each variable to a number v(S) that depends on a set S of variables.

Here v(S) is computed from the values of the variables in S, with all other variables integrated out. Put the
variables in some order, and let S be the set of the variables before variable j. The contribution of j is the
mean of :math:`v(S \cup \{j\}) - v(S)` over all orders (Shapley, 1953). Contributions have four properties.
They sum to v of all variables minus v of the empty set. A variable that never changes v has contribution 0.
Two variables that always change v equally have equal contributions. The contributions to a sum of two numbers
are the sums of the contributions to each number.

With few variables the mean over all orders is computed exactly. With more variables it is estimated from
pairs of orders: a random order and its reverse. The estimate is exact if v is a sum of functions of at most
two variables each. Along each order the differences sum to v of all variables minus v of the empty set, and
therefore the estimates do, too. The standard error is the standard error of the mean over pairs of orders.

Terms: a coalition is a set of variables. The players are the variables that may be in a coalition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers

# With at most this number of players, v is evaluated for all sets.
MOST_EXACT = 10

# Bounds of the number of orders, reversed orders included. Within these bounds, the number of orders times
# the number of factors of kernels that one order evaluates for a sample is at most _MOST_KERNELS.
_MOST_ORDERS, _FEWEST_ORDERS = 40, 8
_MOST_KERNELS = 8e6

# With a fixed seed all explanations use the same orders.
_SEED = 20_261


@dataclass(frozen=True, eq=False)
class Coalitions:
    """Sets of variables for which v is evaluated; the first set is empty."""

    members: Bools  # (n_sets, n_features) whether each variable is in each set
    # (n_sets,) index of an earlier set that lacks exactly one variable of this set; -1 for the empty set
    parent: Integers
    variable: Integers  # (n_sets,) index of the variable that the parent lacks; -1 for the empty set
    # (n_orders, n_players) indices of variables: random orders, each followed by its reverse; n_orders is 0
    # if `members` has all sets of players
    orders: Integers
    # (n_orders, n_players + 1) index of the set of the first k variables of each order, k = 0, 1, ...
    chains: Integers
    _walks: dict[bytes, Walk] = field(default_factory=dict)

    @classmethod
    def choose(cls, players: Integers, n_features: int, n_kernels: float) -> Coalitions:
        """Choose all sets if there are few players, otherwise the sets along random orders.

        Parameters
        ----------
        players : (n_players,) indices of the variables that may be in a set.
        n_features : number of variables.
        n_kernels : number of factors of kernels that one order evaluates for one sample. The more there are,
            the fewer orders are used. The smallest number of orders is enough for means over samples.
        """
        if players.size <= MOST_EXACT:
            return cls.all(players, n_features)
        n_orders = int(np.clip(_MOST_KERNELS / max(n_kernels, 1), _FEWEST_ORDERS, _MOST_ORDERS))
        return cls.sampled(players, n_features, n_orders // 2)

    @classmethod
    def all(cls, players: Integers, n_features: int) -> Coalitions:
        """Return all sets of players; bit k of the index of a set is 1 if the set contains player k."""
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
        """Return the sets along `n_pairs` random orders and their reverses."""
        random = np.random.RandomState(seed)
        orders = np.empty((2 * n_pairs, players.size), dtype=np.int64)
        for pair in range(n_pairs):
            orders[2 * pair] = random.permutation(players)
            orders[2 * pair + 1] = orders[2 * pair, ::-1]
        numbers = {0: 0}  # index of each set; the bits of a key are the variables in the set
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
        """Whether `members` has all sets of players."""
        return not len(self.orders)

    def walk(self, used: Integers) -> Walk:
        """Return the sets restricted to the variables (n_used,) that a density uses."""
        key = used.tobytes()
        if key not in self._walks:
            self._walks[key] = Walk.project(self, used)
        return self._walks[key]

    @cached_property
    def columns(self) -> Floats:
        """(n_features, n_sets) 1 if the variable is in the set, otherwise 0."""
        return np.ascontiguousarray(self.members.T, dtype=np.float64)

    def sums(self, values: Floats) -> Floats:
        """Sum values (n_samples, n_features) over the variables in each set: (n_samples, n_sets)."""
        sums: Floats = values @ self.columns
        return sums

    def contributions(self, v: Floats) -> tuple[Floats, Floats]:
        """Return contributions of the variables and their standard errors, both (n_samples, n_features).

        `v` (n_samples, n_sets) must be finite.
        """
        mean = np.zeros((len(v), self.members.shape[1]))
        if self.exact:
            # BLAS rounds a single row differently from the same row in a batch. If log odds are large, this
            # would change digits of small contributions.
            return np.vecdot(v[:, np.newaxis], self._shapley_weights().T), mean
        squares = np.zeros(mean.shape)
        n_pairs = len(self.orders) // 2
        for pair in range(n_pairs):
            pair_mean = np.zeros(mean.shape)
            for r in (2 * pair, 2 * pair + 1):
                pair_mean[:, self.orders[r]] += 0.5 * np.diff(v[:, self.chains[r]], axis=1)
            change = pair_mean - mean  # Welford's update: a difference of squares would lose digits
            mean += change / (pair + 1)
            squares += change * (pair_mean - mean)
        error = np.sqrt(squares / (max(n_pairs - 1, 1) * n_pairs))
        return mean, error

    def _shapley_weights(self) -> Floats:
        """Return weights (n_sets, n_features) of v in the contributions.

        Of all orders of p players, one in binom(p, k) begins with the k players of a given set.
        """
        players = self.members.any(axis=0)
        p = int(players.sum())
        size = self.members.sum(axis=1).tolist()
        joined = [1.0 / (k * math.comb(p, k)) if k else 0.0 for k in size]
        absent = [-1.0 / ((p - k) * math.comb(p, k)) if k < p else 0.0 for k in size]
        weights = np.where(self.members, np.array([joined]).T, np.array([absent]).T)
        return np.where(players, weights, 0.0)


class Walk(NamedTuple):
    """The sets restricted to the variables that one density uses, in the order of a depth-first search.

    Each step of the search adds one variable to a set that an earlier step has reached.
    """

    depth: Integers  # (n_steps,) number of variables in the set before the step
    variable: Integers  # (n_steps,) added variable: its position among the variables that the density uses
    step_of_set: Integers  # (n_sets,) index of the step that reaches each set; -1 if no step is needed
    # cache of `pool.marginals.residual_directions` for normal kernels; the key is a root of the covariance
    directions: dict[bytes, tuple[Floats, Floats]]

    @classmethod
    def project(cls, coalitions: Coalitions, used: Integers) -> Walk:
        """Restrict the sets to the variables (n_used,) that a density uses, and merge equal sets."""
        position = {int(j): k for k, j in enumerate(used)}
        seen = [0] * len(coalitions.parent)  # the used variables in each set, as bits
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
        """Return the value of each set (n_samples, n_sets) from the values of steps (n_samples, n_steps).

        The value of a set that contains no used variable is 0.
        """
        padded = np.zeros((len(values), values.shape[1] + 1))
        padded[:, :-1] = values
        set_values: Floats = padded[:, self.step_of_set]
        return set_values
