"""A resumable job queue: units, a result store with claims, worker processes, Ray."""
