"""systemd's timer and service of a job: their texts, and putting them in place."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pathcast.errors import PathcastError
from pathcast.service.jobs import Job

# what a job must find as it was when it was added; not PATHCAST_HISTORY, whose password all could read here: the job's
# own file has it
KEPT = ("PATHCAST_CONFIG", "PATHCAST_STATE_DIR", "PATHCAST_RUN_DIR")


def here() -> bool:
    """Whether systemd is what started this host (sd_booted(3))."""
    return Path("/run/systemd/system").is_dir()


def directory() -> Path:
    """Of units of the host, or of this user."""
    if os.geteuid() == 0:
        return Path("/etc/systemd/system")
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "systemd/user"


# of the host's own manager: a user's may not give up capabilities, and would not start what asks for it
_WALLS = """\
# what pathcast needs of the system; the program itself runs as its user
# not ProtectClock=, which forbids to read the clock's state, too
CapabilityBoundingSet=~CAP_SYS_TIME CAP_WAKE_ALARM
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
"""


def texts(job: Job, program: str, environment: Mapping[str, str]) -> dict[str, str]:
    """By file name. program: pathcast, by its whole path."""
    stem = f"pathcast-job-{job.name}"
    kept = "".join(f"Environment={_quoted(f'{name}={of}')}\n" for name, of in sorted(environment.items()))
    service = f"""# made by pathcast job add; pathcast job remove {job.name} takes it away
[Unit]
Description=pathcast job {job.name}
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
ExecStart={_quoted(program)} job run {job.name} --due
{kept}KillMode=mixed
Restart=on-abnormal
RestartSec=10
TimeoutStopSec=60
Nice=5
{_WALLS if os.geteuid() == 0 else ""}LockPersonality=yes
"""
    calendar = "".join(f"OnCalendar=*-*-* {at}:00\n" for at in job.at)
    timer = f"""# made by pathcast job add; pathcast job remove {job.name} takes it away
[Unit]
Description=pathcast job {job.name}, by the clock

[Timer]
{calendar}AccuracySec=1s
# a host that was off: the job looks itself whether its time is not over
Persistent=yes
# and what a power failure broke off
OnBootSec=2min

[Install]
WantedBy=timers.target
"""
    return {f"{stem}.service": service, f"{stem}.timer": timer}


def put(job: Job, program: str, into: Path) -> list[Path]:
    """Writes the units. Raises PathcastError where they cannot be written."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    made = []
    try:
        into.mkdir(parents=True, exist_ok=True)
        for name, text in texts(job, program, environment).items():
            (into / name).write_text(text)
            made.append(into / name)
    except OSError as error:
        raise PathcastError("units", f"cannot write to `{into}`: {error.strerror}") from None
    return made


def take(name: str, from_: Path) -> list[Path]:
    """Removes the units of a job; those that there were."""
    found = [from_ / f"pathcast-job-{name}.{kind}" for kind in ("timer", "service")]
    gone = [path for path in found if path.exists()]
    for path in gone:
        path.unlink()
    return gone


def control(*words: str) -> str:
    """What `systemctl WORDS` says. Raises PathcastError."""
    command = ["systemctl", *([] if os.geteuid() == 0 else ["--user"]), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PathcastError("systemd", f"`{' '.join(command)}`: {error}") from None
    if done.returncode:
        raise PathcastError("systemd", f"`{' '.join(command)}`: {done.stderr.strip()}")
    return done.stdout


def _quoted(text: str) -> str:
    """A word in a unit (systemd.syntax(7), systemd.unit(5)): no specifier, no escape, one word."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$").replace("\n", " ")
    return f'"{escaped}"'
