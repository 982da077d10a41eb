"""The command line: parses and shows, computes nothing; the only code that prints."""
