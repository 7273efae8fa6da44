"""Links between machines: how gangs that cross the same ones slow each other down, and what an AllReduce over them costs."""
