"""Which job moves where: together where it is spread, and out of servers that are little used (Gandiva, OSDI 2018, section 3.2)."""

from __future__ import annotations

from gantline.systems.gandiva.policies.homes import Homes, Seats


def for_locality(homes: Homes) -> dict[int, Seats]:
    """Jobs on several servers that one server, with what they leave there, has room for."""
    moves: dict[int, Seats] = {}
    for job, seats in list(homes.of_job.items()):
        size = homes.size[job]
        if len(seats) < 2 or size > max(homes.gpus):
            continue
        homes.move_out(job)
        fitting = [server for server in homes.may_use(job) if homes.room(server) >= size]
        goal = {min(fitting, key=lambda server: (server not in seats, homes.room(server), server)): size} if fitting else seats
        homes.move_in(job, size, goal)
        if fitting:
            moves[job] = goal
    return moves


def against_fragments(homes: Homes) -> dict[int, Seats]:
    """One job of one GPU, from the server in use with most free GPUs to the fullest that still has one."""
    used = [server for server in range(len(homes.gpus)) if homes.demand[server] and homes.room(server) > 0]
    if len(used) < 2:
        return {}
    source = max(used, key=lambda server: (homes.room(server), -server))
    goal = min((server for server in used if server != source), key=lambda server: (homes.room(server), server))
    small = [job for job, seats in homes.of_job.items() if seats == {source: 1} and goal in homes.may_use(job)]
    if not small or homes.room(goal) >= homes.room(source):
        return {}
    homes.move_out(small[0])
    homes.move_in(small[0], 1, {goal: 1})
    return {small[0]: {goal: 1}}
