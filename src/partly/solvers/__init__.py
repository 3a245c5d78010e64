"""What is solved, and not wandered to: logistic regressions, with strengths that folds choose, and blends of them."""
