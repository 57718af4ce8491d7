"""The paper's tables and figures, measured beside the published numbers."""
