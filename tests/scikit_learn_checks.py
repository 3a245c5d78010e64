"""Which of scikit-learn's own checks a classifier cannot pass whose Y is items x labels, each yes, no or unknown."""

CODES = "calls the two classes other than 0 and 1; an entry is 1 (yes), 0 (no) or NaN (unknown), the rest is refused"
SHAPE = "wants one dimension, or two columns, for one label; predictions are items x labels, also for one label"
KEYWORD = "gives y by its keyword, and the argument is called Y: a public name, nothing about items x labels"
EXPECTED_FAILURES = {
    "check_classifier_data_not_an_array": CODES,
    "check_classifiers_classes": CODES,
    "check_estimator_sparse_array": CODES,
    "check_estimator_sparse_matrix": CODES,
    "check_estimators_dtypes": CODES,
    "check_fit2d_1feature": CODES,
    "check_sample_weights_not_an_array": CODES,
    "check_sample_weights_not_overwritten": CODES,
    "check_sample_weights_pandas_series": CODES,
    "check_sample_weights_shape": CODES,
    "check_sample_weight_equivalence_on_dense_data": KEYWORD,
    "check_sample_weight_equivalence_on_sparse_data": KEYWORD,
    "check_decision_proba_consistency": SHAPE,
    "check_classifiers_train": SHAPE,
    "check_classifier_multioutput": "indexes classes_ as those of one label; it has two for each label, [L, 2]",
}
