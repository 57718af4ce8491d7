"""The paper's tables and figures, measured next to the published numbers."""
