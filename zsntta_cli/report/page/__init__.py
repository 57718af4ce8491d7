"""The report: kept results as one HTML page that needs no other file."""

TITLE = "Zero-shot noisy test-time adaptation"
