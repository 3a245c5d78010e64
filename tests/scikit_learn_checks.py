"""Which of scikit-learn's own checks a classifier cannot pass whose Y is items x labels, each yes, no or unknown."""

ONE_D = "gives y as one column of classes; Y is items x labels, and a single column of classes is refused"
CODES = "calls the two classes 1 and 2; an entry is 1 (yes), 0 (no) or NaN (unknown), other numbers are refused"
EXPECTED_FAILURES = {
    "check_classifier_data_not_an_array": CODES,
    "check_estimators_dtypes": CODES,
    "check_fit2d_1feature": CODES,
    "check_classifiers_one_label": ONE_D,
    "check_classifiers_classes": ONE_D,
    "check_decision_proba_consistency": ONE_D,
    "check_classifiers_regression_target": ONE_D,
    "check_classifier_not_supporting_multiclass": ONE_D,
    "check_estimator_sparse_array": ONE_D,
    "check_estimator_sparse_matrix": ONE_D,
    "check_classifiers_train": "wants predictions in one dimension; ours are items x labels, also for one label",
    "check_classifier_multioutput": "indexes classes_ as one array; it is a list, the two classes of each label",
}
