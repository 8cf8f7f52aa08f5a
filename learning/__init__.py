"""Learning: unlimited made-up migrations, the encoder's training on them, and its adapter in GGUF.

It stands on top beside cli: nothing that runs a job imports it, and what it trains with is in an environment of its own.
"""
