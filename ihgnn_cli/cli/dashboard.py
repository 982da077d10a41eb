"""A study in optuna-dashboard, on this machine only."""

import threading
import webbrowser
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, make_server

from ihgnn_cli.cli import console
from ihgnn_cli.errors import InputError

if TYPE_CHECKING:
    from optuna import Study

    from ihgnn_cli.studies.tuning.storage import Address


class _Quiet(WSGIRequestHandler):
    """Serves without a line for each request."""

    def log_message(self, *_: object) -> None:
        pass


def serve(study: "Study", where: "Address", port: int) -> None:
    """Show the study in a browser until Ctrl-C.

    Raises:
        InputError: optuna-dashboard is not installed, or the port is taken.
    """
    try:
        from optuna_dashboard import wsgi
    except ImportError as error:
        raise InputError(
            "optuna-dashboard is not installed: pip install 'ihgnn-cli[dashboard]'"
        ) from error
    try:
        server = make_server("127.0.0.1", port, wsgi(study._storage), handler_class=_Quiet)
    except OSError as error:
        raise InputError(
            f"Port {port} cannot be used: {error.strerror or error}. Give another --port."
        ) from error
    page = f"http://127.0.0.1:{server.server_port}/dashboard/studies/{study._study_id}"
    console.show(f"{study.study_name} ({where.masked}) is shown at {page}")
    console.out.file.flush()
    console.note("Press Ctrl-C to stop.")
    # In its own thread: a request handler would swallow a Ctrl-C during its answer.
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    if console.out.is_terminal:
        webbrowser.open(page)
    try:
        threading.Event().wait()
    finally:
        server.shutdown()
        server.server_close()
