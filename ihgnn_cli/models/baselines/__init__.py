"""The methods that the paper compares with: one file each, an entry of the registry in each."""
