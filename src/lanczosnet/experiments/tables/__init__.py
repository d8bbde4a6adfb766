"""The paper's tables: which cells each has, and what stands beside them."""
