"""The methods that the paper compares with; each file has one method and its registry entry."""
