"""Sizes and types with which the kernels of the Triton back end are compiled: QM8's."""

FLOAT, DOUBLE = "*fp32", "*fp64"
ATTENTION = {"WIDTH": 28, "HEADS": 56, "PER_CHANNEL": 8, "OUT": 16, "SLOPE": 0.2, "NODES": 32, "CHANNELS": 16}
GRU = {"INPUT": 384, "HIDDEN": 1280, "STATE": 132, "WIDTH": 128, "SIZE": 256}
MEANS = {"WIDTH": 36, "ALONE": 28, "OUT": 16, "COLUMNS": 20, "PAIRED": True, "SPACE": 32}
LEARNED = {"N": 28, "C": 64, "LOOPS": True, "NODES": 32, "TINY": 1e-38}
DIFFERENCES = {"N": 28, "S": 35, "CLOSE": 3e-4, "NODES": 32, "ROWS": 16, "SCALES": 8}
SUMS = {"SLOTS": 4, "CHANNELS": 132, "SUMS": 4, "BLOCK": 256}
SUMS_TYPES = {"index": "*i64", "num_sums": "i32", "nothing": "i32"}
ENDS = {"CHANNELS": 1024, "RELU": True, "BLOCK": 1024}
ENDS_TYPES = {"index": "*i64", "senders": "*i64", "receivers": "*i64"}
ENDS_TYPES |= {"nothing": "i32", "no_sender": "i32", "no_receiver": "i32"}
TERMS = {"N": 36, "K": 36, "L": 7, "SHORT": 0, "LONG": 8, "TERMS": 14, "NODES": 64, "STEPS": 16}
MESSAGES = {"N": 28, "C": 7, "WIDTH": 128, "EXTRA": 4, "ENTERED": 1280, "NODES": 32, "EXTRAS": 4, "COLUMNS": 64}
LANCZOS = {"N": 28, "K": 20, "NODES": 32, "VECTORS": 32}
ITERATION = {"steps": "*i64", "tolerance": "fp32"}
JACOBI = {"SIZE": 32, "SWEEPS": 9, "CLOSE": 1e-28}
ADAM = {"BETA1": 0.9, "BETA2": 0.999, "LOG_BETA1": -0.1, "LOG_BETA2": -0.001, "EPS": 1e-8, "DECAY": 0.1}
ADAM |= {"DECOUPLED": True, "CLIPS": True, "MAX_NORM": 5.0, "TINY": 1e-6, "SIZE": 1024}
PAIR = {"GRAPH": 4704, "A": 28, "B": 6, "C": 28, "STRIDE_A": 168, "STRIDE_B": 28, "STRIDE_C": 1}
PAIR |= {"GROWS_A": True, "GROWS_B": False, "GROWS_C": True, "GATHERS": True, "SIZE": 1024}
PAIR_TYPES = {"graphs": "*i64", "width": "i32"}
ROWS = {"ENTRIES": 8, "CHANNELS": 64}
ROWS_TYPES = {"begin": "*i32", "end": "*i32", "column": "*i32", "num_channels": "i32"}
BLOCKS = {"DOUBLE": False, "ROWS": 32, "ENTRIES": 32}
BLOCKS_TYPES = {"begin": "*i64", "end": "*i64", "column": "*i32", "num_rows": "i32"}
NORM = {"ROWS": 32, "CHANNELS": 64}
NORM_TYPES = {"num_rows": "i32", "num_channels": "i32", "epsilon": "fp32", "programs": "i32"}
LARGE = {"VECTORS": 32, "NODES": 256, "THREADS": 128, "ROWS": 16}
LARGE_TYPES = {"bounds": "*i64", "num_nodes": "i32", "count": "i32", "num_programs": "i32", "width": "i32"}
LARGE_TYPES |= {"sums": DOUBLE, "known": DOUBLE, "other": DOUBLE, "arrived": "*i32"}
LARGE_TYPES |= {"threshold": DOUBLE, "num_steps": "i32"}
TYPES = {"table": "*i64", "found": "*i64"} | PAIR_TYPES  # of nodes
# Of QM8's sizes: module, kernel, the type of its arguments that has no other, the others', constants, warps.
KERNELS = {
    "attention": ("attention", "_forward", FLOAT, {}, ATTENTION, 1),
    "attention, backwards": ("attention", "_backward", FLOAT, {}, ATTENTION, 1),
    "gru": ("gru", "_forward", FLOAT, {"rows": "i32"}, {**GRU, "COPY": 132}, 4),
    "gru, backwards": ("gru", "_backward", FLOAT, {"rows": "i32"}, {**GRU, "OF_HIDDEN": 1280}, 4),
    "readout": ("gated_mean", "_forward", FLOAT, {"num_blocks": "i32"}, {**MEANS, "ROWS": 32}, 4),
    "readout, backwards": (
        "gated_mean",
        "_backward",
        FLOAT,
        {"num_blocks": "i32"},
        {**MEANS, "ROWS": 64},
        4,
    ),
    "sparse product": (
        "csr_product",
        "_rows_times",
        FLOAT,
        ROWS_TYPES,
        {"DOUBLE": False, "WEIGHTED": True, **ROWS},
        2,
    ),
    "sparse product, double": (
        "csr_product",
        "_rows_times",
        DOUBLE,
        ROWS_TYPES,
        {"DOUBLE": True, "WEIGHTED": True, **ROWS},
        2,
    ),
    "sparse product, no values": (
        "csr_product",
        "_rows_times",
        FLOAT,
        ROWS_TYPES | {"begin": "*i64", "end": "*i64", "values": "*i32"},
        {"DOUBLE": False, "WEIGHTED": False, **ROWS},
        2,
    ),
    "sparse product, one channel": ("csr_product", "_blocks_times", FLOAT, BLOCKS_TYPES, BLOCKS, 4),
    "learned S": ("learned_affinity", "_forward", FLOAT, {}, LEARNED, 4),
    "learned S, backwards": ("learned_affinity", "_backward", FLOAT, {}, LEARNED, 4),
    "differences": ("divided_differences", "_weighted", FLOAT, {}, DIFFERENCES, 4),
    "loss": (
        "mean_loss",
        "_mean_loss",
        FLOAT,
        {"n": "i32"},
        {"TARGETS": 16, "SQUARE": True, "SIZE": 1024},
        4,
    ),
    "sums": ("endpoint_messages", "_sum_slots", FLOAT, SUMS_TYPES, SUMS, 4),
    "ends": ("endpoint_messages", "_endpoint_messages", FLOAT, ENDS_TYPES, {**ENDS, "SLOTS": 5}, 4),
    "ends, backwards": (
        "endpoint_messages",
        "_endpoint_messages_backward",
        FLOAT,
        ENDS_TYPES,
        {**ENDS, "SENDERS": 5, "RECEIVERS": 5},
        4,
    ),
    "terms": ("spectral_operators", "_operators", FLOAT, {}, TERMS, 4),
    "terms, backwards": ("spectral_operators", "_responses", FLOAT, {}, TERMS, 4),
    "messages": ("gated_messages", "_aggregate", FLOAT, {"num_graphs": "i32"}, MESSAGES, 4),
    "messages, backwards": ("gated_messages", "_aggregate_backward", FLOAT, {"num_graphs": "i32"}, MESSAGES, 4),
    "messages of pairs": (
        "gated_messages",
        "_aggregate",
        FLOAT,
        {"num_graphs": "i32"},
        {**MESSAGES, "N": 36, "NODES": 64},
        4,
    ),
    "lanczos": ("lanczos_kernels", "iteration", DOUBLE, ITERATION, LANCZOS | {"REORTHOGONALIZE": True}, 4),
    "three terms": ("lanczos_kernels", "iteration", DOUBLE, ITERATION, LANCZOS | {"REORTHOGONALIZE": False}, 4),
    "large lanczos": ("large_lanczos", "_project", FLOAT, LARGE_TYPES, LARGE, 4),
    "large lanczos, first": ("large_lanczos", "_without", FLOAT, LARGE_TYPES, LARGE | {"LAST": False}, 4),
    "large lanczos, last": ("large_lanczos", "_without", DOUBLE, LARGE_TYPES, LARGE | {"LAST": True}, 4),
    "jacobi": ("jacobi", "_jacobi", DOUBLE, {"n": "i32"}, JACOBI, 4),
    "jacobi, tiny": ("jacobi", "_jacobi", DOUBLE, {"n": "i32"}, JACOBI | {"SIZE": 4}, 1),
    "layer norm": ("layer_norm", "_normalized", FLOAT, NORM_TYPES, NORM, 4),
    "layer norm, backwards": ("layer_norm", "_gradients", FLOAT, NORM_TYPES, NORM, 4),
    "adam": ("adam", "_adam", FLOAT, {"n": "i32"}, ADAM, 4),
    "lanczos, backwards": ("lanczos_kernels", "re_orthogonalized_sweep", DOUBLE, {}, LANCZOS, 4),
    "three terms, backwards": ("lanczos_kernels", "three_term_sweep", DOUBLE, {}, LANCZOS, 4),
    "pair": ("block_pairs", "_pair", FLOAT, PAIR_TYPES, PAIR, 4),
    "pair, types": ("block_pairs", "_pair", FLOAT, TYPES, PAIR, 4),
    "pair, gradients": ("block_pairs", "_pair", FLOAT, {"width": "i32"}, PAIR | {"GATHERS": False}, 4),
}
