"""Methods that pass images through an encoder and change it; all but `settings` import torch.

`run(data, options, threshold)` yields its decisions on the next items of the stream, in order, as
soon as it has them; what it changed of the encoder is as it was when it ends.
"""
