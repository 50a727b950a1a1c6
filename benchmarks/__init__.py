"""Benchmarks of speed, memory and accuracy of corral, compared with other libraries or with targets.

``python -m benchmarks`` runs all benchmarks, ``python -m benchmarks list`` lists their names. Seconds depend
on the machine, so many figures are ratios of two times that were measured alternately in the same run.
"""
