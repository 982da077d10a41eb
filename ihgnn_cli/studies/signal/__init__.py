"""What is attainable on a data set before any network is trained."""
