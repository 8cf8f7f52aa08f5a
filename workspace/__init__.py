"""What is believed, what is done, what was learnt: on disk, append-only, inspectable at any point."""
