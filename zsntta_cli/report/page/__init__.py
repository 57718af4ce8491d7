"""The report: results that are kept, as one HTML page that needs nothing beside it."""

TITLE = "Zero-shot noisy test-time adaptation"
BASELINE = "zs-clip"  # the method that gains are told from
