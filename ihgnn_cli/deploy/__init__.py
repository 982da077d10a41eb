"""Models outside of torch: onnxruntime and what it runs on."""
