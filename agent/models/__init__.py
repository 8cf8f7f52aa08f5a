"""Where decisions come from: one file a kind of model."""
