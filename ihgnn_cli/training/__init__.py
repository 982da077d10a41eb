"""Training and the devices it runs on."""
