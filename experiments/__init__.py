"""The paper's tables and figures, regenerated and set beside the published numbers.

`python -m experiments list` names the experiments, one file for each section of the numerical results:

=================  =======================================================  ================================
experiment         tables                                                   figures
=================  =======================================================  ================================
ten_groups         1 (accuracy, time), 2 (z-scores)                         Ex1: box plots, ten groups
shifted_groups     3 (means), 4 (accuracy), 5 (z-scores)                    Ex2: scatter of the group means
training_sizes     6 (accuracy), 7 (time), 8 (z-scores)
anuran             accuracy, precision and specificity, without and with    box plots, seven species
                   five columns of noise
waveform           none: the sentence that would give the result breaks     box plots, three classes
                   off
digits             accuracy, precision and specificity                      box plots, digits 1-5 and 6-0
rates              none: theorem 1, measured
=================  =======================================================  ================================

The published numbers are in `paper_values`, typed once; our own go to `results` as JSON lines, from which
`python -m experiments report` writes `RESULTS.md`, `tables` and `figures`.

Only public names of corral are used, and nothing of this folder is in the wheel.
"""
