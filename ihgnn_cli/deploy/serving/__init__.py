"""An HTTP service for exported models: friendly JSON and the Open Inference Protocol, in batches.

Needs the extra `serve` (Starlette, uvicorn, prometheus-client) and no torch.
"""
