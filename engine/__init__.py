"""The plan and its execution: exact, fast, and without a decision of its own."""
