"""The methods written plainly from their papers: what the package must agree with."""
