"""Convex solvers: cross-validated logistic regressions for all labels, forests, and blends of them."""
