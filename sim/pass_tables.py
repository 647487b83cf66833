"""Tables about single passes of language models: beside measured times, and over models, slices and contexts."""

from __future__ import annotations

from sim.tables import Column, DType, TableSpec

_MODEL = Column("model", DType.TEXT, "", "key of the model")
_CHIP = Column("chip", DType.TEXT, "", "key of the chip")
_BATCH = Column("batch", DType.INT, "sequences", "sequences of the pass")

MEASURED_TIMES = TableSpec(
    "measured_times",
    "time of a pass or a request that others measured",
    (
        Column("group", DType.TEXT, "", "under which errors are summed up"),
        _MODEL,
        _CHIP,
        Column("shape", DType.TEXT, "chips", "slice; of GPUs tensor, or tensor x pipeline"),
        Column("what", DType.TEXT, "", "prefill, decode, request, prompt_and_steps or time_per_token"),
        _BATCH,
        Column("input_tokens", DType.INT, "tokens", "prompt, or context before the first step"),
        Column("output_tokens", DType.INT, "tokens", "answer; 0 for a prefill"),
        Column("weights", DType.TEXT, "", "number format of the weights"),
        Column("attention", DType.TEXT, "", "how the cache of a step is spread"),
        Column("layout", DType.TEXT, "", "how weights meet tokens"),
        Column("measured_s", DType.FLOAT, "s", "what others measured"),
        Column("computed_s", DType.FLOAT, "s", "what is computed here"),
        Column("error", DType.FLOAT, "1", "computed over measured, less 1"),
        Column("beyond_rounding", DType.FLOAT, "1", "the part of it that the rounding of the row does not explain"),
        Column("mark", DType.TEXT, "", "V primary source, V2 a text that quotes it, R recalled: not published"),
        Column("counted", DType.BOOL, "", "whether it counts in the errors of its group"),
        Column("stack", DType.TEXT, "", "software stack whose constants were used"),
        Column("source", DType.TEXT, "", "where the time stands"),
    ),
)
ERRORS_OF_TIMES = TableSpec(
    "errors_of_times",
    "group of measured times",
    (
        Column("group", DType.TEXT, "", "name of the group"),
        Column("rows", DType.INT, "", "rows behind it: those that count, or all where none does"),
        Column("counted", DType.BOOL, "", "whether they count"),
        Column("mean", DType.FLOAT, "1", "mean size of the errors"),
        Column("worst", DType.FLOAT, "1", "largest size of an error"),
        Column("mean_beyond_rounding", DType.FLOAT, "1", "the same for the part that rounding does not explain"),
        Column("worst_beyond_rounding", DType.FLOAT, "1", "the same for the part that rounding does not explain"),
        Column("marks", DType.TEXT, "", "marks of the rows and how many bear each"),
    ),
)
PASSES = TableSpec(
    "passes",
    "model, chip, slice, batch and context: one decode step, and one prompt of that length alone",
    (
        Column("label", DType.TEXT, "", "the row in words"),
        _MODEL,
        _CHIP,
        Column("slice", DType.TEXT, "chips", "what was asked for: a shape, or smallest"),
        _BATCH,
        Column("context_tokens", DType.INT, "tokens", "context of each sequence"),
        Column("shape", DType.TEXT, "chips", "the slice; empty where no slice of the chip's ladder fits"),
        Column("chips", DType.INT_OR_NONE, "chips", "its chips"),
        Column("fits", DType.BOOL, "", "weights and the cache of the batch fit; where not, what follows is blank"),
        Column("parameters", DType.FLOAT, "", "parameters of the model"),
        Column("kv_bytes_per_token", DType.FLOAT, "bytes", "keys and values of one token, all layers, held once"),
        Column("maximum_context_tokens", DType.INT_OR_NONE, "tokens", "longest context that the busiest chip holds"),
        Column("kv_overtakes_tokens", DType.FLOAT, "tokens", "context from which a step reads more cache than weights"),
        Column("step_s", DType.FLOAT, "s", "one decode step: time per token of each sequence"),
        Column("compute_and_weights_s", DType.FLOAT, "s", "of it arithmetic and reading weights"),
        Column("kv_read_s", DType.FLOAT, "s", "of it reading the cache"),
        Column("collectives_s", DType.FLOAT, "s", "of it moving data between chips"),
        Column("other_s", DType.FLOAT, "s", "of it all else: fixed times, activations, sampling"),
        Column("lower_bound_s", DType.FLOAT, "s", "the step with all parts overlapped at peak rates"),
        Column("binds", DType.TEXT, "", "the part that takes longest"),
        Column("chip_s_per_token", DType.FLOAT, "chip s", "chips x step / batch"),
        Column("weight_bytes_per_token", DType.FLOAT, "bytes", "weights read from memory per token, all chips"),
        Column("kv_read_bytes_per_token", DType.FLOAT, "bytes", "cache read from memory per token, all chips"),
        Column("link_bytes_per_token", DType.FLOAT, "bytes", "taken in over links and networks per token, all chips"),
        Column("prefill_s", DType.FLOAT, "s", "one prompt of that length alone, in the fastest layout"),
        Column("prefill_layout", DType.TEXT, "", "that layout"),
    ),
)
