"""What processes and the cluster were doing when something took too long."""
import json
import os
import pathlib
import shutil
import subprocess


def of(desk):
    """Stacks of all threads of the program's processes, who has which lock, and what the OSDs wait for."""
    parts = [("mounts", mounts(desk)), ("locks", locks(desk))]
    for osd in sorted(name.removeprefix("osd.") for name in desk.cluster.pids if name.startswith("osd.")):
        for command in ["dump_ops_in_flight", "dump_watchers", "dump_blocklist"]:
            parts.append((f"osd.{osd} {command}", asked(desk, osd, command)))
    for pid in processes(desk):
        parts.append((f"process {pid}", process(pid)))
    for log in sorted(desk.cluster.dir.glob("*.log")):
        parts.append((log.name, "\n".join(log.read_text(errors="replace").splitlines()[-40:])))
    return "\n".join(f"==== {name}\n{text}" for name, text in parts)


def output(desk, *words):
    try:
        ended = subprocess.run(
            [str(word) for word in words],
            env=desk.cluster.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{words[0]}: {error}"
    return ended.stdout


def mounts(desk):
    texts = [output(desk, "grep", desk.dir, "/proc/self/mountinfo"), output(desk, desk.program, "status", "--json")]
    for place in desk.places:
        texts.append(output(desk, "ls", "-la", place, f"{place}/albums"))
    return "\n".join(texts)


def locks(desk):
    rados = ["rados", "-p", desk.cluster.POOL]
    texts = [output(desk, "ceph", "-s"), output(desk, "ceph", "osd", "blocklist", "ls")]
    for name in ["family/header", "family/000000.0", "family/000001.0"]:
        texts += [name, output(desk, *rados, "lock", "info", name, "obscura")]
        texts.append(output(desk, *rados, "listwatchers", name))
    texts.append(output(desk, *rados, "getxattr", "family/header", "obscura.holder"))
    return "\n".join(texts)


def asked(desk, osd, command):
    try:
        return json.dumps(desk.cluster.ask_osd(osd, prefix=command), indent=1)
    except (OSError, ValueError) as error:
        return str(error)


def processes(desk):
    """The processes of this desk's program."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or not (entry / "comm").read_text().startswith("obscura"):
                continue
            if os.fsencode(desk.cluster.configuration) in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def process(pid):
    lines = []
    for task in [pathlib.Path(f"/proc/{pid}"), *sorted(pathlib.Path(f"/proc/{pid}/task").glob("*"))]:
        for name in ["cmdline", "comm", "wchan", "syscall", "stack"]:
            try:
                text = (task / name).read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError as error:
                text = str(error)
            if name != "cmdline" or task.name == str(pid):
                lines.append(f"{task.name} {name}: {text}")
    if shutil.which("gdb"):
        command = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 40"]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=90)
            lines.append(ended.stdout)
        except subprocess.TimeoutExpired:
            lines.append("gdb: no answer")
    return "\n".join(lines)
