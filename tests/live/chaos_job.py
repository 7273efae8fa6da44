"""A job of the fault stories, which writes down what it sees: on which devices it was, in which epoch, how far it has come.

It holds a lock on a file for each of its devices for as long as it lives, and whatever it starts holds it, too. If one is taken, another
process is there: that is a breach. In a gang with a rank per device each rank has its own device, and counts its own steps. Run as
``python chaos_job.py FOLDER STEPS [hide]``; it needs nothing but the standard library.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time


def say(folder: str, name: str, *words: object) -> None:
    """One line, whole: it is shorter than what a system writes at once."""
    with open(os.path.join(folder, name), "a", encoding="ascii") as file:
        file.write(" ".join(map(str, words)) + "\n")


def main(folder: str, steps: int, hides: bool) -> int:
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    job, epoch, devices = (os.environ[f"GANTLINE_{name}"] for name in ("JOB_ID", "EPOCH", "DEVICES"))
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if ranks > 1:
        devices = devices.split(",")[rank]
    saved, made = ("step", "steps") if not rank else (f"step.{rank}", f"steps.{rank}")
    os.chdir(os.environ["GANTLINE_CHECKPOINT"])
    locks = [os.open(os.path.join(folder, f"device.{name}"), os.O_RDWR | os.O_CREAT) for name in devices.split(",")]
    for lock in locks:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(folder, "breaches", job, epoch, devices)
    if not rank:
        say(folder, "began", job, epoch, devices)
    if hides:  # a process that leaves group, session and environment, and is on the devices still
        subprocess.Popen(["sleep", "1000"], env={}, start_new_session=True, pass_fds=locks, stdout=subprocess.DEVNULL)
    at = 0
    if os.path.exists(saved):
        with open(saved, encoding="ascii") as file:
            at = int(file.read())
    while at < steps:
        if asked:
            return 143
        time.sleep(0.03)
        at += 1
        with open(f"next.{saved}", "w", encoding="ascii") as file:
            file.write(str(at))
        os.replace(f"next.{saved}", saved)
        say(".", made, epoch, at)
    say(folder, "done", job, epoch)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), "hide" in sys.argv[3:]))
