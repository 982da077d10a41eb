"""A faster `models.ihgnn.IHGNN`: many models at once, with hand-written gradients."""
