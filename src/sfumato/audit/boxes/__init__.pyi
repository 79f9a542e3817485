from .box import Box, CommandBox, FunctionBox, Outputs, Pair, SampleBox, function_box, read_samples
from .pairs import Inputs, inputs_of, require_relation
from .samples import encoder_of

__all__ = [
    "Box",
    "CommandBox",
    "FunctionBox",
    "Inputs",
    "Outputs",
    "Pair",
    "SampleBox",
    "encoder_of",
    "function_box",
    "inputs_of",
    "read_samples",
    "require_relation",
]
