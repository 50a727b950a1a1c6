"""Tables and figures of the paper, regenerated and compared with the published numbers.

`python -m experiments list` lists the experiments. Each experiment is one section of the numerical results:

=================  =======================================================  ================================
experiment         tables                                                   figures
=================  =======================================================  ================================
ten_groups         1 (accuracy, time), 2 (z-scores)                         Ex1: box plots, ten groups
shifted_groups     3 (means), 4 (accuracy), 5 (z-scores)                    Ex2: scatter of the group means
training_sizes     6 (accuracy), 7 (time), 8 (z-scores)
anuran             accuracy, precision and specificity, without and with    box plots, seven species
                   five columns of noise
waveform           none: the sentence with the result is incomplete         box plots, three classes
digits             accuracy, precision and specificity                      box plots, digits 1-5 and 6-0
rates              none in the paper: rates of theorem 1, measured
=================  =======================================================  ================================

An experiment has cells (settings of one table entry) and methods (classifiers); a trial is one draw of
training and test rows. The published numbers are in `paper_values`. Results of `python -m experiments run`
are appended to `results` as JSON lines, from which `python -m experiments report` writes `RESULTS.md`,
`tables` and `figures`.

The experiments use only public names of corral, and are not in the wheel.
"""
