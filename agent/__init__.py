"""The agent: surveys both systems, decides on the ladder, edits the plan and drives the engine."""
