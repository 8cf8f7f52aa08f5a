"""The preview as one HTML page: rows of source and target side by side."""
