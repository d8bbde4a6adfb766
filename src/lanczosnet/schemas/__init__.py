"""What the files that we read must look like: one schema per file, checked once, when it is read.

| file | schema |
|---|---|
| `config.json` of a model directory | `model_config.ModelConfig` |
| the record in `checkpoint.safetensors` | `checkpoint_record.CheckpointRecord` |
| `train --config` | `run_config.RunConfig` |
| result lines, claims of a store | `result_lines.ResultLine`, `result_lines.RunClaim` |
| packed molecules | `packed_molecules.PackedHeader` and the laws of its arrays |
| arrays of npz and `.pt` graphs | the laws in `arrays` |

`limits` says how large the numbers in them may be. Nothing here imports torch.
"""
