"""Sources and targets, one file a system; all that knows a driver lives here."""
