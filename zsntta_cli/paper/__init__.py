"""The paper's tables, measured beside the published numbers."""
