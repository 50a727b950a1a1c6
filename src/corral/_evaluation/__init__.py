"""How well classifiers predict rows that they have not seen, side by side."""
