"""What ranks find in their environment: torchrun's names, and a port that no other gang of the machine has."""

from __future__ import annotations

from gantline.runtime.local import environment


def test_every_gang_has_a_port_of_its_own_a_single_rank_too() -> None:
    gangs = [environment.ranks(count) for count in (1, 1, 1, 2, 4) * 20]
    ports = [{rank["MASTER_PORT"] for rank in gang} for gang in gangs]
    assert all(len(of_gang) == 1 for of_gang in ports)
    assert len(set.union(*ports)) == len(gangs)
