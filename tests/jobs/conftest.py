"""A PostgreSQL of its own on loopback, from the packages that are there."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def _binaries() -> Path:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    found = shutil.which("initdb")
    if found:
        folders.append(Path(found).parent)
    if not folders:
        pytest.skip("PostgreSQL's initdb and pg_ctl are not installed")
    return folders[-1]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def postgres() -> Iterator[str]:
    """URL of an empty database."""
    binaries = _binaries()
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("the driver psycopg is not installed (probelight[postgres])")
    # PostgreSQL refuses root, so root lends its folder and its process to nobody.
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    folder = Path(tempfile.mkdtemp(prefix="probelight-postgres-"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    identity = {"user": user.pw_uid, "group": user.pw_gid} if os.geteuid() == 0 else {}

    def call(program: str, *arguments: str) -> None:
        with (Path(tempfile.gettempdir()) / f"{folder.name}.out").open("w+") as out:
            done = subprocess.run(
                [str(binaries / program), *arguments],
                cwd=folder,
                stdout=out,
                stderr=out,
                extra_groups=[] if identity else None,
                **identity,
            )
            out.seek(0)
            assert done.returncode == 0, out.read()

    data, port = str(folder / "data"), _free_port()
    try:
        call("initdb", "-D", data, "-U", "probelight", "-A", "trust", "-N")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        call("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql+psycopg://probelight@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)
        (Path(tempfile.gettempdir()) / f"{folder.name}.out").unlink(missing_ok=True)
