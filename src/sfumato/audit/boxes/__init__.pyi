from .box import Box, CommandBox, FunctionBox, Outputs, Pair, SampleBox
from .given import parse_pair, read_pairs, shown
from .pairs import Inputs, inputs_of
from .samples import encoder_of
from .targets import command_box, load_function, sample_box, target_box

__all__ = [
    "Box",
    "CommandBox",
    "FunctionBox",
    "Inputs",
    "Outputs",
    "Pair",
    "SampleBox",
    "command_box",
    "encoder_of",
    "inputs_of",
    "load_function",
    "parse_pair",
    "read_pairs",
    "sample_box",
    "shown",
    "target_box",
]
