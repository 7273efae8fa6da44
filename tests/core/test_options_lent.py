"""What policies see of the options: all that there are, nothing that can be written to, whenever the table has grown."""

from __future__ import annotations

import pytest

from gantline.core.options import Option, OptionTable


def test_a_lent_table_has_every_option_and_takes_none() -> None:
    table = OptionTable.blank(0)
    lent = [table.frozen()]
    for gpus in range(1, 40):
        table.append(Option(0, gpus, rate=float(gpus)))
        if gpus % 3 == 0:
            lent.append(table.frozen())
            assert [lent[-1][row].gpus for row in range(len(lent[-1]))] == list(range(1, gpus + 1))
            assert table.frozen() is lent[-1]
    assert [len(one) for one in lent] == [0, *range(3, 40, 3)]
    with pytest.raises(ValueError, match="read-only"):
        lent[-1].F[0, 0] = 7.0
