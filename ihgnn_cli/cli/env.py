"""`ihgnn env`: versions, devices and folders of this installation."""

from dataclasses import asdict

from ihgnn_cli.cli.help import examples
from ihgnn_cli.cli.options import AsJson

EXAMPLES = examples(("ihgnn env", "For a bug report"))


def env(as_json: AsJson = False) -> None:
    """Print versions, devices and folders, for a bug report."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.environment import describe_environment

    if console.err.is_terminal:
        console.note("Starting PyTorch and onnxruntime ...")
    found = describe_environment()
    if as_json:
        console.show_json(asdict(found))
        return
    lines = [("ihgnn", found.ihgnn), ("code_sha256", found.code_sha256)]
    lines += [("python", found.python), ("platform", found.platform)]
    lines += list(found.packages.items())
    if isinstance(found.cuda_devices, str):
        lines.append(("torch starts", f"no: {found.cuda_devices}"))
    else:
        lines += [
            (f"cuda:{device.index}", f"{device.name}, {device.memory_bytes / 2**30:.1f} GiB")
            for device in found.cuda_devices
        ] or [("cuda", "no device that torch can use")]
    if isinstance(found.onnx_providers, str):
        lines.append(("onnxruntime starts", f"no: {found.onnx_providers}"))
    else:
        lines += [
            (provider, "loads" if loads else "listed, but does not load here")
            for provider, loads in found.onnx_providers.items()
        ]
    lines += [("data root", found.data_root), ("cache", found.cache)]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:<{width}}  {value}")
