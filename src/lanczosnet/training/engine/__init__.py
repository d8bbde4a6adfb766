"""How training runs: devices, eager and captured steps, fused Adam, data on the device, concurrent runs."""

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("32-true", "32-exact", "bf16-mixed", "16-mixed", "64-true")
