"""Commands on results: records, the paper's tables and figures, plots, the report."""
