"""Speed, growth, memory, start-up and accuracy of corral, each beside a peer or a target.

``python -m benchmarks`` runs all of them, ``python -m benchmarks list`` names them. Seconds say little about
another machine, so most figures are ratios of times that were measured alternately in one run.
"""
