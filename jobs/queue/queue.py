"""The queue of a sweep: which cells wait, who runs which, what has failed.

`result.json` in the run folder is the truth; the storage is only the queue. Each change of a cell's
state is one transaction that compares before it sets, so any number of workers may be killed at any
moment without losing or doubling a cell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from typing import Any

import optuna
import sqlalchemy as sa
from optuna.trial import TrialState

from jobs.job import Job
from jobs.queue.entry import COMPLETE, FAIL, RUNNING, WAITING, Entry, entry_of
from jobs.queue.storage import (
    ATTRIBUTES,
    HEARTBEATS,
    STUDIES,
    TRIALS,
    set_attribute,
    storage_now,
    storage_of,
)
from storage.host import Process, this_process


class Queue:
    """The queue of one sweep.

    Args:
        study: The study of `open_study`.
        worker: The process that claims.
    """

    def __init__(self, study: optuna.Study, worker: Process | None = None) -> None:
        self.study = study
        self.worker = worker or this_process()
        self._engine = storage_of(study).engine
        self.url = self._engine.url
        self._study_id = study._study_id

    def enqueue(self, cells: Iterable[Job]) -> list[str]:
        """Queues the cells that neither wait nor run; returns their keys.

        Two plans at once queue no cell twice: the study's row is locked meanwhile.
        """
        with self._engine.begin() as connection:
            study = STUDIES.c.study_id == self._study_id
            connection.execute(sa.select(STUDIES.c.study_id).where(study).with_for_update())
            entries = self._entries(connection)
            known = {entry.key: entry for entry in entries}
            active = {entry.key for entry in entries if entry.state in (WAITING, RUNNING)}
            number, queued = len(entries), []
            for cell in cells:
                if cell.key in active:
                    continue
                before = known.get(cell.key)
                values = {"number": number, "study_id": self._study_id, "state": WAITING}
                insert = sa.insert(TRIALS).values(**values).returning(TRIALS.c.trial_id)
                trial_id = connection.execute(insert).scalar_one()
                said = {
                    "key": cell.key,
                    "runner": cell.runner,
                    "needs": [*cell.needs, *cell.follows],
                    "num_steps": cell.num_steps,
                }
                said |= {"search": dict(cell.search)} if cell.search else {}
                set_attribute(connection, trial_id, "cell", said)
                if before is not None and before.token:
                    set_attribute(connection, trial_id, "lease", {"token": before.token})
                active.add(cell.key)
                queued.append(cell.key)
                number += 1
        return queued

    def entries(self) -> list[Entry]:
        """The newest entry of each cell, in the order in which the cells were queued."""
        with self._engine.begin() as connection:
            found = self._entries(connection)
        return list({entry.key: entry for entry in found}.values())

    def claim(self, ready: Callable[[Entry], bool]) -> Entry | None:
        """Takes the first waiting cell that is `ready`; None if there is none.

        The state, the lease and the first sign of life are one transaction.
        """
        with self._engine.begin() as connection:
            for entry in self._entries(connection, [WAITING]):
                if ready(entry) and self._moved(connection, entry, WAITING, RUNNING):
                    return self._leased(connection, entry)
        return None

    def beat(self, entry: Entry) -> bool:
        """A sign of life; False if the lease was lost and the cell is another's."""
        with self._engine.begin() as connection:
            if not self._held(connection, entry):
                return False
            self._sign(connection, entry.trial_id)
        return True

    def complete(self, entry: Entry, objectives: Sequence[float] = ()) -> bool:
        """Marks a cell as finished; False if the lease was lost."""
        return self._end(entry, COMPLETE, objectives=list(objectives))

    def note_drawn(self, entry: Entry, drawn: Mapping[str, Any]) -> bool:
        """Notes what was drawn for a claimed cell; False if the lease was lost."""
        with self._engine.begin() as connection:
            if not self._held(connection, entry):
                return False
            set_attribute(connection, entry.trial_id, "drawn", dict(drawn))
        return True

    def release(self, entry: Entry) -> bool:
        """Gives a cell back that was interrupted; False if the lease was lost."""
        return self._end(entry, WAITING, interruptions=entry.interruptions + 1)

    def fail(self, entry: Entry, error: str, max_retries: int) -> TrialState | None:
        """Notes a failure: the cell waits again, or has failed for good.

        Returns:
            The new state, None if the lease was lost.
        """
        failures = entry.failures + 1
        state = WAITING if failures <= max_retries else FAIL
        return state if self._end(entry, state, failures=failures, error=error) else None

    def take_back(self, grace_seconds: float) -> list[Entry]:
        """Queues the cells of dead workers again; returns them.

        A worker is dead when it has been silent for `grace_seconds`, or when it ran on this host
        and has ended.
        """
        taken = []
        with self._engine.begin() as connection:
            running = self._entries(connection, [RUNNING])
        for entry in running:
            dead = entry.owner is not None and entry.owner.known_dead()
            if (dead or entry.silent > grace_seconds) and self.release(entry):
                taken.append(entry)
        return taken

    def _end(self, entry: Entry, state: TrialState, **said: Any) -> bool:
        with self._engine.begin() as connection:
            if not self._held(connection, entry):
                return False
            for key, value in said.items():
                set_attribute(connection, entry.trial_id, key, value)
            return self._moved(connection, entry, RUNNING, state)

    def _moved(
        self, connection: sa.Connection, entry: Entry, old: TrialState, new: TrialState
    ) -> bool:
        """Compare-and-set of the state."""
        now = storage_now(connection)
        times = {"datetime_start": now} if new is RUNNING else {}
        times |= {"datetime_complete": now} if new.is_finished() else {}
        where = (TRIALS.c.trial_id == entry.trial_id) & (TRIALS.c.state == old)
        changed = connection.execute(sa.update(TRIALS).where(where).values(state=new, **times))
        return changed.rowcount == 1

    def _leased(self, connection: sa.Connection, entry: Entry) -> Entry:
        # Greater than any before, also when the storage was deleted and the sweep planned anew.
        milliseconds = int(storage_now(connection).replace(tzinfo=UTC).timestamp() * 1000)
        # Re-read: between the look at the queue and the claim others may have had the cell.
        lease = _attributes(connection, [entry.trial_id]).get(entry.trial_id, {}).get("lease", {})
        token = max(lease.get("token", 0) + 1, milliseconds)
        set_attribute(connection, entry.trial_id, "lease", {"token": token, **asdict(self.worker)})
        self._sign(connection, entry.trial_id)
        [claimed] = self._entries(connection, trial_id=entry.trial_id)
        return claimed

    def _held(self, connection: sa.Connection, entry: Entry) -> bool:
        """Whether the cell runs under this entry's lease; holds the trial's row until the end."""
        where = TRIALS.c.trial_id == entry.trial_id
        state = connection.execute(sa.select(TRIALS.c.state).where(where).with_for_update())
        if state.scalar_one_or_none() is not RUNNING:
            return False
        lease = _attributes(connection, [entry.trial_id])[entry.trial_id]["lease"]
        return bool(lease["token"] == entry.token)

    def _sign(self, connection: sa.Connection, trial_id: int) -> None:
        now = storage_now(connection)
        where = HEARTBEATS.c.trial_id == trial_id
        changed = connection.execute(sa.update(HEARTBEATS).where(where).values(heartbeat=now))
        if changed.rowcount == 0:
            connection.execute(sa.insert(HEARTBEATS).values(trial_id=trial_id, heartbeat=now))

    def _entries(
        self,
        connection: sa.Connection,
        states: Sequence[TrialState] = (),
        trial_id: int | None = None,
    ) -> list[Entry]:
        query = (
            sa.select(TRIALS, HEARTBEATS.c.heartbeat)
            .join_from(TRIALS, HEARTBEATS, TRIALS.c.trial_id == HEARTBEATS.c.trial_id, isouter=True)
            .where(TRIALS.c.study_id == self._study_id)
            .order_by(TRIALS.c.trial_id)
        )
        if states:
            query = query.where(TRIALS.c.state.in_(states))
        if trial_id is not None:
            query = query.where(TRIALS.c.trial_id == trial_id)
        rows = connection.execute(query).all()
        attributes = _attributes(connection, [row.trial_id for row in rows])
        now = storage_now(connection)
        return [entry_of(row, attributes[row.trial_id], now) for row in rows]


def _attributes(connection: sa.Connection, trial_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """User attributes by trial."""
    found: dict[int, dict[str, Any]] = {trial_id: {} for trial_id in trial_ids}
    query = sa.select(ATTRIBUTES).where(
        ATTRIBUTES.c.trial_id.between(min(trial_ids, default=0), max(trial_ids, default=0))
    )
    for row in connection.execute(query):
        if row.trial_id in found:
            found[row.trial_id][row.key] = json.loads(row.value_json)
    return found
