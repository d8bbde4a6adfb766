"""How training runs: loaders, executors, the fused optimizer, concurrent runs."""
