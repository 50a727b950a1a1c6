"""Speed, growth, memory, start-up and accuracy of corral, each beside a peer or a target.

``python -m benchmarks`` runs them all, ``python -m benchmarks list`` names them. Seconds say little about
another machine, so what is reported is ratios of times that were measured alternately in one run.
"""
