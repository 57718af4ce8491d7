"""The report: kept results as one HTML page that needs no other file."""

TITLE = "Zero-shot noisy test-time adaptation"
ACCURACIES = (
    "Acc_S is the share of ID samples that are called clean and classified correctly. Acc_N is the "
    "share of OOD samples that are called noise. Acc_H is their harmonic mean. ± is the standard "
    "deviation over seeds; a seed is an order of the stream."
)
