from .box import Box, CommandBox, FunctionBox, Outputs, Pair, SampleBox, function_box, read_samples
from .given import parse_pair, read_pairs, shown
from .pairs import Inputs, inputs_of, require_relation
from .samples import encoder_of
from .targets import as_mechanism, command_box, load_function, sample_box, target_box

__all__ = [
    "Box",
    "CommandBox",
    "FunctionBox",
    "Inputs",
    "Outputs",
    "Pair",
    "SampleBox",
    "as_mechanism",
    "command_box",
    "encoder_of",
    "function_box",
    "inputs_of",
    "load_function",
    "parse_pair",
    "read_pairs",
    "read_samples",
    "require_relation",
    "sample_box",
    "shown",
    "target_box",
]
