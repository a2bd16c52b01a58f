"""The queue's storage: Optuna's tables in an SQLite file or a PostgreSQL database.

One trial is one queued cell. Optuna's own way of claiming a waiting trial reads its state and then
writes it, which on SQLite lets two workers have the same one. So every transaction on SQLite begins
with BEGIN IMMEDIATE, and every change of state is one compare-and-set in one transaction.
"""

from __future__ import annotations

import json
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy as sa
from optuna.trial import TrialState
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from storage.disk import disk_error
from storage.errors import UsageError
from storage.files import read_json, write_text_once
from storage.host import stopped_holders

BUSY_SECONDS = 60.0  # how long a transaction waits for another process's
_ATTEMPTS = 8  # at making the tables, which two processes may do at once

# The columns of Optuna's tables that the queue uses.
STUDIES = sa.table("studies", sa.column("study_id", sa.Integer))
TRIALS = sa.table(
    "trials",
    sa.column("trial_id", sa.Integer),
    sa.column("number", sa.Integer),
    sa.column("study_id", sa.Integer),
    sa.column("state", sa.Enum(TrialState)),
    sa.column("datetime_start", sa.DateTime),
    sa.column("datetime_complete", sa.DateTime),
)
ATTRIBUTES = sa.table(
    "trial_user_attributes",
    sa.column("trial_id", sa.Integer),
    sa.column("key", sa.String),
    sa.column("value_json", sa.Text),
)
HEARTBEATS = sa.table(
    "trial_heartbeats",
    sa.column("trial_id", sa.Integer),
    sa.column("heartbeat", sa.DateTime),
)


def open_study(
    output_dir: Path, url: str | None, create: bool = False, busy_seconds: float = BUSY_SECONDS
) -> optuna.Study:
    """The study that holds the queue of the sweep in `output_dir`.

    Args:
        output_dir: Folder of the sweep. A name of its own in it keeps sweeps apart that share a
            database.
        url: SQLAlchemy URL of the storage; OUTPUT_DIR/sweep.db when None.
        create: Make what is missing.
        busy_seconds: How long a transaction on SQLite waits for another process's.

    Raises:
        UsageError: If there is no such sweep, or the database cannot be used.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    name = sweep_name(output_dir, create)
    if name is None:
        raise UsageError(f"{output_dir}: no sweep is planned here; run `train.py sweep plan` first")
    if url is None:
        path = (output_dir / "sweep.db").resolve()
        if not create and not path.exists():
            raise UsageError(f"{path}: not there; run `train.py sweep plan`, or name --storage")
        url = f"sqlite:///{path}"
    try:
        sa.make_url(url).get_dialect()
    except (ArgumentError, ValueError):
        # The text is not repeated: it may hold a password.
        raise UsageError("--storage is not a URL like postgresql+psycopg://user@host/db") from None
    for attempt in range(_ATTEMPTS):
        try:
            return _study(url, name, create, busy_seconds)
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            if url.startswith("sqlite") and (refused := disk_error(error)) is not None:
                refused.filename = str(sa.make_url(url).database)
                raise refused from error
            # Another process makes the tables, or holds the file.
            if attempt == _ATTEMPTS - 1:
                raise UsageError(f"the storage cannot be used: {cause_of(error)}") from error
            free_storage(url)
            time.sleep(0.1 * 2**attempt * (0.5 + secrets.randbelow(100) / 100))
    raise AssertionError("the last attempt returns or raises")


def _study(url: str, name: str, create: bool, busy_seconds: float) -> optuna.Study:
    storage = _storage(url, busy_seconds)
    if create:
        return optuna.create_study(storage=storage, study_name=name, load_if_exists=True)
    try:
        return optuna.load_study(storage=storage, study_name=name)
    except KeyError:
        raise UsageError(
            f"the storage holds no sweep {name}; run `train.py sweep plan` with it"
        ) from None


def sweep_name(output_dir: Path, create: bool = False) -> str | None:
    """The sweep's name in its storage, kept in OUTPUT_DIR/sweep.json; None if there is none.

    It is drawn, not made from the folder's path, which differs between machines.
    """
    path = output_dir / "sweep.json"
    if create and not path.exists():
        # Of two plans at once, one names the sweep.
        write_text_once(path, json.dumps({"study": f"sweep-{secrets.token_hex(8)}"}) + "\n")
    return str(read_json(path)["study"]) if path.exists() else None


def storage_of(study: optuna.Study) -> optuna.storages.RDBStorage:
    """The database storage behind a study."""
    storage = study._storage
    backend = getattr(storage, "_backend", storage)  # Optuna wraps it in a cache
    assert isinstance(backend, optuna.storages.RDBStorage)
    return backend


def free_storage(url: str | sa.URL) -> None:
    """Kills workers that were stopped in the middle of a transaction on SQLite.

    The file stays locked as long as they are stopped, and no other worker could go on. What they
    had not written to the end is rolled back by SQLite itself.
    """
    address = sa.make_url(url)
    if address.get_backend_name() != "sqlite" or not Path(address.database or "").is_file():
        return
    for holder in stopped_holders(Path(str(address.database))):
        print(f"{holder} was stopped in the middle of a transaction, and is killed", flush=True)
        holder.kill()


def cause_of(error: Exception) -> str:
    """What a storage's error comes down to: the driver's own words."""
    found: BaseException = error
    while (inner := getattr(found, "orig", None) or found.__cause__) is not None:
        found = inner
    return str(found).split("\n")[0]


def storage_now(connection: sa.Connection) -> datetime:
    """The storage's time in UTC, so that clocks of workers need not agree."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC).replace(tzinfo=None)  # the file is on this machine
    found: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
    return found.astimezone(UTC).replace(tzinfo=None)


def set_attribute(connection: sa.Connection, trial_id: int, key: str, value: Any) -> None:
    """Writes a user attribute of a trial whose row the transaction holds."""
    text = json.dumps(value)
    where = (ATTRIBUTES.c.trial_id == trial_id) & (ATTRIBUTES.c.key == key)
    changed = connection.execute(sa.update(ATTRIBUTES).where(where).values(value_json=text))
    if changed.rowcount == 0:
        connection.execute(
            sa.insert(ATTRIBUTES).values(trial_id=trial_id, key=key, value_json=text)
        )


def _storage(url: str, busy_seconds: float) -> optuna.storages.RDBStorage:
    options: dict[str, Any] = {"pool_pre_ping": True}
    if url.startswith("postgresql"):
        # A worker that is stopped in the middle of a transaction loses its locks.
        limit = int(busy_seconds * 1000)
        limits = f"-c idle_in_transaction_session_timeout={limit} -c lock_timeout={limit}"
        options["connect_args"] = {"options": limits}
    if url.startswith("sqlite"):
        options = {"connect_args": {"timeout": busy_seconds}}
    try:
        storage = optuna.storages.RDBStorage(url, engine_kwargs=options)
    except ImportError as error:
        raise UsageError(
            f"--storage {url.split(':')[0]}: {error}. For PostgreSQL install "
            "probelight[postgres] and write postgresql+psycopg://user@host/database"
        ) from error
    if storage.engine.dialect.name == "sqlite":
        # The driver's own transactions begin with the first write: too late for a compare-and-set.
        event.listen(storage.engine, "connect", _no_transactions_of_the_driver)
        event.listen(storage.engine, "begin", _begin_immediate)
        storage.engine.dispose()
    return storage


def _no_transactions_of_the_driver(connection: Any, record: object) -> None:
    connection.isolation_level = None


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
