"""Methods that pass images through an encoder and change it; most modules import torch.

`run(method)` yields the decisions of a method of settings.py on the next items of the stream, in
order, as soon as it has them. When it ends, the encoder is as it was before.
"""
