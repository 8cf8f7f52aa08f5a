"""What a person types and sees: one file a verb, views in cli.views. No decisions, no SQL."""
