"""Using trained models: encoding graphs, predicting, measuring and explaining; no torch needed."""
