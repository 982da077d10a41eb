"""Models outside of torch: onnxruntime and what it runs on; `load(path).predict(graphs)`."""

from ihgnn_cli.deploy.runtime import Predictor, load
from ihgnn_cli.training.prediction import Prediction

__all__ = ["Prediction", "Predictor", "load"]
